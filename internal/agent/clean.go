//go:build cgo && linux

package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cleanMark is in the environment of a root agent that has executed itself again.
// sudo always adds variables, so no user can start the agent with this environment.
const cleanMark = "COSPLAY_AGENT=clean"

// isClean reports whether an environment is that of a root agent that has executed
// itself again: the mark, and the user for whom sudo started it.
func isClean(environ []string) bool {
	return slices.Contains(environ, cleanMark) && !slices.ContainsFunc(environ, func(v string) bool {
		return v != cleanMark && !strings.HasPrefix(v, "SUDO_UID=")
	})
}

// startOver executes this program again without the settings by which a user of sudo could stop, slow or end it in
// the middle of a step: limits, priority, CPUs, cgroup, timers, signal mask, open files, environment. Go's runtime
// has started under them, so a reset alone is not enough. startOver returns only on failure.
func startOver(environ []string) error {
	env := []string{cleanMark}
	for _, v := range environ {
		if strings.HasPrefix(v, "SUDO_UID=") {
			env = append(env, v)
		}
	}
	runtime.LockOSThread() // what follows concerns the thread that executes
	resetLimits()
	resetSchedule()
	if len(env) > 1 { // under systemd, the agent stays in the cgroup of its service
		leaveCgroup()
	}
	writeZero("/proc/self/oom_score_adj")
	for _, timer := range []unix.ItimerWhich{unix.ITIMER_REAL, unix.ITIMER_VIRTUAL, unix.ITIMER_PROF} {
		_, _ = unix.Setitimer(timer, unix.Itimerval{}) // timers outlive exec
	}
	const slack = 50_000 // ns, the kernel's default: with more, each wait takes as long as the user likes
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0)
	_, _, _ = unix.Syscall(unix.SYS_PERSONALITY, 0, 0, 0)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	_, _ = unix.Setsid()
	unix.Umask(0o022)
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return fmt.Errorf("executing the agent again: %w", unix.Exec("/proc/self/exe", os.Args, env))
}

// limit is a resource of which a step must not run out.
type limit struct {
	name     string
	resource int
	soft     uint64 // what it is set to; the hard limit is at least this
	least    uint64 // below which the agent does not work
}

const none = unix.RLIM_INFINITY

var limits = []limit{
	{"CPU time", unix.RLIMIT_CPU, none, none}, {"file size", unix.RLIMIT_FSIZE, none, none},
	{"data size", unix.RLIMIT_DATA, none, none}, {"address space", unix.RLIMIT_AS, none, none},
	{"resident set", unix.RLIMIT_RSS, none, none}, {"real-time CPU time", unix.RLIMIT_RTTIME, none, none},
	{"processes", unix.RLIMIT_NPROC, none, 256}, {"file locks", unix.RLIMIT_LOCKS, none, none},
	{"locked memory", unix.RLIMIT_MEMLOCK, none, 0}, {"pending signals", unix.RLIMIT_SIGPENDING, none, 256},
	{"message queues", unix.RLIMIT_MSGQUEUE, none, 0},
	{"stack size", unix.RLIMIT_STACK, 8 << 20, 1 << 20}, {"open files", unix.RLIMIT_NOFILE, 1024, 256},
}

// resetLimits needs CAP_SYS_RESOURCE to raise a hard limit. Root in a container may
// lack it: then it raises what it can, and lowLimit reports what it cannot.
func resetLimits() {
	for _, l := range limits {
		if unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: max(l.soft, hardLimit(l.resource))}) != nil {
			most := hardLimit(l.resource)
			_ = unix.Setrlimit(l.resource, &unix.Rlimit{Cur: min(l.soft, most), Max: most})
		}
	}
	for _, resource := range []int{unix.RLIMIT_CORE, unix.RLIMIT_NICE, unix.RLIMIT_RTPRIO} {
		_ = unix.Setrlimit(resource, &unix.Rlimit{})
	}
}

func hardLimit(resource int) uint64 {
	var now unix.Rlimit
	_ = unix.Getrlimit(resource, &now)
	return now.Max
}

// lowLimit is an error about the first limit under which a step could end half way. A
// limit that the machine's first process has, too, does not come from a user.
func lowLimit() error {
	for _, l := range limits {
		now, first := hardLimit(l.resource), unix.Rlimit{}
		_ = unix.Prlimit(1, l.resource, nil, &first)
		if now < l.least && now < first.Max {
			return fmt.Errorf("its limit of %s is %d and cannot be raised here: root lacks CAP_SYS_RESOURCE. Start cosplay from a shell without ulimit -H", l.name, now)
		}
	}
	return nil
}

// resetSchedule gives the thread the priority and the CPUs of any process of root.
func resetSchedule() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 0)
	var all unix.CPUSet
	all.Fill()
	_ = unix.SchedSetaffinity(0, &all)
	const ofProcess, noClass = 1, 0
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ofProcess, 0, noClass)
}

// leaveCgroup moves the process out of a cgroup that its user may freeze, kill or
// starve, as far as this machine lets it.
func leaveCgroup() {
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // version 1 has one per controller
	for _, procs := range append(groups, "/sys/fs/cgroup/cgroup.procs") {
		if _, err := os.Stat(filepath.Join(filepath.Dir(procs), "cgroup.controllers")); err == nil && filepath.Dir(procs) != "/sys/fs/cgroup" {
			continue // a group of version 2, not a root
		}
		writeZero(procs)
	}
}

// writeZero writes 0 into a file of the kernel. In oom_score_adj it is no adjustment, in cgroup.procs this process.
func writeZero(path string) {
	if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
		_, _ = file.WriteString("0")
		file.Close()
	}
}
