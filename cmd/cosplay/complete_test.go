package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"cosplay/internal/need"
)

const bashCompletion = "/usr/share/bash-completion/bash_completion"

const completedFleet = `
host "lab" { simulate = "1 x h200" }
session "trainer" {
  count  = 2
  target = "2060"
}
output "slices" { value = session.trainer[*].slice }
`

// TestCompletionInShells types words and a tab into real shells, and reads what became of the line.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	p := newProject(t, completedFleet)
	p.run("apply", "--auto-approve")
	p.run("plan", "--out", "saved.plan")
	lines := map[string]string{
		"cosplay ssh trainer-1":             "cosplay ssh trainer-1",
		"cosplay exec t":                    "cosplay exec trainer-",
		"cosplay plan --target=session.tra": "cosplay plan --target=session.trainer",
		"cosplay state show session.tr":     "cosplay state show session.trainer",
		"cosplay output sl":                 "cosplay output slices",
		"cosplay info 2060-s":               "cosplay info 2060-super",
		"cosplay fit 2060 --on h200":        "cosplay fit 2060 --on h200",
		"cosplay run 2060 --host l":         "cosplay run 2060 --host lab",
		"cosplay apply sav":                 "cosplay apply saved.plan",
		"cosplay fmt fle":                   "cosplay fmt fleet.hcl",
		"cosplay valid":                     "cosplay validate",
	}
	for shell, start := range map[string][]string{
		"bash": {"bash", "--noprofile", "--norc", "-i"},
		"zsh":  {"zsh", "-f", "-i"},
		"fish": {"fish", "--no-config", "-i"},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				need.Lacking(t, "%s is not installed (apt-get install %s)", shell, shell)
			}
			if _, err := os.Stat(bashCompletion); shell == "bash" && err != nil {
				need.Lacking(t, "bash-completion is not installed (apt-get install bash-completion)")
			}
			s := startShell(t, p.dir, start...)
			s.typed(map[string]string{
				"bash": "PS1=; source " + bashCompletion + "; source <(cosplay completion bash); bind 'set bell-style none'\n",
				"zsh":  "PS1=; unsetopt prompt_sp nomatch beep; autoload -U compinit; compinit -u -D; source <(cosplay completion zsh); compdef _cosplay cosplay\n",
				"fish": "function fish_prompt; end; cosplay completion fish | source\n",
			}[shell])
			for typed, want := range lines {
				if got := s.completed(typed); got != want {
					t.Errorf("%q becomes %q, not %q", typed, got, want)
				}
			}
		})
	}
}

// shell is an interactive shell on a terminal.
type shell struct {
	t        *testing.T
	terminal *os.File
	seen     chan string
	out      string
	asked    int
}

func startShell(t *testing.T, dir string, command ...string) *shell {
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "TERM=dumb", "HOME="+dir, "LC_ALL=C.UTF-8")
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 50, Cols: 300})
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, terminal: terminal, seen: make(chan string, 1000)}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = terminal.Close()
		_ = c.Wait()
	})
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			if err != nil {
				close(s.seen)
				return
			}
			s.seen <- string(buffer[:n])
		}
	}()
	return s
}

func (s *shell) typed(keys string) {
	if _, err := s.terminal.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// completed types the beginning of a line and a tab, then has the shell print the line as it is now.
func (s *shell) completed(line string) string {
	s.t.Helper()
	s.asked++
	before, after := fmt.Sprintf("<%d:", s.asked), fmt.Sprintf(":%d>", s.asked)
	// The marks are put together by the shell, so that the echo of what is typed does not have them.
	s.typed(line + "\t" + "\x01" + fmt.Sprintf("printf '%%s ' '<''%d:' ", s.asked) + "\x05" + fmt.Sprintf(" ':''%d>'\n", s.asked))
	over := time.After(hang)
	for {
		if _, rest, begun := strings.Cut(s.out, before); begun {
			if shown, _, ended := strings.Cut(rest, after); ended {
				s.out = ""
				return strings.Join(strings.Fields(shown), " ")
			}
		}
		select {
		case more, open := <-s.seen:
			if s.out += more; !open {
				s.t.Fatalf("the shell ended after\n%s", s.out)
			}
		case <-over:
			s.t.Fatalf("no answer to %q, only\n%q", line, s.out)
		}
	}
}

// TestCompletionStartsNothing counts how often the program is started, and how often the engine is called: a completion
// starts no agent and opens no engine, which plan does.
func TestCompletionStartsNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t, completedFleet)
	p.run("apply", "--auto-approve")
	real, err := exec.LookPath("cosplay")
	if err != nil {
		t.Fatal(err)
	}
	// Another process copies: while this one writes, a program that a parallel test starts could inherit the file,
	// and the kernel would refuse to run it (ETXTBSY).
	copied := filepath.Join(t.TempDir(), "cosplay")
	if out, err := exec.Command("cp", real, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	engine, err := net.Listen("unix", filepath.Join(t.TempDir(), "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	calls := make(chan struct{}, 1000)
	go func() {
		for {
			c, err := engine.Accept()
			if err != nil {
				return
			}
			calls <- struct{}{}
			_ = c.Close()
		}
	}()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(watch) }()
	if _, err := unix.InotifyAddWatch(watch, copied, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	starts := func(args ...string) int {
		t.Helper()
		c := bounded(t, copied, args...)
		c.Dir, c.Env = p.dir, append(os.Environ(), "DOCKER_HOST=unix://"+engine.Addr().String())
		if err := c.Run(); err != nil && args[0] != "plan" { // the engine of plan is none
			t.Fatalf("%q: %v", args, err)
		}
		events := make([]byte, 1<<16)
		n, _ := unix.Read(watch, events)
		opened := 0
		for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent { // events of a file have no name
			if binary.NativeEndian.Uint32(events[at+4:])&unix.IN_OPEN != 0 {
				opened++
			}
		}
		return opened // the kernel joins equal events, but each start reads the file as well
	}
	alone := starts("version")
	if alone == 0 {
		t.Fatal("no start of the program was seen")
	}
	for _, args := range [][]string{{"ssh", ""}, {"plan", "--target", ""}, {"state", "show", ""}, {"output", ""}, {"run", "--host", ""}, {"import", ""}} {
		if n := starts(append([]string{"__complete"}, args...)...); n > alone || len(calls) > 0 {
			t.Errorf("the completion of %q starts the program %d/%d times, and calls the engine %d times", args, n, alone, len(calls))
		}
	}
	if n := starts("plan"); n <= alone {
		t.Errorf("plan starts the program %d/%d times: the count sees no agent", n, alone)
	}
}
