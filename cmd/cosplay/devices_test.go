package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/need"
)

const ofOthers = `
host "lab" {
  simulate = "1 x h200"
  runtime  = "cdi"
}
session "moment" {
  count  = 2
  target = "2060"
}
`

// specifications are those of the project's devices, beside its folder.
func (p project) specifications() (all []string) {
	p.t.Helper()
	found, err := filepath.Glob("/var/run/cdi/cosplay.dev-session_moment-*")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range found {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), p.dir+"/") {
			all = append(all, file)
		}
	}
	return all
}

// TestEveryMomentDevices kills apply and destroy at their moments, of sessions whose devices are beside the project's folder.
func TestEveryMomentDevices(t *testing.T) {
	need.Root(t)
	t.Parallel()
	p := newProject(t, ofOthers)
	p.run("plan")
	before := p.hardware()
	t.Cleanup(func() { _ = p.command("destroy", "--auto-approve").Run() })
	for _, command := range []string{"apply", "destroy"} {
		args := []string{command, "--auto-approve", "--parallelism=1"}
		p.standing(command)
		listed := p.moments(args...)
		for _, n := range chosen(len(listed), 12) {
			p.standing(command)
			if !p.dies(n, args...) {
				t.Errorf("%s has no moment %d", command, n)
				continue
			}
			var wrong []string
			if n%2 == 0 {
				wrong = p.converges(2)
				if found := p.specifications(); len(found) != 2 {
					wrong = append(wrong, fmt.Sprintf("the specifications are %v", found))
				}
			}
			wrong = append(wrong, p.destroysAll(before)...)
			if wrong = append(wrong, p.specifications()...); len(wrong) > 0 {
				t.Errorf("killed at moment %d, %s:\n%s", n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
			}
		}
		t.Logf("%s: %s", command, count(listed))
	}
}

// standing brings the project to where a command begins.
func (p project) standing(command string) {
	p.t.Helper()
	begin := map[string]string{"apply": "destroy", "destroy": "apply"}[command]
	p.run(begin, "--auto-approve")
}
