package watch_test

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/watch"
)

// TestParseRepairs: words for several classes and single ones; a single one may end programs.
func TestParseRepairs(t *testing.T) {
	for _, c := range []struct {
		typed []string
		want  map[diff.Class]watch.Permission
	}{
		{[]string{"none"}, map[diff.Class]watch.Permission{diff.BodyMissing: watch.Never}},
		{[]string{"safe"}, map[diff.Class]watch.Permission{diff.BodyMissing: watch.Harmless, diff.BodyReplaced: watch.Harmless}},
		{[]string{"safe", "container-replaced"}, map[diff.Class]watch.Permission{diff.BodyMissing: watch.Harmless, diff.BodyReplaced: watch.Always}},
		{[]string{"container-replaced", "safe"}, map[diff.Class]watch.Permission{diff.BodyReplaced: watch.Always}},
		{[]string{"all", "none"}, map[diff.Class]watch.Permission{diff.BodyMissing: watch.Never}},
		{[]string{"clock-lock"}, map[diff.Class]watch.Permission{diff.ClockLock: watch.Always, diff.BodyMissing: watch.Never}},
	} {
		got, err := watch.ParseRepairs(c.typed)
		if err != nil {
			t.Fatal(err)
		}
		for class, want := range c.want {
			if got[class] != want {
				t.Errorf("%q: %s is %d, want %d", c.typed, class, got[class], want)
			}
		}
	}
	if _, err := watch.ParseRepairs([]string{"safe", "container-gon"}); err == nil {
		t.Error("a word that is no class is accepted")
	}
}

// TestJudge: drift is repaired where its class allows it, changes of the configuration are left, and what the history
// blocks waits.
func TestJudge(t *testing.T) {
	address := resource.One("a")
	prior := resource.PriorSession{Session: resource.Session{Address: address, ID: "a", Runtime: "docker", Slice: resource.Slice{Host: "lab", GPU: "GPU-1"}}}
	drift := func(class diff.Class) []diff.Drift {
		return []diff.Drift{{Class: class, Host: "lab", GPU: "GPU-1", Session: &address}}
	}
	running := resource.Live{Hosts: []resource.Host{{Name: "lab", Bodies: []resource.Body{{Session: "a", Host: "lab", Runtime: "docker", State: resource.Running}}}}}
	change := func(slice, body diff.Part, fields ...diff.Field) diff.SessionChange {
		return diff.SessionChange{Address: address, Action: diff.Update, Slice: slice, Body: body, Fields: fields, Before: &prior, After: &prior.Session}
	}
	for name, c := range map[string]struct {
		repairs string
		change  diff.SessionChange
		drift   []diff.Drift
		live    resource.Live
		blocked watch.Why
		want    watch.Why // "" is repaired
	}{
		"a missing container":                       {"safe", change(diff.Keep, diff.Make), drift(diff.BodyMissing), resource.Live{}, "", ""},
		"nothing may be repaired":                   {"none", change(diff.Keep, diff.Make), drift(diff.BodyMissing), resource.Live{}, "", watch.NotAllowed},
		"programs would end":                        {"safe", change(diff.Keep, diff.Remake), drift(diff.BodyReplaced), running, "", watch.EndsPrograms},
		"programs may end":                          {"container-replaced", change(diff.Keep, diff.Remake), drift(diff.BodyReplaced), running, "", ""},
		"all may end":                               {"all", change(diff.Keep, diff.Remake), drift(diff.BodyReplaced), running, "", ""},
		"its slice is missing, so nothing works":    {"safe", change(diff.Make, diff.Remake), drift(diff.SliceMissing), running, "", ""},
		"another image, not in the configuration":   {"safe", change(diff.Keep, diff.Remake), []diff.Drift{{Class: diff.ImageOffered, Session: &address, Informational: true}}, running, "", watch.EndsPrograms},
		"another attribute in the file":             {"all", change(diff.Keep, diff.Remake, diff.Field{Kind: diff.FieldImage}), nil, running, "", watch.Differs},
		"drift beside another attribute":            {"all", change(diff.Keep, diff.Make, diff.Field{Kind: diff.FieldPorts}), drift(diff.BodyMissing), resource.Live{}, "", watch.Differs},
		"a change that only records a new MIG name": {"safe", change(diff.Keep, diff.Refit, diff.Field{Kind: diff.FieldSliceUUID}), nil, running, "", ""},
		"too many repairs":                          {"safe", change(diff.Keep, diff.Make), drift(diff.BodyMissing), resource.Live{}, watch.Exhausted, watch.Exhausted},
	} {
		repairs, err := watch.ParseRepairs([]string{c.repairs})
		if err != nil {
			t.Fatal(err)
		}
		planned := &plan.Plan{Diff: diff.Diff{Drift: c.drift, Sessions: []diff.SessionChange{c.change}}}
		got := watch.Policy{Repairs: repairs}.Judge(planned, c.live, resource.Prior{}, func(string) watch.Why { return c.blocked })
		var why watch.Why
		if len(got.Left) > 0 {
			why = got.Left[0].Why
		}
		if why != c.want || (why == "") != (len(got.Repairs) == 1) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestJudgeAllGPUs: a session without a change is a part of the repair of its GPUs only if each of them may be repaired.
func TestJudgeAllGPUs(t *testing.T) {
	on := func(uuid string) resource.Slice { return resource.Slice{Host: "lab", GPU: uuid} }
	session := resource.PriorSession{Session: resource.Session{Address: resource.One("a"), Slice: on("GPU-1"), More: []resource.Slice{on("GPU-2")}}}
	lock := func(uuid string, mhz int) diff.GPUChange {
		return diff.GPUChange{Host: "lab", UUID: uuid, Settings: resource.Settings{}.With(resource.SMClock, mhz)}
	}
	var prior resource.Prior
	for _, uuid := range []string{"GPU-1", "GPU-2"} {
		prior.GPUs = append(prior.GPUs, resource.PriorGPU{Host: "lab", UUID: uuid, Applied: resource.Settings{}.With(resource.SMClock, 900)})
	}
	repairs, err := watch.ParseRepairs([]string{"safe"})
	if err != nil {
		t.Fatal(err)
	}
	for second, want := range map[int]int{900: 2, 1000: 0} { // 1000 MHz is what the configuration leads to now
		planned := &plan.Plan{Diff: diff.Diff{GPUs: []diff.GPUChange{lock("GPU-1", 900), lock("GPU-2", second)},
			Sessions: []diff.SessionChange{{Address: session.Address, Action: diff.NoOp, Before: &session, After: &session.Session}}}}
		got := watch.Policy{Repairs: repairs}.Judge(planned, resource.Live{}, prior, func(string) watch.Why { return "" })
		if len(got.Keys) != want || (len(got.Repairs) == 1) != (want > 0) {
			t.Errorf("with %d MHz on the second: %+v", second, got)
		}
	}
}
