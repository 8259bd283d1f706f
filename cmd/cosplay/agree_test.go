package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/state"
)

// TestDriftAgreesWithPlan kills a run at its moments: what drift reports as missing
// or incomplete afterwards is what plan is going to create or repair, and both exit
// with 2 if there is anything.
func TestDriftAgreesWithPlan(t *testing.T) {
	for _, o := range [][]string{
		{"apply", "--replace", "worker", "--parallelism=1"},
		{"apply", "--replace", "worker"},
		{"apply", "--parallelism=1"},
		{"apply"},
	} {
		t.Run(strings.Join(o, " "), func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fleet)
			if slices.Contains(o, "--replace") {
				p.run("apply", "--auto-approve")
			} else {
				p.run("plan")
			}
			p.driftAgrees(append(o, "--auto-approve")...)
		})
	}
}

// TestDriftAgreesWithPlanDocker: the same with containers. An engine cannot be copied,
// so plan comes after drift, and each run begins where the one before was killed.
func TestDriftAgreesWithPlanDocker(t *testing.T) {
	needEngine(t)
	p := newProject(t, fmt.Sprintf(inDocker, "mig-mode", "agree", 2, "2060"))
	defer removeContainers(t, p.dir)
	p.run("apply", "--auto-approve")
	defer p.run("destroy", "--auto-approve")
	repaired := func() { p.run("apply", "--auto-approve") }
	p.agrees(repaired, func() func() { return func() {} }, "apply", "--replace", "agree", "--auto-approve")
}

func (p project) driftAgrees(args ...string) {
	p.t.Helper()
	p.agrees(p.copyOf(), p.copyOf, args...)
}

// agrees compares after each kill. fresh brings the project back to where the run
// begins, keep to where it was killed.
func (p project) agrees(fresh func(), keep func() func(), args ...string) {
	p.t.Helper()
	listed := p.moments(args...)
	reported := 0
	for _, n := range chosen(len(listed), 10) {
		fresh()
		p.dies(n, args...)
		if !p.begun() {
			continue // the run has announced nothing yet
		}
		killed := keep()
		drifted, driftCode := p.asked("drift", "--json")
		if shown, _ := p.asked("status", "--json"); len(shown.Missing)+shown.unfinished() != len(drifted.astray()) {
			p.t.Errorf("killed at moment %d: status has %v missing and %d unfinished, drift %v", n, shown.Missing, shown.unfinished(), drifted.astray())
		}
		killed()
		planned, planCode := p.asked("plan", "--json", "--detailed-exitcode")
		if driftCode != planCode || !slices.Equal(drifted.astray(), planned.changing()) {
			p.t.Errorf("killed at moment %d, %s:\ndrift exits with %d and reports %v\nplan exits with %d and changes %v", n, inShort(listed[n-1]), driftCode, drifted.astray(), planCode, planned.changing())
		}
		for _, d := range drifted.Drift {
			if d.Session != "" {
				p.t.Errorf("killed at moment %d, %s: drift blames another for %s of %s", n, inShort(listed[n-1]), d.Thing, d.Session)
			}
		}
		reported += len(drifted.astray())
	}
	if reported == 0 {
		p.t.Error("no run was killed while something was missing")
	}
	p.t.Logf("%v: %d objects reported", args, reported)
}

// begun reports whether a run has left a journal or a state.
func (p project) begun() bool {
	path := filepath.Join(p.dir, state.FileName)
	journal, err := os.Stat(state.Store{Path: path}.JournalPath())
	_, lost := os.Stat(path)
	return err == nil && journal.Size() > 0 || lost == nil
}

// answer is what drift and plan have in common.
type answer struct {
	Drift []struct {
		Session string `json:"session"`
		Thing   string `json:"thing"`
		Informs bool   `json:"told"`
	} `json:"drift"`
	Unfinished []string `json:"unfinished"`
	Missing    []string `json:"missing"`
	Sessions   []struct {
		State string `json:"state"`
	} `json:"sessions"`
	Changes struct {
		Sessions []struct {
			Address string `json:"address"`
			Action  string `json:"action"`
		} `json:"sessions"`
	} `json:"changes"`
}

func (p project) asked(args ...string) (a answer, code int) {
	p.t.Helper()
	c := p.command(args...)
	out, err := c.Output()
	if code = c.ProcessState.ExitCode(); code == 1 {
		p.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &a); err != nil {
			p.t.Fatal(fmt.Errorf("%v: %w\n%s", args, err, out))
		}
	}
	return a, code
}

// astray are the sessions that drift reports.
func (a answer) astray() []string {
	all := slices.Clone(a.Unfinished)
	for _, d := range a.Drift {
		if d.Session != "" && !d.Informs {
			all = append(all, d.Session)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// changing are the sessions that plan creates or repairs.
func (a answer) changing() []string {
	var all []string
	for _, s := range a.Changes.Sessions {
		if s.Action != "no-op" {
			all = append(all, s.Address)
		}
	}
	slices.Sort(all)
	return all
}

// unfinished counts the sessions that status shows so.
func (a answer) unfinished() int {
	n := 0
	for _, s := range a.Sessions {
		if s.State == "unfinished" {
			n++
		}
	}
	return n
}
