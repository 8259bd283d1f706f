package main

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestTerminal: over ssh and by exec, a program in a container has a terminal as
// wide as the one here, also after that has changed, and its exit code comes out.
func TestTerminal(t *testing.T) {
	t.Parallel()
	needEngine(t)
	p := newProject(t, `
host "lab" {
  simulate = "1 x h200"
  runtime  = "docker"
}
session "terminal" {
  target = "2060"
  image  = "cosplay-test/debian"
  ssh {
    authorized_keys = ["./key.pub"]
  }
}
`)
	newKey(t, p.dir)
	t.Cleanup(func() { removeContainers(t, p.dir) })
	p.run("apply", "--auto-approve")
	const script = `stty size; trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.05; done`
	for name, args := range map[string][]string{
		"ssh":  {"ssh", "-t", "terminal", "--", script},
		"exec": {"exec", "terminal", "--", "sh", "-c", script},
	} {
		t.Run(name, func(t *testing.T) {
			command := p.command(args...)
			terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 33, Cols: 111})
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			lines := bufio.NewScanner(terminal)
			var seen []string
			for lines.Scan() {
				line := strings.TrimSpace(lines.Text())
				if strings.HasPrefix(line, "Connection to ") {
					continue // ssh takes its leave
				}
				if line == "ready" {
					if err := pty.Setsize(terminal, &pty.Winsize{Rows: 44, Cols: 122}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				seen = append(seen, line)
			}
			err = command.Wait() // reading ends with an error once the program has
			if got := strings.Join(seen, ", "); got != "33 111, 44 122" {
				t.Errorf("the sizes are %s", got)
			}
			if code := command.ProcessState.ExitCode(); code != 7 {
				t.Errorf("the exit code is %d, %v", code, err)
			}
		})
	}
	p.run("destroy", "--auto-approve")
}

// TestFarewell: the terminals of a session that expires get a message, and the programs on them end.
func TestFarewell(t *testing.T) {
	t.Parallel()
	t.Run("process", func(t *testing.T) { farewell(t, "process", "exec") })
	t.Run("docker", func(t *testing.T) {
		needEngine(t)
		farewell(t, "docker", "exec")
		farewell(t, "docker", "ssh")
	})
}

func farewell(t *testing.T, runtime, how string) {
	p := newProject(t, `
host "lab" {
  simulate = "1 x h200"
  runtime  = "`+runtime+`"
}
session "farewell" {
  target = "2060"
  image  = "cosplay-test/debian"
  ttl    = "1s"
  ssh {
    authorized_keys = ["./key.pub"]
  }
}
`)
	newKey(t, p.dir)
	t.Cleanup(func() { removeContainers(t, p.dir) })
	p.run("apply", "--auto-approve")
	command := p.command(how, "farewell", "--", "sh", "-c", "echo ready; sleep 600")
	if how == "ssh" {
		command = p.command("ssh", "-t", "farewell", "--", "echo ready; sleep 600")
	}
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	lines, shown := bufio.NewScanner(terminal), false
	var seen []string
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		seen = append(seen, line)
		switch {
		case line == "ready":
			time.Sleep(1500 * time.Millisecond)
			p.run("expire")
		case strings.Contains(line, "session.farewell has expired (ttl). Its programs are ended now and killed after 10s."):
			shown = true
		}
	}
	if command.Wait() == nil || !shown {
		t.Errorf("%s by %s: the program ended with %v; on the terminal was %q", runtime, how, command.ProcessState, seen)
	}
}

// newKey writes a key pair for ssh: key and key.pub.
func newKey(t testing.TB, dir string) {
	t.Helper()
	if out, err := bounded(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
