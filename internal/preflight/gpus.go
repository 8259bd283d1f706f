package preflight

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// GPUs looks for what the driver would refuse, and for what somebody else has
// left to the next reset.
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

// destroys reports whether nothing is to be left: then what can go goes, and
// what somebody uses is told.
func (f *Flight) destroys() bool { return len(f.Plan.Desired.Sessions) == 0 }

// switching looks for processes that keep a GPU from switching its MIG mode.
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
		Detail:  fmt.Sprintf("It is used by %s, and the driver switches the mode of a GPU that nobody uses only. End what runs there (kill PID), or let the sessions have another GPU.", resource.ProcessNames(stay))})
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

// ends reports whether what runs in a session ends with its container.
func (f *Flight) ends(a resource.Address) bool {
	return slices.ContainsFunc(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		return c.Address == a && c.Before != nil && resource.RuntimeNamed(c.Before.Runtime).RunsPrograms && (c.Container == diff.Remove || c.Container == diff.Remake)
	})
}

// pending tells of a switch of MIG mode that waits for a reset, since it was
// asked for while something was in the way.
func (f *Flight) pending(c diff.GPUChange, g resource.GPU) {
	if g.MIG == g.MIGPending || c.Action == diff.NoOp {
		return
	}
	what := fmt.Sprintf("It is %s, and somebody asked for %s, which comes with the next reset. ", resource.OnOff(g.MIG), resource.OnOff(g.MIGPending))
	takeBack := fmt.Sprintf("sudo nvidia-smi -i %d -mig %d", g.Index, resource.Bit(g.MIG))
	p := Problem{Attribute: "gpus", Warning: true, Summary: fmt.Sprintf("MIG mode of GPU %d is about to change", g.Index)}
	mode, changes := c.Settings.Get(resource.MIGMode)
	switch {
	case !changes:
		p.Detail = what + fmt.Sprintf("That would take the sessions' slices away, or put them in its way. Take it back: %s; or let it come first: sudo nvidia-smi --gpu-reset -i %d.", takeBack, g.Index)
	case c.Action == diff.Create:
		p.Detail = what + fmt.Sprintf("apply sets it to %s now; destroy goes back to %s, and the request is forgotten. If that is not wanted, let it come first: sudo nvidia-smi --gpu-reset -i %d.",
			resource.MIGMode.Text(mode), resource.OnOff(g.MIG), g.Index)
	default:
		return // one of our own GPUs, which the plan puts right
	}
	f.Host(c.Host, p)
}

// inUse looks for programs in a slice that goes. Those in a container end with
// it; others keep the driver from destroying the slice.
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
		Detail:  fmt.Sprintf("It is used by %s, and the driver destroys no slice that somebody uses. End what runs there (kill PID), or let it end by itself, and try again.", resource.ProcessNames(in))})
}
