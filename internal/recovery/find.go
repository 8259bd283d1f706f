package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/machine"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

// finder finds the object that an import names.
type finder struct {
	*project.Project
	prior  resource.Prior
	live   resource.Live
	wanted config.Session
	id     string

	baseline     resource.Settings       // of the GPU, as far as the import states it
	inFile       bool                    // an import block names the object
	alsoImported []resource.PriorSession // by other blocks
	rootOnly     error                   // that only root may import it, although the rest is in order
}

// find tries the project's own objects, then slices, then containers.
func (f *finder) find(ctx context.Context) (*project.Import, error) {
	v := stateView(f.Project, f.live)
	if v.Fault != "" {
		return nil, fmt.Errorf("import cannot add to the state %s: %s. Fix: cosplay state rebuild", v.Path, v.Fault)
	}
	claims := ownClaims(f.Project, v, f.live)
	own := claims[len(claims)-1]
	has, failures := recoverClaim(ctx, f.Project, own, f.live, nil)
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	for _, s := range has.Prior.Sessions {
		if !f.means(s) {
			continue
		}
		if known, there := f.prior.Session(s.Address); there && known.ID == s.ID {
			return nil, fmt.Errorf("%s is in the state already, as %s; cosplay state mv gives it another address", f.id, s.Address)
		}
		return f.ours(s, has)
	}
	if f.prior.Lineage == "" && len(has.Prior.GPUs) > 0 { // the state was lost: the ledger has the project's lineage
		f.prior.Lineage, f.prior.Key = has.Prior.Lineage, has.Prior.Key
	}
	if found, err := f.slice(own.Holder.Lineage); found != nil || err != nil {
		return found, err
	}
	if found, err := f.container(ctx, own.Holder.Lineage); found != nil || err != nil {
		return found, err
	}
	if strings.HasPrefix(f.id, "GPU-") {
		return nil, fmt.Errorf("%s is a whole GPU, which cannot be imported: cosplay apply acquires it for a session", f.id)
	}
	fix := "name a MIG slice by its UUID (nvidia-smi -L), a container by its name or ID (docker ps -a), or the leftover of a session by its name"
	if f.inFile {
		fix += "; or remove the import block, if the object was destroyed"
	}
	return nil, prose.Advice{What: fmt.Sprintf("host %q has no %q to import", f.wanted.Host, f.id), Fix: fix}
}

// means reports whether the ID names this session of the project.
func (f *finder) means(s resource.PriorSession) bool {
	if s.Handle != nil && (resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}).IsCalled(f.id) || s.ID == f.id {
		return true
	}
	c := s.Body
	if c == nil {
		return false
	}
	runtime := resource.RuntimeNamed(c.Runtime)
	path, err := filepath.Abs(f.id)
	return f.id == c.ID || err == nil && path == c.ID || runtime.Named && f.id == s.BodyName() ||
		runtime.ShownID > 0 && len(f.id) >= runtime.ShownID && strings.HasPrefix(c.ID, f.id)
}

// ours imports an object that the project created and its state does not have.
func (f *finder) ours(s resource.PriorSession, has Recovered) (*project.Import, error) {
	if err := f.onItsHost(s.Slice.Host, s.Slice.GPU); err != nil {
		return nil, err
	}
	if s.Target.Key == "" { // no record has its target
		whole, err := f.resolved(s)
		if err != nil {
			return nil, err
		}
		s.Session = whole
	}
	s.Address = f.wanted.Address
	if f.prior.Lineage == "" {
		f.prior.Lineage, f.prior.Key = has.Prior.Lineage, has.Prior.Key
	}
	found := &project.Import{ID: f.id, Session: s, Notes: has.Notes}
	found.GPU, _ = f.live.GPU(s.Slice.Host, s.Slice.GPU)
	if s.Body != nil && resource.RuntimeNamed(s.Runtime).Named {
		found.Name = s.BodyName()
		found.Unproven = slices.ContainsFunc(has.Unproven, func(c resource.Body) bool { return c.ID == s.Body.ID })
	}
	var gpus []resource.PriorGPU
	for _, at := range s.On() {
		if g, held := has.Prior.GPU(at.Host, at.UUID); held {
			gpus = append(gpus, g)
		}
	}
	found.Steps = adopting(f.prior, has.Prior.BootIDs[s.Slice.Host], s, gpus, nil, false)
	return found, nil
}

// slice imports a MIG slice that cosplay did not create.
func (f *finder) slice(lineage string) (*project.Import, error) {
	made, there := f.liveSlice()
	if !there {
		return nil, nil
	}
	page, _ := f.live.Page(made.Host, made.GPU)
	for _, o := range page.Others(lineage) {
		if slices.ContainsFunc(o.Slices, func(s resource.LiveSlice) bool {
			return s.Match(made) != resource.OtherSlice || s.UUID == "" && s.Start == made.Start
		}) {
			return nil, fmt.Errorf("the slice %s belongs to another project, with lineage %s%s", made.UUID, o.Lineage, f.whereabouts(o.Lineage))
		}
	}
	for _, s := range f.prior.Sessions {
		if s.Handle != nil && (resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}).Match(made) != resource.OtherSlice {
			return nil, prose.Advice{What: fmt.Sprintf("the slice %s is that of %s already", made.UUID, s.Address),
				Fix: "to import it for another session, remove that one from the state first: cosplay state rm " + s.Address.Short()}
		}
	}
	if err := f.mayHave(made); err != nil {
		return nil, err
	}
	session, err := f.resolved(resource.PriorSession{Session: resource.Session{Slice: made.Slice}, Handle: &made.Handle})
	if err != nil {
		return nil, err
	}
	found := &project.Import{ID: f.id, Foreign: true, Session: resource.PriorSession{Session: session, Handle: &made.Handle}}
	found.GPU, _ = f.live.GPU(made.Host, made.GPU)
	found.Users = prose.Only(found.GPU.Processes, func(p resource.Process) bool { return p.In(made.Handle) })
	take := f.take(made.Host, found.GPU, lineage)
	take.Slices = []resource.LiveSlice{made}
	host, _ := f.live.Host(made.Host)
	f.onlyRoot(made.Host, "slice")
	found.Steps = adopting(f.prior, host.BootID, found.Session, nil, &take, f.doubts(made.Host, made.GPU))
	return found, nil
}

// take acquires a GPU with something that cosplay did not create, without that.
func (f *finder) take(host string, g resource.GPU, lineage string) plan.TakeGPU {
	page, inHand := f.live.Page(host, g.UUID)
	take := plan.TakeGPU{Host: host, GPU: g.UUID, Others: prose.Each(page.Others(lineage), func(o resource.Holder) string { return o.Lineage })}
	switch held, ours := f.prior.GPU(host, g.UUID); {
	case ours:
		take.Baseline, take.LockBefore = held.Baseline, held.LockBefore
	case inHand:
		take.Baseline, take.LockBefore = page.Baseline, page.LockBefore
		if _, held := page.Holder(lineage); held { // for the lost state
			take.Holds = page.Set
		}
	default:
		take.Baseline, take.LockBefore = diff.Baseline(g, f.DiffOptions(f.live).BaselineClockMHz[host])
		if f.baseline != (resource.Settings{}) {
			take.Baseline, take.LockBefore, take.Stated = f.baseline.Over(take.Baseline), false, true
			take.Changed = f.changed(host, g)
		}
	}
	return take
}

// changed are the settings that another tool has set, by the baseline that import blocks state, as far as cosplay may
// restore them.
func (f *finder) changed(host string, g resource.GPU) (all resource.Settings) {
	h, err := f.Host(host)
	for setting, was := range f.baseline.All() {
		if now, known := g.Now(setting); err == nil && known && now != was && h.Manage.Settings[setting] {
			all = all.With(setting, now)
		}
	}
	return all
}

// doubts reports whether another tool may have locked the clock of a GPU: import blocks state what it found, and
// cosplay has not set the clock since. An import that was interrupted may have acquired the GPU already.
func (f *finder) doubts(host, gpu string) bool {
	held, _ := f.prior.GPU(host, gpu)
	return f.baseline != (resource.Settings{}) && !held.Applied.Has(resource.SMClock) && !held.ClockUnsure
}

// liveSlice finds the slice with the UUID on any host.
func (f *finder) liveSlice() (resource.LiveSlice, bool) {
	for _, host := range f.live.Hosts {
		for _, g := range host.GPUs {
			for _, s := range g.Slices {
				if s.IsCalled(f.id) {
					s.Host = host.Name
					return s, true
				}
			}
		}
	}
	return resource.LiveSlice{}, false
}

// mayHave checks a foreign slice against the configuration of its host and its session.
func (f *finder) mayHave(s resource.LiveSlice) error {
	if err := f.onItsHost(s.Host, s.GPU); err != nil {
		return err
	}
	host, err := f.Host(s.Host)
	if err != nil {
		return err
	}
	if !host.Manage.Slices {
		return fmt.Errorf("manage of host %q does not include slices, so cosplay could never remove an imported slice. Fix: add \"slices\" to manage", s.Host)
	}
	g, _ := f.live.GPU(s.Host, s.GPU)
	if len(host.GPUs) > 0 && !slices.ContainsFunc(host.GPUs, func(o config.GPUSelector) bool { return o.Matches(g) }) {
		return fmt.Errorf("gpus of host %q does not include GPU %d, so cosplay does not change it. Fix: add it to gpus", s.Host, g.Index)
	}
	if p, _ := g.Model.Profile(s.Profile); p.MemoryMiB < f.wanted.Target.MemoryMiB {
		return fmt.Errorf("%s needs %d MiB, and the slice %s (%s) has %d: import a larger one, or choose a smaller target", f.wanted.Address, f.wanted.Target.MemoryMiB, s.UUID, s.Profile, p.MemoryMiB)
	}
	return nil
}

// onlyRoot records for an object on hardware that cosplay did not create that only root may import it: a user could name
// that of another user.
func (f *finder) onlyRoot(host, what string) {
	h := f.Machine.Hosts()[host]
	if h == nil || !h.Rooted {
		return
	}
	fix := "sudo cosplay import " + terminal.ShellWords([]string{f.wanted.Address.String(), f.id})
	if f.inFile {
		fix = "sudo cosplay apply"
	}
	if f.Machine.Elsewhere(h.Config) { // root of this machine is not root there
		fix = fmt.Sprintf("import it in a project on that machine, as root; or connect host %q as its root", host)
	}
	f.rootOnly = prose.Advice{What: fmt.Sprintf("cosplay did not create the %[1]s, and only root may assign such a %[1]s to a project", what), Fix: fix, Cause: ErrOnlyRoot}
}

// onItsHost refuses an object on another host or GPU than that of the configuration.
func (f *finder) onItsHost(host, gpu string) error {
	if host != f.wanted.Host {
		return fmt.Errorf("%s is on host %q, but the configuration has %s on %q. Fix: correct host in its block", f.id, host, f.wanted.Address, f.wanted.Host)
	}
	g, there := f.live.GPU(host, gpu)
	if f.wanted.GPU != nil && there && !f.wanted.GPU.Matches(g) {
		return fmt.Errorf("%s is on GPU %d, but the configuration has %s on GPU %s. Fix: correct gpu in its block, or remove gpu", f.id, g.Index, f.wanted.Address, f.wanted.GPU)
	}
	return nil
}

// resolved is the session of the configuration in an existing slice or on a whole GPU, which a container has. Without an ID
// one is chosen.
func (f *finder) resolved(is resource.PriorSession) (resource.Session, error) {
	request, diags := resolve.Request(f.wanted, f.live)
	if diags.HasErrors() {
		return resource.Session{}, inWords(diags)
	}
	slice := request.Sharing.On(is.Slice)
	id := cmp.Or(is.ID, resolve.SessionID(f.wanted.Address, resource.RuntimeNamed(f.Machine.Hosts()[f.wanted.Host].NewRuntime()), f.Name(), f.prior, f.live))
	w := f.wanted
	begun := resource.PriorSession{Handle: is.Handle, Body: is.Body, Session: resource.Session{Address: w.Address, ID: id, Target: w.Target, Request: request, Slice: slice, Program: w.Program}}
	s, err := f.placed(plan.Fold(f.prior, plan.Adopt{Session: begun}, plan.Made{}))
	if err == nil && s.Slice != slice {
		g, _ := f.live.GPU(slice.Host, slice.GPU)
		err = fmt.Errorf("%s cannot have %s on GPU %d: cosplay fit %s lists what fits", f.wanted.Address, slice, g.Index, f.wanted.Target.Key)
	}
	return s, err
}

// placed is the session in a plan for all sessions.
func (f *finder) placed(prior resource.Prior) (resource.Session, error) {
	who, err := f.Machine.Person(f.Intent)
	if err != nil {
		return resource.Session{}, err
	}
	for _, s := range f.alsoImported {
		if _, there := prior.Session(s.Address); !there && s.Address != f.wanted.Address {
			prior = plan.Fold(prior, plan.Adopt{Session: s}, plan.Made{})
		}
	}
	desired, diags := resolve.Desired(f.Intent, who, prior, f.live, resolve.Scope{Project: f.Name()})
	for _, s := range desired.Sessions {
		if s.Address == f.wanted.Address {
			return s, nil
		}
	}
	return resource.Session{}, inWords(diags)
}

// inWords are the errors among diagnostics as one error, for callers that show no place in
// a file.
func inWords(diags hcl.Diagnostics) error {
	var all []error
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			all = append(all, fmt.Errorf("%s. %s", d.Summary, d.Detail))
		}
	}
	return errors.Join(all...)
}

// container is a container that cosplay did not create, in any runtime that can import.
func (f *finder) container(ctx context.Context, lineage string) (*project.Import, error) {
	h, err := f.Connect(ctx, f.wanted.Host, f.prior)
	if err != nil {
		return nil, err
	}
	for _, in := range h.Runtimes(f.prior.Owner()) {
		if importer, is := in.(runtime.Importer); is {
			if found, err := f.stranger(ctx, h, importer, lineage); found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

func (f *finder) stranger(ctx context.Context, h *machine.Host, in runtime.Importer, lineage string) (*project.Import, error) {
	c, name, of, host, err := in.Stranger(ctx, f.id)
	if err != nil || c == nil {
		return nil, err
	}
	switch {
	case h.NewRuntime() != c.Runtime:
		return nil, fmt.Errorf("%s is a %s, and sessions of host %q run %s: write runtime = %q in its block", name,
			resource.RuntimeNamed(c.Runtime).Body, h.Config.Name, resource.RuntimeNamed(h.NewRuntime()).Where, c.Runtime)
	case of != "" && of != lineage:
		return nil, fmt.Errorf("the container %s belongs to another project, with lineage %s%s", name, of, f.whereabouts(of))
	case of != "" && host != h.Config.Name:
		return nil, fmt.Errorf("the container %s is on host %q, but the configuration has %s on %q. Fix: correct host in its block", name, host, f.wanted.Address, h.Config.Name)
	}
	for _, s := range f.prior.Sessions {
		if s.Body != nil && s.Body.ID == c.ID {
			return nil, fmt.Errorf("%s is in the state already, as %s; cosplay state mv gives it another address", f.id, s.Address)
		}
	}
	if c.SliceID != "" {
		return f.kept(c, name, lineage)
	}
	session, err := f.placed(f.prior)
	if err != nil {
		return nil, err
	}
	gpu, _ := f.live.GPU(session.Slice.Host, session.Slice.GPU)
	if err := inMode(gpu, session, name); err != nil {
		return nil, err
	}
	c.Session = session.ID
	found := &project.Import{ID: f.id, Foreign: true, Name: name, Session: resource.PriorSession{Session: session, Body: c}}
	live, _ := f.live.Host(h.Config.Name)
	found.Steps = adopting(f.prior, live.BootID, found.Session, nil, nil, false)
	return found, nil
}

// inMode refuses a container that cannot use the slice of its session, since the GPU is not in the mode for it.
func inMode(gpu resource.GPU, s resource.Session, name string) error {
	if gpu.MIG != s.Slice.Whole() {
		return nil
	}
	return fmt.Errorf("nothing proves that the container %s uses %s of GPU %d for %s: MIG mode is %s there. Fix: leave out the import; cosplay apply then creates the session with a new container, and %s stays as it is",
		name, s.Slice, gpu.Index, s.Address, resource.OnOff(gpu.MIG), name)
}

// whereabouts adds to an error where the state of a lineage is, if a ledger has it.
func (f *finder) whereabouts(lineage string) string {
	for _, h := range project.Holders(f.live) {
		switch {
		case h.Lineage != lineage:
		case project.At(h, f.Store.Path):
			return fmt.Sprintf(": that of a state which was here before. Fix: cosplay reset --holder %s removes its leftovers", resource.ShortLineage(lineage))
		case project.IsLost(h):
			return fmt.Sprintf(", whose state %s does not exist any more. Fix: cosplay reset --holder %s removes its leftovers", h.State, resource.ShortLineage(lineage))
		default:
			return fmt.Sprintf(", whose state is %s: destroy it there first", h.State)
		}
	}
	return ": only the state of that project can release it"
}
