package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"

	"cosplay/internal/initd/inittest"
	"cosplay/internal/need"
	"cosplay/internal/runtime"
)

func TestExec(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	if _, err := w.Exec(context.Background(), w.s.ID, runtime.Program{}, runtime.Streams{}); err == nil || !strings.Contains(err.Error(), "does not exist; cosplay apply") {
		t.Errorf("without a container: %v", err)
	}
	made := w.prepare(t)
	for _, run := range []struct {
		argv        []string
		in          string
		out, failed string
		code        int
	}{
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 7"}, "", "out\n", "err\n", 7},
		{[]string{"cat"}, "one\ntwo", "one\ntwo", "", 0},
		{[]string{"sh", "-c", "cat; pwd"}, strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "/workspace\n", "", 0},
		{[]string{"sh", "-c", "kill -TERM $$"}, "", "", "", 143},
		{[]string{"true", "--"}, "", "", "", 0},
	} {
		out, failed, code := w.exec(t, strings.NewReader(run.in), run.argv...)
		if out != run.out || failed != run.failed || code != run.code {
			t.Errorf("%q: %.80q, %q, %d", run.argv, out, failed, code)
		}
	}
	if _, failed, code := w.exec(t, nil, "nowhere"); code != runtime.NotFound || !strings.Contains(failed, "nowhere") {
		t.Errorf("a program that is not there: %q, %d", failed, code)
	}
	if out, _, code := w.exec(t, strings.NewReader("id -un; exit 3\n")); !strings.Contains(out, "jane") || code != 3 {
		t.Errorf("a login shell: %q, %d", out, code)
	}
	seconds := 1
	check(t, w.Engine.client.ContainerStop(context.Background(), made.ID, container.StopOptions{Timeout: &seconds}))
	if _, err := w.Exec(context.Background(), w.s.ID, runtime.Program{}, runtime.Streams{}); err == nil || !strings.Contains(err.Error(), "does not run (exited); cosplay apply starts it") {
		t.Errorf("in a stopped one: %v", err)
	}
}

// TestTerminal: with a terminal the program has one of the same size, which
// follows; keys come through as they are, and the user's terminal is as before afterwards.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.prepare(t)
	master, slave, err := pty.Open()
	check(t, err)
	defer master.Close()
	defer slave.Close()
	check(t, pty.Setsize(slave, &pty.Winsize{Rows: 31, Cols: 97}))
	var shown inittest.Output
	go func() { _, _ = io.Copy(&shown, master) }()
	before := settings(t, slave)
	t.Setenv("TERM", "vt220")
	done := make(chan int, 1)
	script := `echo $TERM; trap 'echo interrupted; exit 9' INT; while [ "$(stty size)" != "$at" ]; do at=$(stty size); echo "size $at"; done; echo ready; while :; do sleep 0.05; [ "$(stty size)" != "$at" ] && at=$(stty size) && echo "size $at"; done`
	go func() {
		code, err := w.Exec(context.Background(), w.s.ID, runtime.Program{Argv: []string{"sh", "-c", script}}, runtime.Streams{In: slave, Out: slave, Err: os.Stderr})
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	inittest.Soon(t, "the size", func() bool { return strings.Contains(shown.String(), "size 31 97") })
	check(t, pty.Setsize(slave, &pty.Winsize{Rows: 40, Cols: 120}))
	check(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH)) // the kernel signals only the terminal's own processes
	inittest.Soon(t, "the new size", func() bool { return strings.Contains(shown.String(), "size 40 120") })
	if settings(t, slave) == before {
		t.Error("the terminal was not raw")
	}
	_, err = master.Write([]byte{3})
	check(t, err)
	code := <-done
	inittest.Soon(t, "the last output", func() bool { return strings.Contains(shown.String(), "interrupted") }) // the terminal has it, and it is read beside the test
	if code != 9 || !strings.Contains(shown.String(), "vt220") {
		t.Errorf("after Ctrl-C: %d, %q", code, shown.String())
	}
	if after := settings(t, slave); after != before {
		t.Errorf("the terminal is left as %+v, was %+v", after, before)
	}
}

// TestSignal: without a terminal a signal to this process ends the program.
func TestSignal(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.prepare(t)
	if _, err := os.Stat("/proc/" + strconv.Itoa(w.pid(t))); err != nil {
		need.Lacking(t, "the engine counts its processes elsewhere")
	}
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT) // this process is to live on
	defer signal.Stop(ignored)
	var out inittest.Output
	done := make(chan int, 1)
	go func() {
		code, err := w.Exec(context.Background(), w.s.ID, runtime.Program{Argv: []string{"sh", "-c", "trap 'exit 5' INT; echo up; while :; do sleep 0.05; done"}}, runtime.Streams{Out: &out, Err: &out})
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	inittest.Soon(t, "the program", func() bool { return out.String() == "up\n" })
	check(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
	if code := <-done; code != 5 {
		t.Errorf("it ended with %d", code)
	}

	ctx, cancel := context.WithCancel(context.Background())
	name := filepath.Join("/workspace", random())
	go func() {
		_, err := w.Exec(ctx, w.s.ID, runtime.Program{Argv: []string{"sh", "-c", "touch " + name + "; exec sleep 999"}}, runtime.Streams{Out: &out, Err: &out})
		if err == nil {
			t.Error("a run that was given up gives no error")
		}
		done <- 0
	}()
	inittest.Soon(t, "the program", func() bool {
		_, err := os.Stat(filepath.Join(w.s.Workspace, filepath.Base(name)))
		return err == nil
	})
	cancel()
	<-done
	inittest.Soon(t, "its end", func() bool { out, _, _ := w.exec(t, nil, "ps"); return !strings.Contains(out, "sleep 999") })
}

// TestSignalKeepsOut: a process that has the program's number here, but is not in the container, is another's.
func TestSignalKeepsOut(t *testing.T) {
	other := exec.Command("sleep", "1000")
	check(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	e := answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"Pid": %d}`, other.Process.Pid) })
	x := execution{client: e.client, container: strings.Repeat("0", 64), id: "1"}
	// Signal 0 asks only whether one could be sent.
	if err := x.pass(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "is another's") {
		t.Errorf("it says %v", err)
	}
}

func (w *world) pid(t *testing.T) int {
	t.Helper()
	there, err := w.inspect(context.Background(), w.s.BodyName())
	check(t, err)
	return there.State.Pid
}

func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.s.Command = []string{"sh", "-c", "echo first; while [ ! -e /workspace/go ]; do sleep 0.05; done; echo second; exec sleep 999"}
	w.prepare(t)
	ctx, cancel := context.WithCancel(context.Background())
	var out inittest.Output
	done := make(chan error, 1)
	go func() { done <- w.Logs(ctx, w.s.ID, runtime.LogOptions{Follow: true}, &out, &bytes.Buffer{}) }()
	inittest.Soon(t, "the first line", func() bool { return out.String() == "first\n" })
	check(t, os.WriteFile(filepath.Join(w.s.Workspace, "go"), nil, 0o644))
	inittest.Soon(t, "the second line", func() bool { return out.String() == "first\nsecond\n" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := w.Logs(context.Background(), "unknown-"+random(), runtime.LogOptions{}, &out, &out); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("of an unknown session: %v", err)
	}
}

// TestLogin: the real ssh knows the session by the file that is written for it,
// also after the container is replaced, and by the name of the container.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	made := w.prepare(t)
	if got := w.ssh(t, made.SSHPort, "echo", "$USER", "in", "$PWD"); got != "jane in /workspace" {
		t.Errorf("it says %q", got)
	}
	w.s.Env["SEED"] = "15"
	again := w.prepare(t)
	if got := w.ssh(t, again.SSHPort, "echo", "$SEED"); got != "15" || again.ID == made.ID {
		t.Errorf("after a replacement it says %q", got)
	}
	line, err := os.ReadFile(filepath.Join(w.Folder(w.s.ID), "known_hosts"))
	check(t, err)
	if !regexp.MustCompile(`^cosplay-one-\w+,\[127\.0\.0\.1\]:\d+ ssh-ed25519 \S+ [0-9a-f]{16}\n$`).Match(line) {
		t.Errorf("the line is %q", line)
	}
	// A host with another key is refused.
	w.Owner.Key = "other"
	_, err = w.Know(w.s.ID, w.s.Spec.SSH, again.SSHPort)
	check(t, err)
	w.Owner.Key = "key"
	if out, err := w.sshCommand(again.SSHPort, "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "verification failed") {
		t.Errorf("with another key: %v, %s", err, out)
	}
}

// settings are how a terminal is set.
func settings(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	check(t, err)
	return *now
}
