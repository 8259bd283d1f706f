// Package resolve makes the choices that the configuration leaves open: the GPU, slice, clock and power limit of each
// session, for all sessions together, from the state and the snapshot of the hosts. Pure.
package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Desired makes the choices for an intent. For a session that does not fit, it returns an error at the session's
// line; the result still has the sessions that fit, for display.
func Desired(intent *config.Intent, person Person, prior resource.Prior, live resource.Live, scope Scope) (resource.Desired, hcl.Diagnostics) {
	r := resolver{intent: intent, person: person, prior: prior, placements: prior.Placements(), live: live, scope: scope}
	r.gpus()
	r.permit()
	r.fractions()
	r.warnOfUnusable()
	r.requests()
	result := r.place()
	r.refuse(result)
	desired := r.daemons(r.desired(result))
	r.warnOfUsed(desired.GPUs, degraded)
	r.warnOfUsed(desired.GPUs, unlisted)
	return desired, r.diags
}

// Scope limits a plan to a part of the project.
type Scope struct {
	Left    map[resource.Address]bool // sessions that it does not touch
	Replace map[resource.Address]bool // sessions that the user asked to replace
	Project string                    // the name of the project, for containers whose name another project has

	Neighbour func(resource.Holder) Neighbour // reads another project of the user; nil where there is none to read
	SameFile  func(a, b string) bool          // reports whether two paths lead to the same file; nil where there are none to read
	There     func(host, path string) string  // a path of the configuration on the machine of a host; nil where all are this one
}

// Without is the scope without some sessions.
func (s Scope) Without(sessions map[resource.Address]bool) Scope {
	s.Left = maps.Clone(s.Left)
	maps.Copy(s.Left, sessions)
	return s
}

type resolver struct {
	intent     *config.Intent
	person     Person
	prior      resource.Prior
	placements resource.Placements // the prior's
	live       resource.Live
	scope      Scope
	cards      []place.GPU
	wanted     []place.Request

	anyWay map[resource.Address]bool // sessions with a fraction that may share a GPU in any way

	waiting []resource.Session // on GPUs that cannot be read, or excluded from the plan
	diags   hcl.Diagnostics
}

// requests collects what each session asks of placement. A session that exists keeps its slice if it can.
func (r *resolver) requests() {
	r.wanted = make([]place.Request, 0, len(r.intent.Sessions))
	r.leave()
	for _, s := range r.intent.Sessions {
		if r.scope.Left[s.Address] {
			continue
		}
		was, made := r.prior.Session(s.Address)
		if made {
			s = ignoring(s, was)
		}
		if made && !r.readable(was.Session) {
			if r.scope.Replace[s.Address] {
				r.refuseReplace(was)
			}
			r.waiting = append(r.waiting, was.Session) // until its GPU can be read again
			continue
		}
		want, ok := r.request(s)
		if !ok {
			continue
		}
		request := place.Request{Address: s.Address, Want: want, Target: s.Target}
		if s.Host == "" {
			request.Hosts = s.Hosts // one that cannot be read has no GPUs
		}
		if made && (was.Request.Equal(want) || suits(was, want)) && r.stays(was) && !r.scope.Replace[s.Address] {
			kept := was.Slice
			request.Kept, request.KeptMore = &kept, was.More
		}
		r.wanted = append(r.wanted, request)
	}
}

// suits reports whether the slice of a session is what it requests now, where the slice or the slot that it names is all that
// has changed.
func suits(was resource.PriorSession, want resource.Request) bool {
	same := was.Request
	same.Slice, same.GPU = want.Slice, want.GPU
	profile, slot := resource.CutSlot(want.Slice)
	return same.Equal(want) && was.Request.Slice != want.Slice && (want.GPU == "" || want.GPU == was.Slice.GPU) && !was.Slice.Whole() &&
		(profile == "" || profile == was.Slice.Profile) && (slot < 0 || slot == was.Slice.Start)
}

// leave keeps the sessions that the plan excludes, and reserves their slices.
func (r *resolver) leave() {
	for _, was := range r.prior.Sessions {
		if !r.scope.Left[was.Address] {
			continue
		}
		r.waiting = append(r.waiting, was.Session)
		if kept := was.Slice; r.readable(was.Session) && r.stays(was) {
			r.wanted = append(r.wanted, place.Request{Address: was.Address, Want: was.Request, Target: was.Target, Kept: &kept, KeptMore: was.More})
		}
	}
}

// request is what decides the placement of a session; false if its GPU does not exist.
func (r *resolver) request(s config.Session) (want resource.Request, ok bool) {
	want = resource.Request{Host: s.Host, Target: s.Target.Key, Fit: s.Fit, Sharing: s.Sharing, Slice: s.Slice, Fraction: s.Fraction, GPUs: s.GPUs, Oversubscribe: s.Oversubscribe}
	if s.GPU == nil {
		return want, true
	}
	host, _ := r.live.Host(s.Host)
	g, ok := r.find(host, *s.GPU)
	want.GPU = g.UUID
	return want, ok
}

// Request is what a session of the configuration asks of placement.
func Request(s config.Session, live resource.Live) (resource.Request, hcl.Diagnostics) {
	r := resolver{intent: &config.Intent{Sessions: []config.Session{s}}, live: live}
	if r.fractions(); len(r.intent.Sessions) == 0 {
		return resource.Request{}, r.diags
	}
	want, _ := r.request(r.intent.Sessions[0])
	return want, r.diags
}

// stays reports whether a session can keep its slice: the slice exists, or its slots are free to recreate it.
func (r *resolver) stays(was resource.PriorSession) bool {
	card := r.card(was.Slice.Host, was.Slice.GPU)
	if was.Slice.Whole() {
		return !slices.ContainsFunc(was.On(), func(gpu resource.GPUKey) bool {
			card := r.card(gpu.Host, gpu.UUID)
			return card == nil || len(card.Slices) > 0 || card.MIG && card.Fixed[resource.MIGMode]
		})
	}
	if card == nil {
		return false
	}
	if _, there := diff.OwnSlice(was, r.live); there {
		return true
	}
	_, offered := card.Model.Profile(was.Slice.Profile)
	foreign := slices.ContainsFunc(card.Foreign, func(l resource.LiveSlice) bool { return l.Instance().Start == was.Slice.Start })
	return offered && !foreign && diff.Overlapping(card.GPU, was.Slice) == nil
}

// card is a GPU that placement may use; nil for any other.
func (r *resolver) card(host, uuid string) *place.GPU {
	for i := range r.cards { // not copied: each is large
		if c := &r.cards[i]; c.UUID == uuid && c.Host == host {
			return c
		}
	}
	return nil
}

// find looks up the GPU that a selector names.
func (r *resolver) find(host resource.Host, s config.GPUSelector) (resource.GPU, bool) {
	for _, g := range host.GPUs {
		if s.Matches(g) {
			return g, true
		}
	}
	for _, u := range host.Unusable {
		if s.Matches(resource.GPU{Index: u.Index, UUID: u.UUID}) {
			return r.refuseGPU(s, fmt.Sprintf("GPU %s of host %q is %s", s, host.Name, u.Advice().What), "Fix: "+u.Advice().Fix+", or use another GPU.")
		}
	}
	there := prose.Each(host.GPUs, func(g resource.GPU) string {
		if g.PCI == "" { // no host was read
			return fmt.Sprint(g.Index)
		}
		return fmt.Sprintf("%d (%s, %s)", g.Index, g.UUID, g.PCI)
	})
	return r.refuseGPU(s, fmt.Sprintf("host %q has no GPU %s", host.Name, s), "It has "+strings.Join(there, ", ")+". Name one of these by index, UUID or PCI address.")
}

func (r *resolver) refuseGPU(s config.GPUSelector, summary, detail string) (resource.GPU, bool) {
	r.report(hcl.DiagError, &s.Range, summary, detail)
	return resource.GPU{}, false
}

const waitHint = "\nWith --wait, apply and run wait until others have left."

// refuse turns placement's refusals and warnings into diagnostics at the sessions' lines.
func (r *resolver) refuse(result place.Result) {
	for _, refused := range r.later(result.Refused) {
		first := refused.Addresses[0]
		summary := first.String() + " does not fit"
		if n := len(refused.Addresses); n > 1 {
			summary = fmt.Sprintf("%d sessions do not fit", n)
		}
		detail := prose.Stop(refused.What) + r.blockers(first, refused.Later) + "\nWhat would help: " + prose.Stop(refused.Fix)
		if refused.Waits && r.scope.Neighbour != nil {
			detail += waitHint
		}
		r.add(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: r.sessionRange(first), Extra: refused})
	}
	for _, warning := range result.Warnings {
		r.add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: warning.Text, Subject: &hcl.Range{}, Extra: warning})
	}
}

func (r *resolver) sessionRange(a resource.Address) *hcl.Range {
	s := r.intent.Session(a)
	switch {
	case s == nil:
		return nil
	case s.Fraction > 0:
		return s.Ranges.Of("fraction")
	case strings.Contains(s.Slice, "@"):
		return s.Ranges.Of("slice")
	}
	return s.Ranges.Of("target")
}

// desired combines intent and placement.
func (r *resolver) desired(result place.Result) resource.Desired {
	d := resource.Desired{Sessions: slices.Grow(r.waiting, len(result.Placed))}
	taken := takenIDs(r.prior, r.live)
	for _, setup := range result.GPUs {
		gpu := resource.DesiredGPU{Host: setup.Host, UUID: setup.UUID, Settings: setup.Settings, Why: setup.Why}
		d.GPUs = append(d.GPUs, r.explained(gpu))
	}
	for _, s := range r.intent.Sessions {
		i, placed := slices.BinarySearchFunc(result.Placed, s.Address, func(p place.Placed, a resource.Address) int { return p.Address.Compare(a) })
		if !placed || r.scope.Left[s.Address] {
			continue
		}
		d.Sessions = append(d.Sessions, r.session(s, result.Placed[i], taken))
	}
	slices.SortFunc(d.Sessions, func(a, b resource.Session) int { return a.Address.Compare(b.Address) })
	return d
}

// session makes all choices for one session. taken are the IDs in use.
func (r *resolver) session(s config.Session, at place.Placed, taken map[string]bool) resource.Session {
	was, made := r.prior.Session(s.Address)
	session := resource.Session{Address: s.Address, Request: at.Want, Slice: at.Slice, More: at.More, Fit: at.Fit,
		PreventDestroy: s.Lifecycle.PreventDestroy, Trigger: s.Lifecycle.Digest}
	session.Compute = r.compute(s.Host, was.Compute, made)
	if !made {
		r.fill(s, &session)
		session.ID = freeID(s.Address, resource.RuntimeNamed(session.Runtime), r.scope.Project, taken)
		return session
	}
	session.ID = was.ID // also after it was moved to another address
	kept := ignoring(s, was)
	r.fill(kept, &session)
	if !resource.RuntimeNamed(session.Runtime).Rewrites && session.Hash(r.prior.Key) != was.Hash(r.prior.Key) {
		s.Target, s.Host = kept.Target, kept.Host
		r.fill(s, &session) // the body is replaced, so ignore_changes has nothing to keep
	}
	session.Stopped = was.Stopped && resource.RuntimeNamed(session.Runtime).RunsPrograms
	return session
}

// compute is how PyTorch computes in a session of a host. A session of an older cosplay, which did not have it, keeps
// that until it is replaced.
func (r *resolver) compute(host, was string, made bool) string {
	switch h := r.intent.Host(host); {
	case h.Simulate == "":
		return ""
	case h.Compute != "":
		return h.Compute
	case made && was == "":
		return ""
	}
	return config.ComputeCPU
}

// fill copies the attributes that are not about placement.
func (r *resolver) fill(s config.Session, session *resource.Session) {
	session.Target, session.Runtime = s.Target, r.runtime(s.Host)
	session.Program, session.Spec = s.Program, resource.ContainerSpec{}
	was, made := r.prior.Session(s.Address)
	session.Workspace = r.path(r.there(s.Host, s.Workspace), was.Workspace)
	session.Capability = ""
	if byDefault := session.ReportedCapability(); s.Capability != byDefault {
		session.Capability = s.Capability // the default, written out, is no change
	}
	session.DependsOn, session.Secret, session.Sealed = s.DependsOn, s.Secret, nil
	*session = session.Seal(r.keyOn(s.Host))
	maps.Copy(session.Sealed, s.Sealed)
	if made && r.prior.Key != "" {
		unsealed(session, was.Session, r.keyOn(s.Host))
	}
	r.containerSpec(s, session)
}

// takenIDs are the IDs of all sessions in the state, and those whose container would have the name of another state's.
// A session that was moved keeps its ID, which may be the address of another session now.
func takenIDs(prior resource.Prior, live resource.Live) map[string]bool {
	taken := map[string]bool{}
	for _, h := range live.Hosts {
		if h.Engine == nil {
			continue
		}
		for _, name := range h.Engine.Names {
			taken[strings.TrimPrefix(name, resource.BodyName(""))] = true
		}
	}
	for _, s := range prior.Sessions {
		taken[s.ID] = true
	}
	return taken
}

// SessionID is the ID on the host of a session that is new to a state.
func SessionID(a resource.Address, runtime resource.Runtime, project string, prior resource.Prior, live resource.Live) string {
	return freeID(a, runtime, project, takenIDs(prior, live))
}

// freeID is the ID on the host of a new session: its address. If the runtime names bodies after it, the name of the
// project follows, so that they do not have the names of other projects' bodies. If the ID is taken, by another state of
// the folder or a clone of the project, a number follows.
func freeID(a resource.Address, runtime resource.Runtime, project string, taken map[string]bool) string {
	base := resource.SessionID(a)
	if runtime.Named && project != "" {
		base = resource.SessionIDIn(project, a)
	}
	id := base
	for n := 2; taken[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	taken[id] = true
	return id
}

// explained adds the reason why cosplay does not change a GPU's clock, power limit and time slice.
func (r *resolver) explained(d resource.DesiredGPU) resource.DesiredGPU {
	card := r.card(d.Host, d.UUID)
	if card == nil {
		return d
	}
	var why resource.Reason
	switch {
	case len(r.others(card.GPU)) > 0 && r.intent.Host(d.Host).Kubernetes != "":
		why.Kind = resource.UsedByPods
	case len(r.others(card.GPU)) > 0:
		why.Kind = resource.SharedByProjects
	case r.neighboursForbid(*r.intent.Host(d.Host), *card):
		why.Kind = resource.UsedByOthers
	default:
		return d
	}
	for _, s := range []resource.Setting{resource.SMClock, resource.PowerLimit} {
		if !card.Again.Has(s) {
			d.Why[s] = why
		}
	}
	if d.Why[resource.TimeSlice].Kind == resource.UnsafeTimeSlice {
		d.Why[resource.TimeSlice] = why
	}
	return d
}

func (r *resolver) report(severity hcl.DiagnosticSeverity, at *hcl.Range, summary, detail string) {
	r.add(&hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail, Subject: at})
}

// only leaves out the sessions of the intent that a function, which may change them, refuses.
func (r *resolver) only(accepts func(*config.Session) bool) {
	intent := *r.intent
	intent.Sessions = make([]config.Session, 0, len(r.intent.Sessions))
	for _, s := range r.intent.Sessions {
		if accepts(&s) {
			intent.Sessions = append(intent.Sessions, s)
		}
	}
	r.intent = &intent
}

// add adds a diagnostic that is equal for all instances of a block only once.
func (r *resolver) add(d *hcl.Diagnostic) {
	equal := func(o *hcl.Diagnostic) bool {
		return o.Summary == d.Summary && o.Subject != nil && d.Subject != nil && *o.Subject == *d.Subject
	}
	if !slices.ContainsFunc(r.diags, equal) {
		r.diags = append(r.diags, d)
	}
}

// keyOn is the key by which the state owns what is on a host.
func (r *resolver) keyOn(host string) string { return r.live.KeyOn(host, r.prior.Key) }

func (r *resolver) runtime(host string) string {
	shown, _ := r.live.Host(host)
	return shown.Runtime
}
