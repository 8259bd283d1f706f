package main

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestSlow: a command that works for long says what it does within a second, on a terminal.
func TestSlow(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	p.run("apply", "--auto-approve")
	for _, args := range [][]string{{"status"}, {"plan"}, {"drift"}, {"verify"}, {"doctor"}, {"reset", "-y"}, {"state", "rebuild", "--auto-approve"}, {"destroy", "--auto-approve"}} {
		p.run("sim", "fault", "nvmlDeviceGetCount_v2=hang")
		c := p.command(args...)
		c.Env = append(c.Environ(), patience+"=2s")
		terminal, err := pty.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		began, lines := time.Now(), bufio.NewScanner(terminal)
		if first := nextLine(lines); !strings.HasSuffix(first, "...") || time.Since(began) > 1800*time.Millisecond {
			t.Errorf("%v: %q after %s", args, first, time.Since(began))
		}
		for lines.Scan() {
		}
		_ = c.Wait()
		terminal.Close()
		p.run("sim", "fault", "--clear")
		p.run("apply", "--auto-approve")
	}
}
