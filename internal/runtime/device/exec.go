package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"cosplay/internal/proc"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// A container is a set of processes that see the same files, as the kernel shows it.
type container struct {
	pid    int         // of its first process
	folder os.FileInfo // what it sees where a device mounts a session's folder
}

// Exec runs a command in the container that has the session's device, if there is exactly one: beside its first process,
// as the user of that, with its variables.
func (r Runtime) Exec(ctx context.Context, session string, p runtime.Program, s runtime.Streams) (int, error) {
	if err := runtime.CheckSession(session); err != nil {
		return 1, err
	}
	device := Of(session).Qualified()
	there, err := containers()
	if err != nil {
		return 1, err
	}
	all := r.holding(session, there)
	pids := func(all []container) []int { return prose.Each(all, func(c container) int { return c.pid }) }
	switch {
	case len(p.Argv) == 0:
		p.Argv = []string{"sh"}
	case p.User != "" || p.PrivateMounts:
		return 1, prose.Advice{What: "cosplay runs commands in containers of others as the user of the container", Fix: "leave --user and --private-mounts out, or use the container's engine (docker exec -u)"}
	}
	if earlier := r.earlier(session, there); len(all) == 0 && len(earlier) > 0 {
		return 1, runtime.VacantError{Advice: prose.Advice{Fix: resource.RestartContainer,
			What: fmt.Sprintf("no container has the device %s as it is now; %s got an earlier one, which was removed since", device, resource.DeviceHolders(pids(earlier)))}}
	}
	if len(all) == 0 {
		return 1, runtime.VacantError{Advice: nowhere(device)}
	}
	if len(all) > 1 {
		return 1, prose.Advice{What: fmt.Sprintf("%d containers have the device %s: %s", len(all), device, resource.DeviceHolders(pids(all))), Fix: "run the command by their engine (docker exec), or stop all but one"}
	}
	return all[0].run(ctx, p, s)
}

// nowhere is the advice where no container has a device.
func nowhere(device string) prose.Advice {
	advice := prose.Advice{What: "no container has the device " + device, Fix: "start one, like: docker run --device " + device + " IMAGE"}
	if os.Geteuid() != 0 {
		advice.What, advice.Fix = "no container that you can see has the device "+device, advice.Fix+"; or run cosplay as root: root sees all containers"
	}
	return advice
}

// holders are the containers that have the device of a session.
func (r Runtime) holders(session string) ([]container, error) {
	all, err := containers()
	return r.holding(session, all), err
}

// holding are those containers with the session's folder at its place. What a process says of itself, as in its
// environment, proves nothing.
func (r Runtime) holding(session string, all []container) []container {
	folder, err := os.Stat(r.Inside(session))
	if err != nil {
		return nil
	}
	return prose.Only(all, func(c container) bool { return os.SameFile(c.folder, folder) })
}

// earlier are the containers that were started with an earlier device of a session: before its last change, or before
// its folder was removed. One that names no device in its environment is not known to be.
func (r Runtime) earlier(session string, all []container) []container {
	now, _ := r.recorded(session)
	folder, _ := os.Stat(r.Inside(session))
	return prose.Only(all, func(c container) bool {
		removed := c.folder.Sys().(*syscall.Stat_t).Nlink == 0
		if !removed && (now.Digest == "" || folder == nil || !os.SameFile(c.folder, folder)) {
			return false
		}
		variables, _ := proc.Environment(proc.Root, c.pid)
		return slices.Contains(variables, mark(session)) && (removed || !slices.Contains(variables, resource.DeviceDigest+"="+now.Digest))
	})
}

// containers are those that have something where devices mount a session's folder.
func containers() (all []container, err error) {
	within := map[int]container{}
	err = proc.Each(func(pid int) {
		if c := (container{pid: pid}); c.look() {
			within[pid] = c
		}
	})
	known := map[string]bool{}
	for _, pid := range slices.Sorted(maps.Keys(within)) {
		c := within[pid]
		// A process that one of the container has started is the container's, whatever namespaces it has made.
		if parent, is := within[proc.Parent(proc.Root, pid)]; is && os.SameFile(parent.folder, c.folder) {
			continue
		}
		of := c.folder.Sys().(*syscall.Stat_t)
		if in := fmt.Sprint(c.space(), of.Dev, of.Ino); !known[in] {
			known[in] = true
			all = append(all, c)
		}
	}
	return all, err
}

// space is what the processes of a container have in common: its PID namespace, or its mount namespace where it sees the
// host's processes.
func (c container) space() string {
	own, _ := os.Readlink(proc.Root + "/self/ns/pid")
	its, _ := os.Readlink(c.file("ns/pid"))
	if its == own {
		its, _ = os.Readlink(c.file("ns/mnt"))
	}
	return its
}

// file is the path of what the kernel shows of a container's first process.
func (c container) file(name string) string {
	return filepath.Join(proc.Root, strconv.Itoa(c.pid), name)
}

// run runs a program in a container, and returns its exit code.
func (c container) run(ctx context.Context, p runtime.Program, s runtime.Streams) (int, error) {
	environment, err := proc.Environment(proc.Root, c.pid)
	if err != nil {
		return 1, err
	}
	command := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = runtime.KillAfter
	command.Dir = cmp.Or(p.Dir, "/")
	command.Stdin, command.Stdout, command.Stderr = s.In, s.Out, s.Err
	command.Env = environment
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		command.Env = append(command.Env, name+"="+p.Env[name])
	}
	if err := c.start(command); err != nil {
		return codeOf(err), err
	}
	var ended *exec.ExitError
	if err := command.Wait(); !errors.As(err, &ended) {
		return 0, err
	}
	if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return ended.ExitCode(), nil
}

// End ends the containers that have the session's device: SIGTERM to their first processes, and after the grace period
// SIGKILL. They have no terminal that cosplay knows.
func (r Runtime) End(ctx context.Context, session, _ string, grace time.Duration) error {
	all, err := r.holders(session)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, c := range all {
		_ = c.signal(syscall.SIGTERM) // it may have ended
	}
	for deadline := time.Now().Add(grace); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if all, err = r.holders(session); err != nil || len(all) == 0 {
			return err
		}
	}
	for _, c := range all {
		_ = c.signal(syscall.SIGKILL)
	}
	return nil
}

func (c container) signal(s syscall.Signal) error {
	first, err := os.FindProcess(c.pid)
	if err != nil {
		return err
	}
	return first.Signal(s)
}

// codeOf is the exit code that shells have for a command that could not be started.
func codeOf(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return runtime.NotFound
	case errors.Is(err, fs.ErrPermission):
		return runtime.CannotRun
	}
	return 1
}
