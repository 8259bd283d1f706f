package plan_test

import (
	"slices"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
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

// several is the session "one" of a configuration with the GPUs of all sessions of it.
func several(t *testing.T, w *world, text string) resource.Desired {
	t.Helper()
	desired, _, _, diags := w.Desired(t, text, w.prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	one := slices.IndexFunc(desired.Sessions, func(s resource.Session) bool { return s.Address.Name == "one" })
	s := desired.Sessions[one]
	for i, other := range desired.Sessions {
		if i != one {
			s.More = append(s.More, other.Slice)
		}
	}
	desired.Sessions = []resource.Session{s}
	return desired
}

// A session on several GPUs is brought up after the changes of all of them. They are given back after it ended, and
// not before; one that it no longer needs is given back alone.
func TestSessionOnSeveralGPUs(t *testing.T) {
	w := &world{World: worldtest.New(t, "l40s", "l40s", "l40s"), t: t}
	const block = `session "one" { target = "2060" }
`
	const other = `session "other" {
  count  = 2
  target = "2060"
}
`
	build := func(d resource.Desired) *plan.Plan {
		t.Helper()
		p := plan.Build(d, w.prior, w.Live, diff.Options{})
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		return p
	}
	three := several(t, w, lab+block+other)
	p := build(three)
	var set int
	for _, s := range p.Steps {
		if _, is := s.Do.Op.(plan.SetGPU); is {
			set++
			if !waits(p, "session.one/prepare", s.ID) {
				t.Errorf("the session does not wait for %s:\n%s", s.ID, p)
			}
		}
	}
	if set < 3 {
		t.Errorf("%d settings are set, want some of three GPUs:\n%s", set, p)
	}
	w.apply(p)
	if again := build(three); !again.Empty() {
		t.Errorf("there is more to do:\n%s", again)
	}
	if held := w.prior.Placements(); len(held) != 3 || len(w.prior.GPUs) != 3 {
		t.Errorf("the session is on %v, the state has %d GPUs", held, len(w.prior.GPUs))
	}

	two := three
	two.Sessions = slices.Clone(three.Sessions)
	two.Sessions[0].More = three.Sessions[0].More[:1]
	left := three.Sessions[0].More[1].GPU
	two.GPUs = slices.DeleteFunc(slices.Clone(three.GPUs), func(g resource.DesiredGPU) bool { return g.UUID == left })
	p = build(two)
	for _, g := range p.Diff.GPUs {
		if released := g.Action == diff.Delete; released != (g.UUID == left) {
			t.Errorf("GPU %s is given back: %v", g.UUID, released)
		}
	}
	if c := p.Diff.Sessions[0]; c.Body != diff.Remake {
		t.Errorf("the session keeps its body: %+v", c)
	}
	w.apply(p)

	p = build(resource.Desired{})
	for _, s := range p.Steps {
		if _, is := s.Do.Op.(plan.SetGPU); is && !waits(p, s.ID, "session.one/unprepare") {
			t.Errorf("%s does not wait for the end of the session:\n%s", s.ID, p)
		}
	}
	w.apply(p)
	if len(w.prior.GPUs)+len(w.prior.Sessions) != 0 {
		t.Errorf("the state has %+v", w.prior)
	}
}

// A session of which one GPU is missing is left as it is, whichever GPU that is.
func TestOneOfSeveralGPUsIsMissing(t *testing.T) {
	w := &world{World: worldtest.New(t, "l40s", "l40s"), t: t}
	desired := several(t, w, lab+`session "one" { target = "2060" }
session "other" { target = "2060" }
`)
	w.apply(plan.Build(desired, w.prior, w.Live, diff.Options{}))
	live := w.Live
	live.Hosts = slices.Clone(live.Hosts)
	live.Hosts[0].GPUs = slices.DeleteFunc(slices.Clone(live.Hosts[0].GPUs), func(g resource.GPU) bool { return g.UUID == desired.Sessions[0].More[0].GPU })
	p := plan.Build(desired, w.prior, live, diff.Options{})
	if c := p.Diff.Sessions[0]; c.Action != diff.NoOp || c.Reason.Kind != resource.GPUMissing {
		t.Errorf("%+v is planned:\n%s", c, p)
	}
}
