package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/pattern"
	"cosplay/internal/proc"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// identify adds to a process its name and, where no slice says whose it is, the marks of where it runs. What this user
// may not read of it, is missing.
func identify(p *resource.Process, root string) {
	p.Name = processName(root, p.PID)
	if p.GPUInstance != nil {
		return
	}
	p.Marks = containers(root, p.PID)
	for pid, n := p.PID, 0; pid > 1 && n < generations; pid, n = proc.Parent(root, pid), n+1 {
		own, err := marking(root, pid)
		if err != nil {
			break
		}
		for _, mark := range own {
			if !p.Marked(mark) {
				p.Marks = append(p.Marks, mark)
			}
		}
	}
}

// generations is how many ancestors of a process are searched.
const generations = 64

// processName is the kernel's name of a process, safe for a terminal; "" if unreadable.
func processName(root string, pid int) string {
	return terminal.Safe(strings.TrimSpace(string(processFile(root, pid, "comm"))))
}

// processFile is a file of a process in /proc; empty if it cannot be read.
func processFile(root string, pid int, name string) []byte {
	content, _ := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), name))
	return content
}

// containerID is the ID of a container as engines name control groups.
var containerID = pattern.Of(`[0-9a-f]{64}`)

// containers are those in which a process runs, by ID.
func containers(root string, pid int) []string {
	ids := containerID().FindAllString(string(processFile(root, pid, "cgroup")), -1)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// marking are the variables of a process that say in which session it runs: the first folder of its loader, the folder of
// its MPS daemon, its CDI device. The environment of other users' processes is not readable: they run in no session of this user.
func marking(root string, pid int) (all []string, err error) {
	environment, err := proc.Environment(root, pid)
	for _, variable := range environment {
		switch name, value, _ := strings.Cut(variable, "="); name {
		case resource.LoaderVariable:
			first, _, _ := strings.Cut(value, ":")
			all = append(all, name+"="+first)
		case resource.PipeVariable, resource.DeviceVariable:
			all = append(all, variable)
		}
	}
	return all, err
}
