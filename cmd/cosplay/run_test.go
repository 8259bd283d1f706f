package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// justHost is a project without sessions.
const justHost = `host "lab" { simulate = "1 x h200" }`

// runnable is such a project, with what its hardware is like before anything.
func runnable(t *testing.T) (project, []byte) {
	p := newProject(t, justHost)
	p.run("run", "2060", "--", "true")
	return p, p.hardware()
}

// nothingLeft reports what a run has left.
func (p project) nothingLeft(before []byte) []string {
	left := p.traces(before)
	if _, err := os.Stat(filepath.Join(p.dir, ".cosplay/runs")); err == nil {
		left = append(left, "the folder of runs")
	}
	return left
}

// TestRunKilled: what a run has left that was killed at any moment, the next one
// removes.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	fresh := p.copyOf()
	run := []string{"run", "2060", "--", "true"}
	listed := p.moments(run...)
	tried := chosen(len(listed), 12)
	for _, n := range tried {
		fresh()
		if !p.dies(n, run...) {
			t.Errorf("there is no moment %d", n)
			continue
		}
		out := p.run(run...)
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("killed at moment %d, %s: left are %s\n%s", n, inShort(listed[n-1]), left, out)
		}
	}
	t.Logf("%d moments, killed at %d", len(listed), len(tried))
}

// TestRunIgnoresSignals: a command that ignores the signals is killed after the second,
// and the session is removed.
func TestRunIgnoresSignals(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	c := p.command("run", "2060", "--", "sh", "-c", "trap '' TERM INT; echo up; while :; do sleep 0.1; done")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	out, err := c.StdoutPipe()
	if err := errors.Join(err, c.Start()); err != nil {
		t.Fatal(err)
	}
	nextLine(bufio.NewScanner(out))
	kill := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // not one signal that comes twice
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() != 137 {
		t.Errorf("it ends with %s", c.ProcessState)
	}
	if left := p.nothingLeft(before); len(left) > 0 {
		t.Errorf("left are %s", left)
	}
}

// TestRunKilledThenDestroyed: drift names the command that removes the leftovers of a run
// that was killed, and destroy removes them.
func TestRunKilledThenDestroyed(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	run := []string{"run", "2060", "--", "true"}
	fresh := p.copyOf()
	listed := p.moments(run...)
	for _, n := range chosen(len(listed), 4) {
		fresh()
		if !p.dies(n, run...) {
			t.Fatalf("there is no moment %d", n)
		}
		if left, _ := os.ReadDir(filepath.Join(p.dir, ".cosplay/runs")); len(left) == 0 {
			continue
		}
		if out := p.run("drift"); !strings.Contains(out, "cosplay reset") {
			t.Errorf("killed at moment %d, %s: drift says %q", n, inShort(listed[n-1]), out)
		}
		out := p.run("destroy", "--auto-approve")
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("killed at moment %d, %s: left are %s\n%s", n, inShort(listed[n-1]), left, out)
		}
	}
}

// TestRunKilledWithItsHost: a run that describes its simulated host leaves nothing in the
// folder, even if it was killed and the next run is on another kind of GPU.
func TestRunKilledWithItsHost(t *testing.T) {
	t.Parallel()
	p := newProject(t, justHost)
	empty := func() {
		if err := errors.Join(os.RemoveAll(p.dir), os.Mkdir(p.dir, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	empty()
	run := []string{"run", "2060", "--simulate", "1 x h200", "--", "true"}
	listed := p.moments(run...)
	for _, n := range chosen(len(listed), 12) {
		empty()
		if !p.dies(n, run...) {
			t.Errorf("there is no moment %d", n)
		}
		out := p.run("run", "2060", "--simulate", "1 x t4", "--", "true")
		if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
			t.Errorf("killed at moment %d, %s: left are %v %v\n%s", n, inShort(listed[n-1]), left, err, out)
		}
	}
}

// TestRunsAtOnce: as many as there are slices find room at the same time, in one
// folder. One more is refused.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	const script = `echo up; read end`
	var (
		ends   []func()
		starts sync.WaitGroup
	)
	for range 7 {
		c := p.command("run", "2060", "--", "sh", "-c", script)
		var said strings.Builder
		c.Stderr = &said
		in, err1 := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err1, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		starts.Go(func() { nextLine(bufio.NewScanner(out)) })
		ends = append(ends, func() {
			_, _ = in.Write([]byte("\n"))
			if err := c.Wait(); err != nil {
				t.Errorf("%v\n%s", err, said.String())
			}
		})
	}
	starts.Wait()
	if n := p.slices(); n != 7 {
		t.Errorf("there are %d slices", n)
	}
	if out, err := p.command("run", "2060", "--", "true").CombinedOutput(); err == nil || strings.Contains(string(out), "Removed in") {
		t.Errorf("an eighth: %v\n%s", err, out)
	}
	for _, end := range ends {
		end()
	}
	if left := p.nothingLeft(before); len(left) > 0 {
		t.Errorf("left are %s", left)
	}
}

// TestRunSignals: a signal ends the command, or its preparation, and the session is
// removed.
func TestRunSignals(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		c := p.command("run", "2060", "--", "sh", "-c", "echo up; exec sleep 100")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
		out, err := c.StdoutPipe()
		if err := errors.Join(err, c.Start()); err != nil {
			t.Fatal(err)
		}
		nextLine(bufio.NewScanner(out))
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if _ = c.Wait(); c.ProcessState.ExitCode() != code {
			t.Errorf("%s: the exit code is %d", signal, c.ProcessState.ExitCode())
		}
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("%s: left are %s", signal, left)
		}
	}
	listed := p.moments("run", "2060", "--", "true")
	for _, part := range []int{1, 2} { // on the way to the command
		n := len(listed) * part / 6
		out, err := p.with(signalsAt, strconv.Itoa(n)+" TERM", "run", "2060", "--", "touch", "ran")
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("TERM at moment %d, %s: %v\n%s", n, inShort(listed[n-1]), err, out)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "ran")); err == nil {
			t.Errorf("TERM at moment %d, %s: the command was run", n, inShort(listed[n-1]))
		}
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("TERM at moment %d, %s: left are %s", n, inShort(listed[n-1]), left)
		}
	}
}

// TestRunUnread: the output need not be read to its end. The command gets the same
// error as outside a session, and the session is removed.
func TestRunUnread(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	for command, code := range map[string]int{"exec yes": 141, "sleep 0.3; exit 7": 7} {
		c := p.command("run", "2060", "--", "sh", "-c", command)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = writer, writer
		if err := errors.Join(c.Start(), writer.Close()); err != nil {
			t.Fatal(err)
		}
		nextLine(bufio.NewScanner(reader))
		reader.Close()
		if _ = c.Wait(); c.ProcessState.ExitCode() != code {
			t.Errorf("%s: %s", command, c.ProcessState)
		}
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("%s: left are %s", command, left)
		}
	}
}

// TestRunStoppedEarly: a signal that comes before there is anything to stop is not
// forgotten.
func TestRunStoppedEarly(t *testing.T) {
	t.Parallel()
	p, _ := runnable(t)
	p.run("sim", "fault", "nvmlDeviceGetCount_v2=hang")
	c := p.command("run", "2060", "--", "touch", "ran")
	c.Env = append(c.Environ(), patience+"=5s")
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the call that hangs", func() bool { return len(p.shown().Faults) == 0 })
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() != 130 {
		t.Errorf("%s\n%s", c.ProcessState, said.String())
	}
	if _, err := os.Stat(filepath.Join(p.dir, "ran")); err == nil {
		t.Error("the command was run")
	}
	p.run("sim", "fault", "--clear")
	if left := p.nothingLeft(p.hardware()); len(left) > 0 {
		t.Errorf("left are %s", left)
	}
}

// TestRunsInTurn: runs that come and go on one GPU each have the clock that they
// were promised, as far as the power limit of the first permits, and the last leaves it as the first found it.
func TestRunsInTurn(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() {
			for range 8 {
				out, err := p.command("run", "2060", "--", "true").CombinedOutput()
				said := oneLine(string(out))
				limited := strings.Count(said, "GPU 0 at 1575 MHz is off by FP32") // by the first one's power limit
				if err != nil || limited != strings.Count(said, "since the power limit stays at 200 W") || limited != strings.Count(said, "Warning") ||
					limited == 0 && !strings.Contains(said, "FP32 +0.0 %") || strings.Contains(said, "eftover") {
					t.Errorf("%v\n%s", err, said)
				}
			}
		})
	}
	loops.Wait()
	if left := p.nothingLeft(before); len(left) > 0 {
		t.Errorf("left are %s", left)
	}
}
