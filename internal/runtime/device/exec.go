package device

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cosplay/internal/prose"
	"cosplay/internal/runtime"
)

const proc = "/proc"

// A container is a set of processes that see the same files, as the kernel shows it.
type container struct {
	pid int // of its first process
}

// Exec runs a command in the container that has the session's device, if there is exactly one: beside its first process,
// as the user of that, with its variables.
func (r Runtime) Exec(ctx context.Context, session string, p runtime.Program, s runtime.Streams) (int, error) {
	if err := runtime.CheckSession(session); err != nil {
		return 1, err
	}
	device := Of(session).Qualified()
	all, err := holders(mark(session))
	if err != nil {
		return 1, err
	}
	switch {
	case len(p.Argv) == 0:
		p.Argv = []string{"sh"}
	case p.User != "" || p.PrivateMounts:
		return 1, prose.Advice{What: "cosplay runs commands in containers of others as the user of the container", Fix: "leave --user and --private-mounts out, or use the container's engine (docker exec -u)"}
	}
	if len(all) == 0 {
		return 1, runtime.VacantError{Advice: nowhere(device)}
	}
	if len(all) > 1 {
		pids := prose.Each(all, func(c container) string { return strconv.Itoa(c.pid) })
		return 1, prose.Advice{What: fmt.Sprintf("%d containers have the device %s, with the first processes %s", len(all), device, prose.And(pids)), Fix: "run the command by their engine (docker exec), or stop all but one"}
	}
	return all[0].run(ctx, p, s)
}

// nowhere is the advice where no container has a device.
func nowhere(device string) prose.Advice {
	advice := prose.Advice{What: "no container has the device " + device, Fix: "start one, like: docker run --device " + device + " IMAGE"}
	if os.Geteuid() != 0 {
		advice.What, advice.Fix = advice.What+", as far as you may see", advice.Fix+"; or run cosplay as root, who sees those of all users"
	}
	return advice
}

// holders are the containers in which a process has a mark in its environment.
func holders(mark string) (all []container, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	own, _ := os.Readlink(filepath.Join(proc, "self/ns/mnt"))
	known := map[string]bool{own: true}
	pids := make([]int, 0, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // the first process of a container has the lowest, as long as they do not start again at 1
	for _, pid := range pids {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		namespace, err := os.Readlink(filepath.Join(folder, "ns/mnt"))
		if err != nil || known[namespace] {
			continue
		}
		environment, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err == nil && slices.Contains(strings.Split(string(environment), "\x00"), mark) {
			known[namespace] = true
			all = append(all, container{pid})
		}
	}
	return all, nil
}

// run runs a program in the namespaces of a container, and returns its exit code.
func (c container) run(ctx context.Context, p runtime.Program, s runtime.Streams) (int, error) {
	environment, err := os.ReadFile(c.file("environ"))
	if err != nil {
		return 1, err
	}
	user, err := c.user()
	if err != nil {
		return 1, err
	}
	argv := append([]string{"--target", strconv.Itoa(c.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root"}, user...)
	if argv = append(argv, "--wd"); p.Dir != "" {
		argv[len(argv)-1] = "--wdns=" + p.Dir
	}
	var variables, loaders []string
	for variable := range strings.SplitSeq(strings.TrimRight(string(environment), "\x00"), "\x00") {
		variables = append(variables, variable)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		variables = append(variables, name+"="+p.Env[name])
	}
	variables = slices.DeleteFunc(variables, func(variable string) bool {
		if !steersLoader(variable) {
			return false
		}
		loaders = append(loaders, variable)
		return true
	})
	argv = append(argv, "--")
	if len(loaders) > 0 {
		argv = append(append(argv, "env"), loaders...) // the container's, which sets them where they belong
	}
	command := exec.CommandContext(ctx, "nsenter", append(argv, p.Argv...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = runtime.KillAfter
	command.Stdin, command.Stdout, command.Stderr = s.In, s.Out, s.Err
	command.Env = variables
	err = command.Run()
	if ended, is := errors.AsType[*exec.ExitError](err); is {
		if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return 1, prose.Advice{What: "there is no nsenter, by which cosplay enters containers", Fix: "install util-linux"}
	}
	return 0, err
}

// steersLoader reports whether a variable can make a program of the C library load files or write to them: those that
// glibc ignores in programs with more rights than their caller. nsenter runs on the host as cosplay's user, often root, and
// any user can write to the environment of a process that says it has a device.
func steersLoader(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "MALLOC_") || strings.HasPrefix(name, "GLIBC_") ||
		slices.Contains([]string{"GCONV_PATH", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TMPDIR", "TZDIR"}, name)
}

// file is the path of what the kernel shows of a container's first process.
func (c container) file(name string) string { return filepath.Join(proc, strconv.Itoa(c.pid), name) }

// user are the words by which nsenter runs a command as the user of the container's first process.
func (c container) user() ([]string, error) {
	status, err := os.ReadFile(c.file("status"))
	if err != nil {
		return nil, err
	}
	var words []string
	for line := range strings.Lines(string(status)) {
		switch f := strings.Fields(line); {
		case len(f) > 2 && f[0] == "Uid:":
			words = append(words, "--setuid="+f[2])
		case len(f) > 2 && f[0] == "Gid:":
			words = append(words, "--setgid="+f[2])
		}
	}
	return words, nil
}

// End ends the containers that have the session's device: SIGTERM to their first processes, and after the grace period
// SIGKILL. They have no terminal that cosplay knows.
func (r Runtime) End(ctx context.Context, session, _ string, grace time.Duration) error {
	all, err := holders(mark(session))
	if err != nil || len(all) == 0 {
		return err
	}
	for _, c := range all {
		_ = c.signal(syscall.SIGTERM) // it may have ended
	}
	for deadline := time.Now().Add(grace); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if all, err = holders(mark(session)); err != nil || len(all) == 0 {
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
