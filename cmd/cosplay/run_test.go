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
		p.age()
		out := p.run(run...)
		if left := p.nothingLeft(before); len(left) > 0 {
			t.Errorf("killed at moment %d, %s: left are %s\n%s", n, inShort(listed[n-1]), left, out)
		}
	}
	t.Logf("%d moments, killed at %d", len(listed), len(tried))
}

// age lets two hours pass for the runs of a folder: a run that was killed before it had
// anything looks like one that begins.
func (p project) age() {
	begun, _ := filepath.Glob(filepath.Join(p.dir, ".cosplay/runs/*"))
	for _, dir := range begun {
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			p.t.Fatal(err)
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
		p.age()
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
// were promised, and the last leaves it as the first found it.
func TestRunsInTurn(t *testing.T) {
	t.Parallel()
	p, before := runnable(t)
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() {
			for range 8 {
				out, err := p.command("run", "2060", "--", "true").CombinedOutput()
				if said := string(out); err != nil || !strings.Contains(said, "FP32 +0.0 %") || strings.Contains(said, "Warning") || strings.Contains(said, "eftover") {
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
