package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// liveTop is cosplay top on a terminal, as a shell starts it.
type liveTop struct {
	t        *testing.T
	terminal *os.File
	slave    *os.File
	process  *os.Process
	before   unix.Termios
	text     chan string
	seen     string
}

func (p project) liveTop(t *testing.T, columns uint16) *liveTop {
	t.Helper()
	terminal, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	command := p.command("top", "--interval", "200ms")
	command.Env = append(command.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	command.Stdin, command.Stdout, command.Stderr = slave, slave, slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	top := &liveTop{t: t, terminal: terminal, slave: slave, process: command.Process, before: *before, text: make(chan string, 1024)}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = terminal.Close()
		_ = slave.Close()
	})
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := terminal.Read(buffer)
			if err != nil {
				close(top.text)
				return
			}
			top.text <- string(buffer[:n])
		}
	}()
	return top
}

// redrawn waits for a text on a screen of another size, of which the terminal gets everything and not what has changed.
func (l *liveTop) redrawn(columns uint16, text string) (before string) {
	l.t.Helper()
	if err := pty.Setsize(l.terminal, &pty.Winsize{Rows: 12, Cols: columns}); err != nil {
		l.t.Fatal(err)
	}
	l.sees("\x1b[2J")
	return l.sees(text)
}

// sees waits until the terminal has got a text since the last call, and returns what came before it.
func (l *liveTop) sees(text string) (before string) {
	l.t.Helper()
	deadline := time.After(30 * time.Second)
	for !strings.Contains(l.seen, text) {
		select {
		case more, open := <-l.text:
			if l.seen += more; !open {
				l.t.Fatalf("the terminal was closed before %q:\n%q", text, l.seen)
			}
		case <-deadline:
			l.t.Fatalf("the terminal did not get %q:\n%q", text, l.seen)
		}
	}
	before, l.seen, _ = strings.Cut(l.seen, text)
	return before
}

// children is the number of processes that it has started and that run.
func (l *liveTop) children() (count int) {
	l.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.process.Pid))
	if err != nil || len(lists) == 0 {
		l.t.Fatalf("the children of %d: %v", l.process.Pid, err)
	}
	for _, name := range lists {
		list, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the thread has ended
			l.t.Fatal(err)
		}
		count += len(strings.Fields(string(list)))
	}
	return count
}

func (l *liveTop) press(keys string) {
	if _, err := io.WriteString(l.terminal, keys); err != nil {
		l.t.Error(err)
	}
}

// ends waits for the end, with an exit code, and for the terminal to be as before.
func (l *liveTop) ends(want string) {
	l.t.Helper()
	state, err := l.process.Wait()
	if err != nil {
		l.t.Fatal(err)
	}
	if got := state.String(); got != want {
		l.t.Errorf("it ended with %s, want %s", got, want)
	}
	l.sees("\x1b[?1049l") // it has left the alternate screen
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		now, err := unix.IoctlGetTermios(int(l.slave.Fd()), unix.TCGETS)
		if err == nil && *now == l.before {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("the terminal is %+v (%v), and was %+v", now, err, l.before)
		}
	}
}

// TestTop: a live table follows what happens, answers keys at every width, and leaves the terminal as it was, however it ends.
func TestTop(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
host "lab" {
  simulate = "1 x h200"
  runtime  = "process"
}
session "worker" {
  count  = 3
  target = "2060"
}
`)
	p.run("apply", "--auto-approve")
	for columns, end := range map[uint16]struct {
		want string
		how  func(*liveTop)
	}{
		60:  {"exit status 0", func(l *liveTop) { l.press("q") }},
		80:  {"exit status 130", func(l *liveTop) { _ = l.process.Signal(syscall.SIGTERM) }},
		200: {"signal: killed", func(l *liveTop) { _ = l.process.Kill() }},
	} {
		t.Run(end.want, func(t *testing.T) {
			top := p.liveTop(t, columns)
			top.sees("worker-2")
			top.press("\x1b[B\r") // down, enter
			top.sees("session.worker[0]")
			top.redrawn(columns+1, "session.worker[0]")
			top.press("\r/r-2")
			top.sees("filter")
			top.redrawn(columns, "worker-2")
			top.press("\r")
			top.redrawn(columns+1, "filter: r-2")
			end.how(top)
			top.ends(end.want)
		})
	}
	t.Run("a session that is removed", func(t *testing.T) {
		top := p.liveTop(t, 80)
		top.sees("3 sessions")
		p.run("destroy", "--auto-approve", "--target", "worker-2")
		top.sees("2 sessions")
		top.press("\x1a") // no shell can continue it: the kernel does not stop it
		top.sees("\x1b[?1049l")
		top.sees("\x1b[?1049h")
		top.sees("2 sessions")
		top.press("\x03")
		top.ends("exit status 0")
	})
	t.Run("a driver that hangs", func(t *testing.T) {
		top := p.liveTop(t, 80)
		top.sees("2 sessions")
		p.run("sim", "fault", "nvmlDeviceGetMigMode:0=hang")
		time.Sleep(5 * time.Second) // the agent was started again
		begun := time.Now()
		top.press("q")
		top.ends("exit status 0")
		if took := time.Since(begun); took > 10*time.Second { // the deadline of a reading
			t.Errorf("it ended after %s", took)
		}
		p.run("sim", "fault", "--clear")
	})
	t.Run("no project", func(t *testing.T) {
		machine := project{t: t, dir: t.TempDir(), env: []string{"LD_LIBRARY_PATH=" + filepath.Join(p.dir, ".cosplay", "sim", "lab")}}
		top := machine.liveTop(t, 120)
		top.sees("2 foreign slices")
		top.sees("GPUs and states at") // as they were
		if got := top.children(); got != 1 {
			t.Errorf("it has %d processes besides the terminal's guard: a GPU stays open", got-1)
		}
		top.press("q")
		top.ends("exit status 0")
	})
	p.run("destroy", "--auto-approve")
}
