package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestImportAtEveryMoment: an import of an admin's slice that is killed anywhere
// can be done again, or left: then the slice stays the admin's.
func TestImportAtEveryMoment(t *testing.T) {
	t.Parallel()
	p := newProject(t, trio)
	p.run("plan")
	p.run("sim", "set", "0", "mig", "on")
	p.run("sim", "create-slice", "0", "1g.18gb", "3")
	before := p.hardware()
	uuid := p.shown().GPUs[0].Slices[0].Compute[0].UUID
	fresh := p.copyOf()
	args := []string{"import", "worker-1", uuid, "--auto-approve"}
	listed := p.moments(args...)
	taken := p.hardware()
	tried, failed := 0, 0
	for _, n := range chosen(len(listed), 9) {
		fresh()
		p.dies(n, args...)
		tried++
		killed := p.copyOf()
		var wrong []string
		out, err := p.command(args...).CombinedOutput()
		if err != nil && !strings.Contains(oneLine(string(out)), "is in the state already") {
			wrong = append(wrong, fmt.Sprintf("import again: %v\n%s", err, out))
		}
		if string(p.hardware()) != string(taken) {
			wrong = append(wrong, "import has changed the hardware")
		}
		wrong = append(wrong, p.converges(3)...)
		if now := p.foreign(3); now == "" || !strings.Contains(now, uuid) {
			wrong = append(wrong, "the session has another slice: "+now)
		}
		wrong = append(wrong, p.goesWithout(uuid)...)
		killed()
		p.run("plan") // folds the interrupted run into the state
		imported := strings.Contains(p.run("state", "list"), "worker[1]")
		if out, err := p.command("destroy", "--auto-approve").CombinedOutput(); err != nil {
			wrong = append(wrong, fmt.Sprintf("destroy: %v\n%s", err, out))
		}
		if imported {
			wrong = append(wrong, p.goesWithout(uuid)...)
		} else {
			wrong = append(wrong, p.traces(before)...)
		}
		if len(wrong) > 0 {
			failed++
			t.Errorf("killed at moment %d, %s:\n%s", n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
		}
	}
	t.Logf("%s; killed at %d of them, %d failures", count(listed), tried, failed)
}

// goesWithout destroys, and reports what remains besides the slice that was imported
// and is removed with the rest.
func (p project) goesWithout(uuid string) (wrong []string) {
	if out, err := p.command("destroy", "--auto-approve").CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Sprintf("destroy: %v\n%s", err, out))
	}
	if n := p.slices(); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d slices are left; %s was imported", n, uuid))
	}
	if g := p.shown().GPUs[0]; !g.MIG {
		wrong = append(wrong, "MIG mode, which was on before, is off")
	}
	return append(wrong, p.traces(p.hardware())...)
}
