package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSignals: Ctrl-C once, and what else ends programs, finishes the step that
// runs, saves and stops; twice it stops at once, and the journal has the truth.
// Whichever, the next command goes on from there.
func TestSignals(t *testing.T) {
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	fresh := p.copyOf()
	listed := p.moments("apply", "--auto-approve", "--parallelism", "1")
	for _, test := range []struct {
		signals string
		journal int
	}{{"INT", 0}, {"TERM", 0}, {"HUP", 0}, {"INT INT", 1}, {"TERM INT", 1}, {"HUP HUP", 1}} {
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
			wrong = append(wrong, p.goes(before)...)
			stopped()
			wrong = append(wrong, p.goes(before)...)
			if len(wrong) > 0 {
				t.Errorf("%s:\n%s", name, strings.Join(wrong, "\n"))
			}
		}
	}
}
