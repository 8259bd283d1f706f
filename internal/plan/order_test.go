package plan_test

import (
	"slices"
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/worldtest"
)

const dependent = lab + `
session "app" {
  count      = 2
  target     = "2060"
  depends_on = [session.server]
}
session "server" {
  target     = "2060"
  depends_on = [session.zdata]
}
session "zdata" {
  target = "2060"
}
`

// waits reports whether a step waits for another, in so many others between.
func waits(p *plan.Plan, id, for_ string) bool {
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.ID == id })
	return i >= 0 && slices.ContainsFunc(p.Steps[i].Needs, func(need string) bool { return need == for_ || waits(p, need, for_) })
}

// A session that depends on others is brought up after them and removed before them, also when the configuration
// is empty.
func TestDependsOn(t *testing.T) {
	w := &world{World: worldtest.New(t, "h200"), t: t}
	check := func(p *plan.Plan, pairs [][2]string) {
		t.Helper()
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		for _, pair := range pairs {
			if !waits(p, pair[0], pair[1]) || waits(p, pair[1], pair[0]) {
				t.Errorf("%s does not wait for %s:\n%s", pair[0], pair[1], p)
			}
		}
	}
	up := [][2]string{{"session.app[0]/prepare", "session.server/prepare"}, {"session.app[1]/prepare", "session.server/prepare"}, {"session.server/prepare", "session.zdata/prepare"}}
	down := [][2]string{{"session.server/unprepare", "session.app[0]/unprepare"}, {"session.server/unprepare", "session.app[1]/unprepare"}, {"session.zdata/unprepare", "session.server/unprepare"}}

	p, diags := w.plan(dependent)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	check(p, up)
	if waits(p, "session.app[0]/slice", "session.server/prepare") {
		t.Error("a slice waits though nothing runs in it yet")
	}
	w.apply(p)
	if again, _ := w.plan(dependent); !again.Empty() {
		t.Errorf("there is more to do:\n%s", again)
	}
	empty, diags := w.plan(lab)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	check(empty, down)
	w.apply(empty)
}
