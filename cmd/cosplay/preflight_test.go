package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestCheckedAgainAfterYes: a change that blocks the plan, made while the user is asked,
// is found before the first write, and the user is not asked again.
func TestCheckedAgainAfterYes(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
host "lab" { simulate = "1 x h200" }
session "w" {
  target    = "2060"
  workspace = "./w"
}
`)
	p.run("plan")
	before := p.hardware()
	command := p.command("apply")
	command.Env = append(command.Environ(), "NO_COLOR=1")
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var said strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		if err != nil {
			break // the program has ended
		}
		said.Write(buffer[:n])
		if strings.HasSuffix(said.String(), "accepted: ") {
			if err := os.WriteFile(filepath.Join(p.dir, "w"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := terminal.WriteString("yes\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(said.String(), "Apply these changes?"); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if !strings.Contains(oneLine(said.String()), "cannot be created") || !bytes.Equal(p.hardware(), before) {
		t.Errorf("it went on:\n%s", said.String())
	}
}
