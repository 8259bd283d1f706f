package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// handedDown is what a process of sudo inherits from a user: limits, priority, CPU,
// timer slack, mode mask, ignored signals, a badness for the OOM killer, and a folder
// that was removed. The first word is the kind of limit: S is soft, SH is soft and hard.
const handedDown = `kind=$0
mkdir /tmp/gone.$$; cd /tmp/gone.$$; rmdir /tmp/gone.$$
echo 500 >/proc/self/oom_score_adj; umask 777
echo 8000000000 >/proc/$$/timerslack_ns || exit
trap '' HUP INT TERM CHLD PIPE USR1
ulimit -${kind}v 1400000 -${kind}d 1400000 -${kind}s 512 -${kind}n 128 -${kind}u 200 -${kind}c 0 -${kind}l 8 -${kind}t 20 -${kind}f 8 -${kind}i 64 || exit
export GOMEMLIMIT=1000 GOGC=1 GODEBUG=madvdontneed=1
exec nice -n 19 ionice -c 3 taskset 1 chrt --idle 0 "$@"`

// mayRaise reports whether root can raise hard limits on this machine.
func mayRaise(t *testing.T) bool {
	bits, err := strconv.ParseUint(lineOf(t, "/proc/self/status", "CapEff:"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// TestPrivilegedClean: nothing that a user hands down through sudo reaches the
// process that changes GPUs, or that process refuses to change any.
func TestPrivilegedClean(t *testing.T) {
	m := newMachine(t)
	m.allow("bob ALL=(root) NOPASSWD: " + installed + " agent --privileged --library " + hardware)
	for _, tool := range []string{"bash", "ionice", "taskset", "chrt"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatal(err)
		}
	}
	by := func(kind string) *wire {
		return m.wireBy(bob, "bash", "-c", handedDown, kind, "sudo", "-n", installed, "agent", "--privileged", "--library", hardware)
	}
	if hard := by("SH"); mayRaise(t) {
		hard.granted(order{"op": "read"})
		m.isClean(hard)
	} else {
		hard.refused("cannot be raised here", order{"op": "read"})
		hard.refused("cannot be raised here", order{"op": "take", "gpu": m.gpus()[0].UUID, "take": order{}, "holder": order{"lineage": "b0b", "state": "/s"}})
		if len(m.book()) > 0 {
			t.Error("the GPU was acquired")
		}
	}
	soft := by("S")
	soft.granted(order{"op": "read"})
	m.isClean(soft)
}

func (m *machine) isClean(w *wire) {
	t := m.t
	t.Helper()
	pid := w.agent()
	proc := fmt.Sprintf("/proc/%d/", pid)
	for _, name := range []string{"Max cpu time", "Max file size", "Max data size", "Max resident set", "Max processes", "Max locked memory",
		"Max address space", "Max file locks", "Max pending signals", "Max msgqueue size", "Max realtime timeout"} {
		soft := strings.Fields(lineOf(t, proc+"limits", name))[0]
		if first := strings.Fields(lineOf(t, "/proc/self/limits", name))[1]; soft != "unlimited" && soft != first {
			t.Errorf("%s is %s", name, soft)
		}
	}
	for name, want := range map[string]string{"Max stack size": "8388608 ", "Max core file size": "0 0"} {
		if got := lineOf(t, proc+"limits", name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if files, _ := strconv.Atoi(strings.Fields(lineOf(t, proc+"limits", "Max open files"))[0]); files < 1024 {
		t.Errorf("it may open %d files", files)
	}
	for name, want := range map[string]string{"Umask:": "0022", "SigBlk:": "0000000000000000", "Uid:": "0 0 0 0"} {
		if got := lineOf(t, proc+"status", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if cpus := lineOf(t, proc+"status", "Cpus_allowed:"); cpus != lineOf(t, "/proc/self/status", "Cpus_allowed:") {
		t.Errorf("it may run on the CPUs %s", cpus)
	}
	environ, err := os.ReadFile(proc + "environ")
	if want := fmt.Sprintf("COSPLAY_AGENT=clean\x00SUDO_UID=%d\x00", bob); err != nil || string(environ) != want {
		t.Errorf("environment %q, %v", environ, err)
	}
	if score, err := os.ReadFile(proc + "oom_score_adj"); err != nil || strings.TrimSpace(string(score)) != "0" {
		t.Errorf("badness %s, %v", score, err)
	}
	tasks, _ := filepath.Glob(proc + "task/*")
	for _, task := range tasks { // of which each has its own
		slack, err := os.ReadFile("/proc/" + filepath.Base(task) + "/timerslack_ns")
		if err == nil && strings.TrimSpace(string(slack)) != "50000" {
			t.Errorf("timer slack of %s ns", slack)
		}
	}
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || nice != 20 { // the kernel's 20 - nice
		t.Errorf("nice %d, %v", 20-nice, err)
	}
	if attr, err := unix.SchedGetAttr(pid, 0); err != nil || attr.Policy != unix.SCHED_NORMAL {
		t.Errorf("schedule %+v, %v", attr, err)
	}
	if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != "/" {
		t.Errorf("it is in %s, %v", cwd, err)
	}
}

// lineOf is what follows a name in a file of /proc, with single spaces.
func lineOf(t *testing.T, path, name string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Join(strings.Fields(rest), " ")
		}
	}
	t.Fatalf("%s has no %q", path, name)
	return ""
}

// agent finds the process of root that answers on a wire: it has executed itself
// again.
func (w *wire) agent() int {
	w.t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(data), "COSPLAY_AGENT=clean\x00") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if descends(pid, w.cmd.Process.Pid) {
			return pid
		}
	}
	w.t.Fatal("no root agent has executed itself again")
	return 0
}

func descends(pid, from int) bool {
	for pid > 1 {
		if pid == from {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, _ = strconv.Atoi(fields[1])
	}
	return false
}
