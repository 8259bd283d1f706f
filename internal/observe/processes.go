package observe

import (
	"fmt"
	"os"
	"strings"

	"cosplay/internal/resource"
)

// Runs reports whether a process is known to run in a container of a runtime.
type Runs func(runtime string, pid int, c resource.Body) bool

// NameProcesses adds the names of the processes that use the GPUs and, on a whole GPU, the session in which each
// runs. On a MIG GPU the slice identifies the session.
func NameProcesses(live resource.Live, prior resource.Prior, runs Runs) {
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
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
