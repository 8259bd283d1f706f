// Package preflight finds what would make a plan fail before anything changes, and
// reports it at the line of the configuration. It checks GPUs and images itself;
// callers add what they learn from the engine, the file system and the network. Pure.
package preflight

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Problem is a reason why a part of a plan would fail. The advice says more than the summary, a phrase.
type Problem struct {
	Attribute string // of the block, like "ssh.port"; "" is the block itself
	Summary   string
	Warning   bool // apply works nevertheless, or may work by then
	prose.Advice
}

// Flight is a plan that is about to be applied, with the state and the snapshot that it
// was computed from.
type Flight struct {
	Intent *config.Intent
	Plan   *plan.Plan
	Prior  resource.Prior
	Live   resource.Live

	diags   hcl.Diagnostics
	removes map[resource.GPUKey][]*diff.SessionChange // see removals
}

// Diagnostics are all that was found, each once.
func (f *Flight) Diagnostics() hcl.Diagnostics { return f.diags }

// Made are the sessions of a host whose body the plan creates, recreates or starts
// again.
func (f *Flight) Made(host string) []diff.SessionChange {
	return prose.Only(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		return c.After != nil && c.After.Slice.Host == host && c.Body != diff.Keep && c.Body != diff.Remove
	})
}

// RemovedBefore are the IDs of the bodies that the plan removes before it creates that of
// a session: its own, and those on the same GPU. The plan has no order between bodies on
// different GPUs.
func (f *Flight) RemovedBefore(session diff.SessionChange) map[string]bool {
	removed := map[string]bool{}
	note := func(c *diff.SessionChange) {
		if there, ok := f.Live.Body(c.Before.Slice.Host, c.Before.Runtime, c.Before.ID); ok {
			removed[there.ID] = true
		}
	}
	if session.After == nil {
		return removed
	}
	if session.Before != nil {
		note(&session)
	}
	for _, gpu := range session.After.On() {
		for _, c := range f.removals()[gpu] {
			note(c)
		}
	}
	return removed
}

// removals are the changes that remove a body, by the GPUs that its session is on.
func (f *Flight) removals() map[resource.GPUKey][]*diff.SessionChange {
	if f.removes != nil {
		return f.removes
	}
	f.removes = map[resource.GPUKey][]*diff.SessionChange{}
	for i := range f.Plan.Diff.Sessions {
		c := &f.Plan.Diff.Sessions[i]
		if c.Before == nil || c.Body != diff.Remove && c.Body != diff.Remake {
			continue
		}
		for _, gpu := range c.Before.On() {
			f.removes[gpu] = append(f.removes[gpu], c)
		}
	}
	return f.removes
}

// Changes reports whether the plan changes a host's GPUs or its ledger.
func (f *Flight) Changes(host string) bool {
	h, _ := f.Live.Host(host)
	gpu := slices.ContainsFunc(f.Plan.Diff.GPUs, func(c diff.GPUChange) bool {
		return c.Host == host && (c.Take || c.Settings != (resource.Settings{}) || c.GiveBack && c.Action == diff.Delete && !h.Unbooked)
	})
	return gpu || slices.ContainsFunc(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		made := c.After != nil && c.After.Slice.Host == host && (c.Slice == diff.Make || c.Slice == diff.Remake)
		removed := c.Before != nil && c.Before.Slice.Host == host && (c.Slice == diff.Remove || c.Slice == diff.Remake)
		return made || removed
	})
}

// Session reports problems of a session.
func (f *Flight) Session(a resource.Address, problems ...Problem) {
	for _, p := range problems {
		var at *hcl.Range // nil for a session of a saved plan that the files do not have
		if s := f.Intent.Session(a); s != nil {
			at = s.Ranges.Of(p.Attribute)
		}
		f.report(p, at)
	}
}

// Host reports a problem of a host.
func (f *Flight) Host(name string, p Problem) {
	var at *hcl.Range
	if h := f.Intent.Host(name); h != nil {
		at = h.Ranges.Of(p.Attribute)
	}
	f.report(p, at)
}

// MPS reports GPUs on which the plan starts an MPS daemon although another user runs one. Which GPUs that one serves
// only root can read, so the plan of a user does not count on it.
func (f *Flight) MPS(host string, others []resource.ForeignDaemon) {
	for _, step := range f.Plan.Steps {
		op, is := step.Do.Op.(plan.RunMPS)
		if !is || op.Host != host {
			continue
		}
		g, _ := f.Live.GPU(host, op.GPU)
		held, _ := f.Prior.GPU(host, op.GPU)
		for _, d := range others {
			if d.Serves(g, true) {
				advice := d.Advice()
				advice.Fix += ", or use another GPU"
				f.Host(host, Problem{Warning: slices.Contains(held.All(), op.MPS),
					Summary: fmt.Sprintf("GPU %d of host %q has an MPS daemon of %s: process %d", g.Index, host, d.User, d.PID),
					Advice:  advice})
			}
		}
	}
}

// report reports a problem that is equal for all instances of a block only once.
func (f *Flight) report(p Problem, at *hcl.Range) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: prose.Sentence(p.Error()), Subject: at}
	if p.Warning {
		d.Severity = hcl.DiagWarning
	}
	known := slices.ContainsFunc(f.diags, func(o *hcl.Diagnostic) bool {
		return o.Summary == d.Summary && (at == nil) == (o.Subject == nil) && (at == nil || *o.Subject == *at)
	})
	if !known {
		f.diags = append(f.diags, d)
	}
}

// Images reports images that have been removed since the plan was made. No step of the
// plan gets them.
func (f *Flight) Images() {
	got := map[[2]string]bool{}
	for _, s := range f.Plan.Steps {
		if op, ok := s.Do.Op.(plan.EnsureImage); ok {
			got[[2]string{op.Host, op.Image}] = true
		}
	}
	for _, h := range f.Live.Hosts {
		for _, c := range f.Made(h.Name) {
			image := c.After.Spec.Image
			there := h.Engine == nil || h.Engine.Images[image] != "" || got[[2]string{h.Name, image}]
			if there || c.After.Spec.IsZero() || c.Body == diff.Refit {
				continue
			}
			f.Session(c.Address, Problem{Attribute: "image",
				Summary: fmt.Sprintf("there is no image %s on host %q", image, h.Name),
				Advice: prose.Advice{What: "it existed when the plan was made",
					Fix: "run cosplay plan again: the new plan gets the image, or reports how to"}})
		}
	}
}

// GPUs reports changes that the driver would refuse, and a switch of MIG mode that
// another program requested and that waits for a reset.
func (f *Flight) GPUs() {
	for _, c := range f.Plan.Diff.GPUs {
		if g, ok := f.Live.GPU(c.Host, c.UUID); ok {
			f.switching(c, g)
			f.pending(c, g)
		}
	}
	for _, c := range f.Plan.Diff.Sessions {
		f.inUse(c)
	}
}

// destroys reports whether the plan leaves no session. Then a problem is a warning:
// destroy removes what it can and reports what is still in use.
func (f *Flight) destroys() bool { return len(f.Plan.Desired.Sessions) == 0 }

// switching reports processes that prevent a switch of MIG mode.
func (f *Flight) switching(c diff.GPUChange, g resource.GPU) {
	mode, changes := c.Settings.Get(resource.MIGMode)
	if !changes || mode == resource.Bit(g.MIG) {
		return
	}
	stay := prose.Only(g.Processes, func(p resource.Process) bool {
		s, ours := f.sessionOf(g, p)
		return !ours || s.Slice.Whole() && !f.ends(s.Address)
	})
	if len(stay) == 0 {
		return
	}
	f.Host(c.Host, Problem{Attribute: "gpus", Warning: f.destroys(),
		Summary: fmt.Sprintf("MIG mode of GPU %d cannot be switched %s", g.Index, resource.MIGMode.Text(mode)),
		Advice: prose.Advice{What: fmt.Sprintf("it is used by %s, and the driver switches the mode only while no process uses the GPU", resource.ProcessNames(stay)),
			Fix: "end these processes (kill PID), or use another GPU for the sessions"}})
}

// sessionOf is the session in whose slice a process runs.
func (f *Flight) sessionOf(g resource.GPU, p resource.Process) (resource.PriorSession, bool) {
	i := slices.IndexFunc(f.Prior.Sessions, func(s resource.PriorSession) bool {
		return s.IsOn(resource.GPUKey{Host: g.Host, UUID: g.UUID}) &&
			(s.Slice.Whole() && p.Session == s.ID || s.Handle != nil && p.In(*s.Handle))
	})
	if i < 0 {
		return resource.PriorSession{}, false
	}
	return f.Prior.Sessions[i], true
}

// ends reports whether the plan ends the processes of a session with its body.
func (f *Flight) ends(a resource.Address) bool {
	return slices.ContainsFunc(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		removed := c.Before != nil && (c.Body == diff.Remove || c.Body == diff.Remake)
		return c.Address == a && removed && resource.RuntimeNamed(c.Before.Runtime).RunsPrograms
	})
}

// pending warns of a switch of MIG mode that waits for a reset, because a process used
// the GPU when it was requested.
func (f *Flight) pending(c diff.GPUChange, g resource.GPU) {
	if g.MIG == g.MIGPending || c.Action == diff.NoOp {
		return
	}
	what := fmt.Sprintf("It is %s; a switch to %s was requested and takes effect at the next reset.", resource.OnOff(g.MIG), resource.OnOff(g.MIGPending))
	reset := fmt.Sprintf("reset the GPU first: sudo nvidia-smi --gpu-reset -i %d", g.Index)
	p := Problem{Attribute: "gpus", Warning: true, Summary: fmt.Sprintf("MIG mode of GPU %d is about to change", g.Index)}
	mode, changes := c.Settings.Get(resource.MIGMode)
	switch {
	case !changes:
		p.What = what + " It would remove the sessions' slices, or the slices would block it"
		p.Fix = fmt.Sprintf("cancel it: sudo nvidia-smi -i %d -mig %d; or %s", g.Index, resource.Bit(g.MIG), reset)
	case c.Action == diff.Create:
		p.What = what + fmt.Sprintf(" apply sets it to %s now, destroy restores %s, and the request is lost", resource.MIGMode.Text(mode), resource.OnOff(g.MIG))
		p.Fix = "to keep the request, " + reset
	default:
		return // the project holds the GPU, and the plan sets the mode
	}
	f.Host(c.Host, p)
}

// inUse reports programs in a slice that the plan destroys. Programs in a container end
// with it; because of others the driver refuses to destroy the slice.
func (f *Flight) inUse(c diff.SessionChange) {
	if c.Before == nil || c.Before.Handle == nil || c.Slice != diff.Remove && c.Slice != diff.Remake || f.ends(c.Address) {
		return
	}
	g, _ := f.Live.GPU(c.Before.Slice.Host, c.Before.Slice.GPU)
	in := prose.Only(g.Processes, func(p resource.Process) bool { return p.In(*c.Before.Handle) })
	if len(in) == 0 {
		return
	}
	f.Session(c.Address, Problem{Attribute: "target", Warning: f.destroys(),
		Summary: fmt.Sprintf("the slice of %s is in use", c.Address),
		Advice: prose.Advice{What: fmt.Sprintf("it is used by %s, and the driver does not destroy a slice that a process uses", resource.ProcessNames(in)),
			Fix: "end these processes (kill PID), or wait until they end, and try again"}})
}
