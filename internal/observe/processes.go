package observe

import (
	"slices"

	"cosplay/internal/resource"
)

// Runs reports whether a process is known to run in a body of a runtime.
type Runs func(runtime string, p resource.Process, c resource.Body) bool

// ResolveMarks replaces the marks of the processes that use the GPUs by the session in which each runs. On a MIG GPU the
// slice identifies the session. A server of the project's MPS daemons does not count:
// the driver also lists the programs that use the GPU through it.
func ResolveMarks(live resource.Live, prior resource.Prior, runs Runs) {
	for _, h := range live.Hosts {
		for n := range h.GPUs {
			g := &h.GPUs[n]
			g.Processes = slices.DeleteFunc(g.Processes, func(p resource.Process) bool { return actsForOthers(p, h.MPS) })
			for i := range g.Processes {
				p := &g.Processes[i]
				if p.GPUInstance == nil {
					p.Session = sessionOf(*p, h.Name, g.UUID, prior, runs)
				}
				p.Marks = nil
			}
		}
	}
}

// actsForOthers reports whether a process is a server of the project's MPS daemons.
func actsForOthers(p resource.Process, mps resource.MPSService) bool {
	return slices.ContainsFunc(mps.Own, func(d resource.MPSDaemon) bool { return p.Marked(resource.PipeVariable + "=" + d.Pipes()) })
}

// sessionOf returns the session on a whole GPU in which a process is known to run; "" if there is none, or if it may
// be another user's.
func sessionOf(p resource.Process, host, gpu string, prior resource.Prior, runs Runs) string {
	for _, s := range prior.Sessions {
		at := s.IsOn(resource.GPUKey{Host: host, UUID: gpu}) && s.Slice.Whole()
		if at && s.Body != nil && runs(s.Runtime, p, *s.Body) {
			return s.ID
		}
	}
	return ""
}
