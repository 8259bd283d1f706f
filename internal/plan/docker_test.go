package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

const two = `host "lab" { runtime = "docker" }
session "w" {
  count  = 2
  target = "2060"
}`

// dockerWorld is one whose sessions run in containers.
func dockerWorld(t *testing.T, images ...string) *world {
	w := newWorld(t, "h200")
	w.WithDocker(images...)
	return w
}

// applied plans a configuration and carries it out.
func (w *world) applied(text string) *plan.Plan {
	w.t.Helper()
	p, diags := w.plan(text)
	if diags.HasErrors() {
		w.t.Fatal(diags)
	}
	w.apply(p)
	return p
}

// steps are the lines of a plan that are about images and containers.
func steps(p *plan.Plan) string {
	var lines []string
	for line := range strings.Lines(p.String()) {
		if strings.HasPrefix(line, "image.") || strings.Contains(line, "prepare: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestImages: an image is got once for all that need it, before any container.
func TestImages(t *testing.T) {
	for _, test := range []struct {
		name, text string
		there      string
		want       string
	}{
		{"cosplay's own is built", two, "", `image.lab.cosplay:latest: build image
session.w[0]/prepare: prepare  <- image.lab.cosplay:latest, session.w[0]/slice
session.w[1]/prepare: prepare  <- image.lab.cosplay:latest, session.w[1]/slice
`},
		{"another is pulled", strings.Replace(two, "count", "image = \"debian:12\"\n  count", 1), "", `image.lab.debian:12: pull image
session.w[0]/prepare: prepare  <- image.lab.debian:12, session.w[0]/slice
session.w[1]/prepare: prepare  <- image.lab.debian:12, session.w[1]/slice
`},
		{"it is there", two, "cosplay:latest", `session.w[0]/prepare: prepare  <- session.w[0]/slice
session.w[1]/prepare: prepare  <- session.w[1]/slice
`},
		{"always", strings.Replace(two, "count", "pull = \"always\"\n  image = \"debian:12\"\n  count", 1), "debian:12", `image.lab.debian:12: pull image
session.w[0]/prepare: prepare  <- image.lab.debian:12, session.w[0]/slice
session.w[1]/prepare: prepare  <- image.lab.debian:12, session.w[1]/slice
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dockerWorld(t, test.there)
			p := w.applied(test.text)
			if got := steps(p); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			if again, _ := w.plan(test.text); !again.Empty() {
				t.Errorf("a second apply would do\n%s", again)
			}
		})
	}
}

// TestContainerChanges: a container that cannot be changed inside is replaced, with the slice kept and no other
// session touched.
func TestContainerChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		text   string // instead of two
		touch  func(*worldtest.World)
		action diff.Action
		steps  string
	}{
		{"removed by hand", two, func(w *worldtest.World) { w.Remove("w-1") }, diff.Create,
			"session.w[1]/prepare: prepare\n"},
		{"stopped", two, func(w *worldtest.World) { w.Host().Bodies[1].State = resource.Stopped }, diff.Update,
			"session.w[1]/prepare: start\n"},
		{"restarts otherwise", two, func(w *worldtest.World) { w.Host().Bodies[1].Bounds = &resource.Bounds{Restart: "always"} }, diff.Update,
			"session.w[1]/prepare: refit\n"},
		{"another in its place", two, func(w *worldtest.World) { w.Host().Bodies[1].ID = "other" }, diff.Replace, `session.w[1]/unprepare: unprepare
session.w[1]/prepare: prepare  <- session.w[1]/unprepare
`},
		{"its content differs", strings.Replace(two, "count", "env = { SEED = count.index == 1 ? 2 : 1 }\n  count", 1), func(*worldtest.World) {}, diff.Replace, `session.w[0]/unprepare: unprepare
session.w[1]/unprepare: unprepare
session.w[0]/prepare: prepare  <- session.w[0]/unprepare, session.w[1]/unprepare
session.w[1]/prepare: prepare  <- session.w[0]/unprepare, session.w[1]/unprepare
`},
		{"how it is pulled", strings.Replace(two, "count", "pull = \"always\"\n  count", 1), func(*worldtest.World) {}, diff.Update, ""},
		{"in no container any more", strings.Replace(two, `"docker"`, `"process"`, 1), func(w *worldtest.World) { w.Host().Runtime = "process" }, diff.Replace, `session.w[0]/unprepare: unprepare
session.w[1]/unprepare: unprepare
session.w[0]/prepare: prepare  <- session.w[0]/unprepare, session.w[1]/unprepare
session.w[1]/prepare: prepare  <- session.w[0]/unprepare, session.w[1]/unprepare
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dockerWorld(t, resource.DefaultImage)
			w.applied(two)
			test.touch(w.World)
			p := w.applied(test.text)
			if got := steps(p); got != test.steps {
				t.Errorf("got\n%swant\n%s", got, test.steps)
			}
			if got := p.Diff.Sessions[1].Action; got != test.action {
				t.Errorf("it is %v, want %v", got, test.action)
			}
			if again, _ := w.plan(test.text); !again.Empty() {
				t.Errorf("a second apply would do\n%s", again)
			}
		})
	}
}

// TestLimitsChange: limits and the restart policy are updated in place, except for the removal of one that an engine
// cannot remove. A container of an older cosplay, whose hash includes them, is replaced.
func TestLimitsChange(t *testing.T) {
	const limited = "limits {\n  cpus = 2\n  memory = \"1GiB\"\n  pids = 99\n}"
	with := func(attributes string) string { return strings.Replace(two, "count", attributes+"\ncount", 1) }
	for _, test := range []struct {
		name     string
		from, to string
		action   diff.Action
	}{
		{"raised", limited, strings.NewReplacer("2", "3", "1GiB", "2GiB", "99", "100").Replace(limited), diff.Update},
		{"lowered", limited, strings.NewReplacer("2", "1", "99", "9").Replace(limited), diff.Update},
		{"added", "", limited, diff.Update},
		{"processes without a limit", limited, strings.Replace(limited, "pids = 99", "", 1), diff.Update},
		{"CPUs without a limit", limited, strings.Replace(limited, "cpus = 2", "", 1), diff.Replace},
		{"memory without a limit", limited, strings.Replace(limited, `memory = "1GiB"`, "", 1), diff.Replace},
		{"shared memory", limited, strings.Replace(limited, "pids = 99", `shm_size = "2GiB"`, 1), diff.Replace},
		{"restart", "", `restart = "always"`, diff.Update},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dockerWorld(t, resource.DefaultImage)
			w.applied(with(test.from))
			p := w.applied(with(test.to))
			if got := p.Diff.Sessions[1]; got.Action != test.action || got.Slice != diff.Keep {
				t.Errorf("it is %v, slice %v: %+v; want %v", got.Action, got.Slice, got.Fields, test.action)
			}
			if again, _ := w.plan(with(test.to)); !again.Empty() {
				t.Errorf("a second apply would do\n%s", again)
			}
		})
	}
}

// TestNothingGoesBeforeItsImageIsThere: an image that is not available costs no session that runs.
func TestNothingGoesBeforeItsImageIsThere(t *testing.T) {
	w := dockerWorld(t, resource.DefaultImage)
	w.applied(two)
	p, _ := w.plan(strings.Replace(two, "count", "image = \"debian:12\"\n  count", 1))
	want := `image.lab.debian:12: pull image
session.w[0]/unprepare: unprepare  <- image.lab.debian:12
`
	if !strings.HasPrefix(p.String(), want) {
		t.Errorf("the plan is\n%s", p)
	}
}

// TestOutdated: a container keeps the facades of another cosplay. That is reported, and
// nothing is done about it, until it is started again.
func TestOutdated(t *testing.T) {
	w := dockerWorld(t, resource.DefaultImage)
	w.applied(two)
	c := &w.Live.Hosts[0].Bodies[0]
	c.Outdated = []resource.Outdated{{Part: resource.Facades, From: "cosplay 1", To: "cosplay 2"}, {Part: resource.Driver, From: "535.1", To: "550.2"}}
	p, _ := w.plan(two)
	if !p.Empty() || p.Diff.Drifted() || len(p.Diff.Drift) != 2 {
		t.Fatalf("%s%+v", p, p.Diff.Drift)
	}
	for i, d := range p.Diff.Drift {
		if o := c.Outdated[i]; d.Class != diff.DisguiseOutdated || string(d.Kind) != o.Part || d.From != diff.Text(o.From) || d.To != diff.Text(o.To) || !d.Informational || *d.Session != resource.Nth("w", 0) {
			t.Errorf("%+v of %+v", d, o)
		}
	}
	c.State, c.Outdated = resource.Stopped, nil
	p = w.applied(two)
	if got := steps(p); got != "session.w[0]/prepare: start\n" {
		t.Errorf("stopped: %s", got)
	}
	w.prior.Sessions[0].Body.Foreign = true
	w.Live.Hosts[0].Bodies[0].Outdated = []resource.Outdated{{Part: resource.Facades}}
	if p, _ := w.plan(two); len(p.Diff.Drift) > 0 {
		t.Errorf("imported, it never had a disguise: %+v", p.Diff.Drift)
	}
}

// TestImageMoved: a name that refers to another image now is reported, and nothing is done.
func TestImageMoved(t *testing.T) {
	w := dockerWorld(t, resource.DefaultImage)
	w.applied(two)
	w.Host().Engine.Images["cosplay:latest"] = "sha256:0123456789abcdef"
	p, _ := w.plan(two)
	if !p.Empty() || p.Diff.Drifted() {
		t.Errorf("something is to be done:\n%s", p)
	}
	if len(p.Diff.Drift) != 2 || p.Diff.Drift[0].Class != diff.ImageMoved || p.Diff.Drift[0].To != diff.ID("sha256:0123456789abcdef") || !p.Diff.Drift[0].Informational {
		t.Errorf("%+v", p.Diff.Drift)
	}
}

// A container of an older cosplay, with sensitive values in its own environment, is
// reported and left alone; one without such values is not reported.
func TestOpenSecrets(t *testing.T) {
	w := dockerWorld(t, resource.DefaultImage)
	text := strings.Replace(two, "2060\"\n", "2060\"\n  env    = count.index > 0 ? {} : { TOKEN = sensitive(\"hunter2\") }\n", 1)
	w.applied(text)
	for i := range w.Live.Hosts[0].Bodies {
		w.Live.Hosts[0].Bodies[i].SecretsInEnv = true
	}
	p, _ := w.plan(text)
	if !p.Empty() || p.Diff.Drifted() {
		t.Errorf("something is to be done:\n%s", p)
	}
	if d := p.Diff.Drift; len(d) != 1 || d[0].Class != diff.SecretsInEnv || !d[0].Informational || *d[0].Session != resource.Nth("w", 0) {
		t.Errorf("%+v", d)
	}
}

// TestLeftovers: leftovers of sessions that the state does not know are removed, unless the plan uses them.
func TestLeftovers(t *testing.T) {
	w := dockerWorld(t, "cosplay:latest")
	w.applied(two)
	w.Host().Leftovers = []resource.Body{
		{ID: "late", Session: "old-1", Host: "lab", Runtime: "docker"},
		{Session: "w-2", Host: "lab", Runtime: "docker"},
	}
	three := strings.Replace(two, "2\n", "3\n", 1)
	for _, test := range []struct{ text, want string }{
		{two, "stray.lab.old-1/unprepare: unprepare\nstray.lab.w-2/unprepare: unprepare\n"},
		{three, "stray.lab.old-1/unprepare: unprepare\n"},
	} {
		p, diags := w.plan(test.text)
		got := ""
		for line := range strings.Lines(p.String()) {
			if strings.HasPrefix(line, plan.LeftoverGroup) {
				got += line
			}
		}
		if diags.HasErrors() || got != test.want || !p.Diff.Changes() {
			t.Errorf("%v\n%s", diags, p)
		}
		var saved plan.Saved
		again, err := json.Marshal(p.Saved("1"))
		if err == nil {
			err = json.Unmarshal(again, &saved)
		}
		if _, wrong := saved.Plan(w.prior.Key); err != nil || wrong != nil {
			t.Errorf("such a plan cannot be saved: %v, %v", err, wrong)
		}
	}
}

// TestAlwaysPulled: a session whose image is always pulled is replaced in its slice when the name refers to another image,
// in the registry or in the engine, and only then.
func TestAlwaysPulled(t *testing.T) {
	w := dockerWorld(t, "debian:12")
	always := strings.Replace(two, "2060\"\n", "2060\"\n  image  = \"debian:12\"\n  pull   = \"always\"\n", 1)
	w.applied(always)
	if p, _ := w.plan(always); !p.Empty() {
		t.Errorf("nothing has changed, and to be done is\n%s", p)
	}
	engine := w.Host().Engine
	for name, move := range map[string]func(){
		"in the registry": func() { engine.Offered = map[string]string{"debian:12": "debian@sha256:0123"} },
		"in the engine":   func() { engine.Offered, engine.Images["debian:12"] = nil, "sha256:0123456789abcdef" },
	} {
		move()
		p, _ := w.plan(always)
		if len(p.Diff.Drift) != 2 || !p.Diff.Drift[0].Informational || p.Diff.Drifted() {
			t.Errorf("%s: %+v", name, p.Diff.Drift)
		}
		for _, c := range p.Diff.Sessions {
			if c.Action != diff.Replace || c.Slice != diff.Keep || c.Reason.Kind != resource.ImageMoved {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if got := steps(p); !strings.Contains(got, "image.lab.debian:12") || strings.Index(got, "image.lab.debian:12") > strings.Index(got, "prepare") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
