package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestSignals: the first Ctrl-C, like other signals that end programs, finishes the step
// that runs, saves and stops; the second stops at once, and the journal has what was
// done. In both cases the next command continues.
func TestSignals(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	fresh := p.copyOf()
	listed := p.moments("apply", "--auto-approve", "--parallelism", "1")
	for _, test := range []struct {
		signals string
		journal int
	}{{"INT", 0}, {"TERM", 0}, {"HUP", 0}, {"HUP HUP", 0}, {"INT INT", 1}, {"TERM INT", 1}, {"HUP TERM", 1}} {
		for _, part := range []int{1, 2, 3} {
			n := len(listed) * part / 4
			fresh()
			c := p.command("apply", "--auto-approve", "--parallelism", "1")
			c.Env = append(c.Environ(), signalsAt+"="+strings.Join([]string{strconv.Itoa(n), test.signals}, " "))
			out, err := c.CombinedOutput()
			p.quiet()
			name := test.signals + " at moment " + strconv.Itoa(n) + ", " + inShort(listed[n-1])
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			if found, _ := filepath.Glob(filepath.Join(p.dir, "*.journal")); len(found) != test.journal {
				t.Errorf("%s: there are %d journals", name, len(found))
			}
			if !strings.Contains(oneLine(string(out)), "Once more stops at once") {
				t.Errorf("%s: it does not say what it does:\n%s", name, out)
			}
			stopped := p.copyOf()
			wrong := p.converges(7)
			wrong = append(wrong, p.destroysAll(before)...)
			stopped()
			wrong = append(wrong, p.destroysAll(before)...)
			if len(wrong) > 0 {
				t.Errorf("%s:\n%s", name, strings.Join(wrong, "\n"))
			}
		}
	}
}

// TestUnreadChanges: a command that changes something does not end where the reader of
// its output closes it.
func TestUnreadChanges(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	for _, test := range []struct {
		args   []string
		slices int
	}{{[]string{"apply", "--auto-approve"}, 7}, {[]string{"apply", "--auto-approve", "--replace", "worker", "--json"}, 7}, {[]string{"destroy", "--auto-approve"}, 0}} {
		c := p.command(test.args...)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout, c.Stderr = writer, writer
		if err := errors.Join(c.Start(), writer.Close(), reader.Close()); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %v", test.args, err)
		}
		if n := p.slices(); n != test.slices {
			t.Errorf("%v: there are %d slices", test.args, n)
		}
		if found, _ := filepath.Glob(filepath.Join(p.dir, "*.journal")); len(found) > 0 {
			t.Errorf("%v: there is a journal", test.args)
		}
	}
}

// TestHangUp: a terminal that hangs up stops a run like one Ctrl-C, although the shell
// and the kernel both send SIGHUP; nohup keeps it running.
func TestHangUp(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	p.run("plan")
	fresh := p.copyOf()
	half := len(p.moments("apply", "--auto-approve", "--parallelism", "1")) / 2
	for _, test := range []struct {
		trap string
		code int
	}{{":", 130}, {"''", 0}} {
		fresh()
		apply := p.command("apply", "--auto-approve", "--parallelism", "1")
		inner := `trap ` + test.trap + ` HUP; "$0" "$@"; echo $? >code`
		leader := exec.Command("sh", append([]string{"-c", `sh -c "$@"; true`, "sh", inner, apply.Path}, apply.Args[1:]...)...)
		leader.Dir, leader.Env = apply.Dir, append(apply.Environ(), hangsUpAt+"="+strconv.Itoa(half))
		terminal, err := pty.Start(leader)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(terminal)
		for line := nextLine(lines); line != "" && !strings.Contains(line, "[ 2/"); line = nextLine(lines) {
		}
		terminal.Close()
		_ = leader.Wait()
		wait(t, "the end of apply", func() bool {
			code, _ := os.ReadFile(filepath.Join(p.dir, "code"))
			return len(code) > 0
		})
		p.quiet()
		code, _ := os.ReadFile(filepath.Join(p.dir, "code"))
		if string(code) != fmt.Sprintln(test.code) {
			t.Errorf("%s: the exit code is %q, not %d", test.trap, code, test.code)
		}
		if found, _ := filepath.Glob(filepath.Join(p.dir, "*.journal")); len(found) > 0 {
			t.Errorf("%s: there is a journal", test.trap)
		}
	}
}

// TestExecSignals: a program in a session gets each signal once, whether it was
// typed on the terminal or sent to cosplay.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	p.run("apply", "--auto-approve")
	// A shell cannot trap a signal that was ignored when it started. Signals that come
	// together would be delivered as one, so the test waits for each.
	const script = `for s in INT QUIT TERM HUP; do trap "echo got $s" $s; done; trap 'exit 5' USR1; echo up $$; while :; do sleep 0.05; done`
	start := func(t *testing.T) (*exec.Cmd, *os.File, *bufio.Scanner, int) {
		command := p.command("exec", "worker-0", "--", "sh", "-c", script)
		terminal, err := pty.Start(command)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { terminal.Close() })
		lines := bufio.NewScanner(terminal)
		pid, err := strconv.Atoi(strings.TrimPrefix(nextLine(lines), "up "))
		if err != nil {
			t.Fatal("the program does not say its number: ", err)
		}
		return command, terminal, lines, pid
	}
	ends := func(t *testing.T, command *exec.Cmd, lines *bufio.Scanner, pid int, want string) {
		all := ""
		for line := nextLine(lines); line != ""; line = nextLine(lines) {
			all += strings.NewReplacer("Quit", "", " (core dumped)", "").Replace(line) // of the shell's sleep
			if strings.Contains(all, want) && pid != 0 {
				time.Sleep(200 * time.Millisecond) // for a signal that comes twice
				if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
				pid = 0
			}
		}
		_ = command.Wait()
		if code := command.ProcessState.ExitCode(); code != 5 {
			t.Errorf("the exit code is %d", code)
		}
		if all != want {
			t.Errorf("it says %q, not %q", all, want)
		}
	}
	for key, want := range map[string]string{"\x03": "^Cgot INT", "\x1c": `^\got QUIT`} {
		t.Run("typed "+want, func(t *testing.T) {
			command, terminal, lines, pid := start(t)
			if _, err := terminal.WriteString(key); err != nil {
				t.Fatal(err)
			}
			ends(t, command, lines, pid, want)
		})
	}
	for signal, want := range map[syscall.Signal]string{syscall.SIGTERM: "got TERM", syscall.SIGHUP: "got HUP"} {
		t.Run("sent "+want, func(t *testing.T) {
			command, _, lines, pid := start(t)
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			ends(t, command, lines, pid, want)
		})
	}
	t.Run("sent without a terminal", func(t *testing.T) {
		command := p.command("exec", "worker-0", "--", "sh", "-c", "trap 'exit 5' INT; echo up; while :; do sleep 0.05; done")
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		nextLine(bufio.NewScanner(out))
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if _ = command.Wait(); command.ProcessState.ExitCode() != 5 {
			t.Errorf("the exit code is %d", command.ProcessState.ExitCode())
		}
	})
}

// nextLine is the next that is not empty; "" is the end.
func nextLine(lines *bufio.Scanner) string {
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			return line
		}
	}
	return ""
}
