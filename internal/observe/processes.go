package observe

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Runs reports whether a process is known to run in a container of a runtime.
type Runs func(runtime string, pid int, c resource.Body) bool

// NameProcesses adds the names of the processes that use the GPUs and, on a whole GPU, the session in which each
// runs. On a MIG GPU the slice identifies the session.
func NameProcesses(live resource.Live, prior resource.Prior, runs Runs) {
	for _, h := range live.Hosts {
		for n := range h.GPUs {
			g := &h.GPUs[n]
			g.Processes = slices.DeleteFunc(g.Processes, func(p resource.Process) bool { return actsForOthers(p.PID, h.MPS) })
			for i := range g.Processes {
				p := &g.Processes[i]
				if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID)); err == nil {
					p.Name = strings.TrimSpace(string(name))
				}
				if p.GPUInstance == nil {
					p.Session = sessionOf(p.PID, h.Name, g.UUID, prior, runs)
				}
			}
		}
	}
}

// actsForOthers reports whether a process is a server of the project's MPS daemons. The driver lists the programs that
// use the GPU through it, too.
func actsForOthers(pid int, mps resource.MPSService) bool {
	if len(mps.Own) == 0 {
		return false
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(mps.Own, func(d resource.MPSDaemon) bool {
		return slices.Contains(strings.Split(string(environ), "\x00"), resource.PipeVariable+"="+d.Pipes())
	})
}

// sessionOf returns the session on a whole GPU in which a process is known to run; "" if there is none, or if it may
// be another user's.
func sessionOf(pid int, host, gpu string, prior resource.Prior, runs Runs) string {
	for _, s := range prior.Sessions {
		at := s.IsOn(resource.GPUKey{Host: host, UUID: gpu}) && s.Slice.Whole()
		if at && s.Body != nil && runs(s.Runtime, pid, *s.Body) {
			return s.ID
		}
	}
	return ""
}
