package preflight

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

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
	var stay []resource.Process
	for _, p := range g.Processes {
		if s, ours := f.sessionOf(g, p); !ours || s.Slice.Whole() && !f.ends(s.Address) {
			stay = append(stay, p)
		}
	}
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
		return s.Slice.Host == g.Host && s.Slice.GPU == g.UUID &&
			(s.Slice.Whole() && p.Session == s.ID || p.GPUInstance != nil && s.Handle != nil && s.Handle.GPUInstance == *p.GPUInstance)
	})
	if i < 0 {
		return resource.PriorSession{}, false
	}
	return f.Prior.Sessions[i], true
}

// ends reports whether the plan ends the processes of a session with its body.
func (f *Flight) ends(a resource.Address) bool {
	return slices.ContainsFunc(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		return c.Address == a && c.Before != nil && resource.RuntimeNamed(c.Before.Runtime).RunsPrograms && (c.Body == diff.Remove || c.Body == diff.Remake)
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
	in := slices.DeleteFunc(slices.Clone(g.Processes), func(p resource.Process) bool {
		return p.GPUInstance == nil || *p.GPUInstance != c.Before.Handle.GPUInstance
	})
	if len(in) == 0 {
		return
	}
	f.Session(c.Address, Problem{Attribute: "target", Warning: f.destroys(),
		Summary: fmt.Sprintf("the slice of %s is in use", c.Address),
		Advice: prose.Advice{What: fmt.Sprintf("it is used by %s, and the driver does not destroy a slice that a process uses", resource.ProcessNames(in)),
			Fix: "end these processes (kill PID), or wait until they end, and try again"}})
}
