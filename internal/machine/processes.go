package machine

import (
	"fmt"
	"os"
	"strings"

	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/runtime/process"
)

// NameProcesses adds what the programs on the GPUs are called and, on a whole
// GPU, which session of the project they run in: a slice tells that by itself.
func NameProcesses(live resource.Live, prior resource.Prior) {
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
			for i := range g.Processes {
				p := &g.Processes[i]
				if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID)); err == nil { // it may have ended, or run where we cannot look
					p.Name = strings.TrimSpace(string(name))
				}
				if p.GPUInstance == nil {
					p.Session = sessionOf(p.PID, h.Name, g.UUID, prior)
				}
			}
		}
	}
}

// sessionOf is the session on a whole GPU that a program is known to run in; ""
// is none, or one that is somebody else's as far as anybody can see.
func sessionOf(pid int, host, gpu string, prior resource.Prior) string {
	runs := map[string]func(int, resource.Container) bool{resource.RuntimeProcess: process.Runs, resource.RuntimeDocker: docker.Runs}
	for _, s := range prior.Sessions {
		at := s.Slice.Host == host && s.Slice.GPU == gpu && s.Slice.Whole()
		if at && s.Container != nil && runs[s.Runtime](pid, *s.Container) {
			return s.ID
		}
	}
	return ""
}
