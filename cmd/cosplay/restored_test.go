package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/state"
)

// TestRestoredBesideJournal: a run is killed and then an older state restored, to
// which its journal does not belong. cosplay refuses with the command that repairs
// it, and after that nothing is lost.
func TestRestoredBesideJournal(t *testing.T) {
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	path := filepath.Join(p.dir, state.FileName)
	p.run("apply", "--auto-approve", "--exclude", "worker-5", "--exclude", "worker-6")
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p.run("apply", "--auto-approve", "--exclude", "worker-6")
	fresh := p.copyOf()
	args := []string{"apply", "--auto-approve", "--parallelism=1"}
	listed := p.moments(args...)
	refused := 0
	for _, n := range chosen(len(listed), 6) {
		fresh()
		p.dies(n, args...)
		if err := os.WriteFile(path, older, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := p.command("plan").CombinedOutput()
		if err != nil {
			refused++
			if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "cosplay state rebuild") {
				t.Errorf("killed at moment %d, %s: %s", n, inShort(listed[n-1]), out)
			}
			p.run("state", "rebuild", "--auto-approve")
		}
		wrong := append(p.converges(7), p.destroysAll(before)...)
		if len(wrong) > 0 {
			t.Errorf("killed at moment %d, %s:\n%s", n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
		}
	}
	if refused == 0 {
		t.Error("no journal was left beside an older state")
	}
}
