package main

import (
	"strconv"
	"strings"
	"testing"

	"cosplay/internal/public"
)

// TestNeighbourAfterKill: another user's slice at a placement that a killed apply was
// about to fill stays. The next apply names it, does not count it as the project's,
// and gives the sessions other placements.
func TestNeighbourAfterKill(t *testing.T) {
	t.Parallel()
	const text = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 6
  target = "2060"
}
`
	args := []string{"apply", "--auto-approve", "--parallelism", "1"}
	p := newProject(t, text)
	p.run("plan")
	before := p.hardware()
	fresh := p.copyOf()
	listed := p.moments(args...)
	var wanted []public.SimulatedSlice // in the order in which they are made
	for _, g := range p.shown().GPUs {
		wanted = g.Slices
	}
	taken := 0
	for _, n := range chosen(len(listed), 12) {
		fresh()
		p.dies(n, args...)
		made := p.slices()
		if !p.shown().GPUs[0].MIG || made == len(wanted) {
			continue // nothing can be taken yet, or any more
		}
		taken++
		want := wanted[made]
		p.run("sim", "create-slice", "0", want.Profile, strconv.Itoa(want.Start))
		theirs := p.foreign(want.Start)
		killed := p.copyOf()
		for _, way := range []func(){
			func() {
				if out := oneLine(p.run("apply", "--auto-approve")); !strings.Contains(out, "## = foreign") {
					t.Errorf("moment %d, %s: apply does not tell of the neighbour:\n%s", n, inShort(listed[n-1]), out)
				}
				p.run("plan", "--detailed-exitcode")
				if got := p.slices(); got != 7 {
					t.Errorf("moment %d, %s: there are %d slices, not 6 and the neighbour's", n, inShort(listed[n-1]), got)
				}
			},
			killed,
		} {
			way()
			c := p.command("destroy", "--auto-approve")
			out, _ := c.CombinedOutput()
			if c.ProcessState.ExitCode() != 1 || !strings.Contains(oneLine(string(out)), "MIG mode stays on: foreign slices are on it") {
				t.Errorf("moment %d, %s: destroy ends with %d and does not report the neighbour's slice:\n%s", n, inShort(listed[n-1]), c.ProcessState.ExitCode(), out)
			}
			if now := p.foreign(want.Start); now != theirs || p.slices() != 1 {
				t.Errorf("moment %d, %s: the neighbour had %q and has %q, of %d slices", n, inShort(listed[n-1]), theirs, now, p.slices())
			}
		}
		if theirs != p.foreign(want.Start) {
			continue // reported already
		}
		p.run("sim", "destroy-slice", "0", strconv.Itoa(p.shown().GPUs[0].Slices[0].GPUInstance))
		p.run("destroy", "--auto-approve")
		if left := p.traces(before); len(left) > 0 {
			t.Errorf("moment %d, %s: after the neighbour left:\n%s", n, inShort(listed[n-1]), strings.Join(left, "\n"))
		}
	}
	t.Logf("of %d moments the neighbour took a placement after %d", len(listed), taken)
	if taken < 4 {
		t.Error("the test proves too little")
	}
}

// foreign is the UUID of the slice at a slot, whose owner the test knows.
func (p project) foreign(start int) string {
	for _, s := range p.shown().GPUs[0].Slices {
		if s.Start == start && len(s.Compute) > 0 {
			return s.Compute[0].UUID
		}
	}
	return ""
}
