package diff_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/words"
	"cosplay/internal/worldtest"
)

const two = `host "lab" {}
session "worker" {
  count  = 2
  target = "2060"
}`

// applied is a world with two sessions on one H200, at slots 4 and 5.
func applied(t *testing.T) (*worldtest.World, resource.Prior) {
	t.Helper()
	w := worldtest.New(t, "h200")
	return w, bring(t, w, two, resource.Prior{})
}

func bring(t *testing.T, w *worldtest.World, text string, prior resource.Prior) resource.Prior {
	t.Helper()
	p, diags := w.Plan(t, text, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	run := w.Run(&worldtest.Journal{}, 1)
	result, err := run.Execute(context.Background(), p, prior, w.Live)
	if err != nil || len(result.Failures) > 0 {
		t.Fatal(err, result.Failures)
	}
	return result.Prior
}

func lines(all []diff.Drift) []string {
	var out []string
	for _, d := range all {
		who := "GPU"
		if d.Session != nil {
			who = d.Session.Short()
		}
		line := fmt.Sprintf("%s %s: %s, %s -> %s", d.Class, who, words.Drifted(d), words.Value(d.From, resource.Live{}), words.Value(d.To, resource.Live{}))
		if d.Informational {
			line += " (informational)"
		}
		out = append(out, line)
	}
	return out
}

// TestStartedByOthers: a session that cosplay stopped and another program started counts as started, and the state and
// the configuration are not changed by the comparison.
func TestStartedByOthers(t *testing.T) {
	w, prior := applied(t)
	p, diags := w.Plan(t, two, prior)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := p.Desired
	prior.Sessions[0].Stopped, want.Sessions[0].Stopped = true, true
	d := diff.Compare(want, prior, w.Live, diff.Options{})
	if c := d.Sessions[0]; c.Before == nil || !c.Before.Stopped || c.After == nil || c.After.Stopped || !prior.Sessions[0].Stopped || !want.Sessions[0].Stopped {
		t.Errorf("%+v", c)
	}
}

// TestDrift: each thing that can happen behind our back, and the words for it.
func TestDrift(t *testing.T) {
	for _, test := range []struct {
		name   string
		meddle func(*worldtest.World, *resource.GPU)
		want   []string
	}{
		{"nothing", func(*worldtest.World, *resource.GPU) {}, nil},
		{"power limit", func(_ *worldtest.World, g *resource.GPU) { g.PowerMW = 500_500 }, []string{"power-limit GPU: power limit, 320 W -> 500.5 W"}},
		{"persistence", func(_ *worldtest.World, g *resource.GPU) { g.Persistence = false }, []string{
			"persistence GPU: persistence mode, on -> off",
			"clock-lock GPU: SM clock, 1575 MHz -> lifted"}},
		{"clock above the lock", func(_ *worldtest.World, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1980, false }, []string{"clock-lock GPU: SM clock, 1575 MHz -> lifted"}},
		{"clock below the lock without a reason", func(_ *worldtest.World, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 900, false }, []string{"clock-lock GPU: SM clock, 1575 MHz -> at 900 MHz"}},
		{"clock below the lock, idle: unknown is not drift", func(_ *worldtest.World, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 345, true }, nil},
		{"slice", func(_ *worldtest.World, g *resource.GPU) {
			g.Slices = slices.DeleteFunc(g.Slices, func(s resource.LiveSlice) bool { return s.Start == 5 })
		}, []string{"slice-gone worker-1: slice, 1g.18gb, slot 5 -> missing"}},
		{"slice recreated by another process", func(_ *worldtest.World, g *resource.GPU) { g.Slices[1].UUID = "MIG-other" }, []string{
			"foreign-slice GPU: foreign slice, (none) -> 1g.18gb, slot 5 (informational)",
			"slice-replaced worker-1: slice, 1g.18gb, slot 5 -> taken by another 1g.18gb at slot 5"}},
		{"slice recreated under the same name after a reboot", func(w *worldtest.World, g *resource.GPU) {
			kept := *g
			kept.Slices = slices.Clone(g.Slices)
			w.Reboot()
			*g = kept // as mig-parted does it, with a driver that names slices by ids
			for i := range g.Slices {
				g.Slices[i].Boot = w.Host().BootID
			}
		}, []string{
			"host-rebooted GPU: host, up -> rebooted",
			"clock-lock GPU: SM clock, 1575 MHz -> lifted",
			"foreign-slice GPU: foreign slice, (none) -> 1g.18gb, slot 4 (informational)",
			"foreign-slice GPU: foreign slice, (none) -> 1g.18gb, slot 5 (informational)",
			"slice-replaced worker-0: slice, 1g.18gb, slot 4 -> taken by another 1g.18gb at slot 4",
			"slice-replaced worker-1: slice, 1g.18gb, slot 5 -> taken by another 1g.18gb at slot 5"}},
		{"container", func(w *worldtest.World, _ *resource.GPU) { w.Remove("worker-0") }, []string{"container-gone worker-0: session folder, there -> missing"}},
		{"container stopped", func(w *worldtest.World, _ *resource.GPU) { w.Host().Bodies[0].State = resource.Stopped }, []string{"container-stopped worker-0: session folder, running -> stopped"}},
		{"container never started", func(w *worldtest.World, _ *resource.GPU) {
			w.Host().Bodies[0].State, w.Host().Bodies[0].Unstarted = resource.Stopped, true
		}, []string{"container-unstarted worker-0: session folder, running -> never started"}},
		{"container paused", func(w *worldtest.World, _ *resource.GPU) { w.Host().Bodies[0].State = resource.Paused }, []string{"container-paused worker-0: session folder, running -> paused"}},
		{"container in a restart loop", func(w *worldtest.World, _ *resource.GPU) {
			w.Host().Bodies[0].State, w.Host().Bodies[0].Restarts = resource.Restarting, 12
		}, []string{"container-restarting worker-0: session folder, running -> restarting, 12 times so far"}},
		{"container altered", func(w *worldtest.World, _ *resource.GPU) {
			w.Host().Bodies[0].Altered = []resource.Alteration{{Part: resource.AlteredName, From: "cosplay-worker-0", To: "mine"},
				{Part: resource.AlteredNetwork, From: "bridge"}, {Part: resource.AlteredSSHPort, From: "127.0.0.1:2222"}}
		}, []string{
			"container-altered worker-0: name, cosplay-worker-0 -> mine",
			"container-altered worker-0: network, bridge -> (none)",
			"container-altered worker-0: ssh.port, 127.0.0.1:2222 -> (none)"}},
		{"container edited", func(w *worldtest.World, _ *resource.GPU) { w.Host().Bodies[0].Hash = "x" }, []string{"container-changed worker-0: session folder, as applied -> changed"}},
		{"disguise damaged", func(w *worldtest.World, _ *resource.GPU) { w.Host().Bodies[0].Damaged = "figures was changed" }, []string{"disguise-broken worker-0: disguise, intact -> figures was changed"}},
		{"disguise outdated", func(w *worldtest.World, _ *resource.GPU) { w.Host().Bodies[0].Outdated = outdated }, nil},
		{"reboot", func(w *worldtest.World, _ *resource.GPU) { w.Reboot() }, []string{
			"host-rebooted GPU: host, up -> rebooted",
			"mig-mode GPU: MIG mode, on -> off",
			"persistence GPU: persistence mode, on -> off",
			"power-limit GPU: power limit, 320 W -> 700 W",
			"clock-lock GPU: SM clock, 1575 MHz -> lifted",
			"slice-gone worker-0: slice, 1g.18gb, slot 4 -> missing",
			"slice-gone worker-1: slice, 1g.18gb, slot 5 -> missing"}},
		{"GPU", func(w *worldtest.World, _ *resource.GPU) { w.Host().GPUs = nil }, []string{
			"gpu-gone GPU: GPU, there -> missing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, prior := applied(t)
			test.meddle(w, w.GPU("GPU-0"))
			d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{})
			if got := lines(d.Drift); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if counts := slices.ContainsFunc(d.Drift, func(d diff.Drift) bool { return !d.Informational }); d.Drifted() != counts {
				t.Errorf("Drifted is %v", d.Drifted())
			}
		})
	}
}

// TestGiveBack: each setting is restored only if it still has cosplay's value, or if its value is unknown.
func TestGiveBack(t *testing.T) {
	stated := 1200
	for _, test := range []struct {
		name   string
		before func(*resource.GPU)
		meddle func(*worldtest.World, *resource.GPU)
		stated *int
		want   string
		kept   string
	}{
		{name: "all of it", want: "clock=unlocked mig=off persistence=off power=700 W"},
		{name: "a lock that was stated", stated: &stated, want: "clock=1200 MHz mig=off persistence=off power=700 W"},
		{name: "a lock before cosplay that is not stated", before: func(g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1200, false },
			want: "clock=unlocked mig=off persistence=off power=700 W", kept: "clock: lock-before"},
		{name: "MIG and persistence were on", before: func(g *resource.GPU) { g.MIG, g.MIGPending, g.Persistence = true, true, true },
			want: "clock=unlocked power=700 W"},
		{name: "power changed since", meddle: func(_ *worldtest.World, g *resource.GPU) { g.PowerMW = 500_000 },
			want: "clock=unlocked mig=off", kept: "power: changed-by-others (left); persistence: keeps-foreign power (left)"},
		{name: "persistence is off, without limits and lock", meddle: func(_ *worldtest.World, g *resource.GPU) {
			g.Persistence, g.PowerMW, g.SMClockMHz = false, 700_000, 345
		}, want: "clock=unlocked mig=off"},
		{name: "clock lock lifted since", meddle: func(_ *worldtest.World, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1980, false },
			want: "clock=unlocked mig=off persistence=off power=700 W"},
		{name: "another lock since", meddle: func(_ *worldtest.World, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 900, false },
			want: "mig=off power=700 W", kept: "clock: changed-by-others (left); persistence: keeps-foreign clock (left)"},
		{name: "foreign slices", meddle: func(_ *worldtest.World, g *resource.GPU) {
			g.Slices = append(g.Slices, resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 0, Size: 1}, Handle: resource.Handle{UUID: "MIG-other"}})
		}, want: "clock=unlocked persistence=off power=700 W", kept: "mig: foreign-slices (left)"},
		{name: "its slice without a session", meddle: func(w *worldtest.World, g *resource.GPU) {
			own := resource.LiveSlice{Slice: resource.Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 0, Size: 1}, Handle: resource.Handle{UUID: "MIG-own"}}
			g.Slices = append(g.Slices, own)
			w.Host().Ledger[0].Holders[0].Slices = append(w.Host().Ledger[0].Holders[0].Slices, own)
		}, want: "clock=unlocked persistence=off power=700 W", kept: "mig: foreign-slices (left); slice: slice-of-no-session (left)"},
		{name: "power changed by a reboot", meddle: func(w *worldtest.World, g *resource.GPU) {
			w.Reboot()
			g.PowerMW = 650_000
		}, want: "", kept: "power: ended-by-reboot"},
		{name: "a restore failed, and the GPU is as before it", meddle: func(w *worldtest.World, _ *resource.GPU) {
			failedRestore(w)
		}, want: "clock=unlocked mig=off persistence=off power=700 W"},
		{name: "a restore failed, and the GPU cannot be read", meddle: func(w *worldtest.World, g *resource.GPU) {
			failedRestore(w)
			g.MIG, g.Persistence, g.PowerMW = false, false, 0
			for _, f := range []resource.Feature{resource.FeatureMIG, resource.FeaturePersistence, resource.FeaturePower} {
				degrade(g, f)
			}
		}, want: "clock=unlocked mig=off persistence=off power=700 W"},
		{name: "after a reboot", meddle: func(w *worldtest.World, _ *resource.GPU) { w.Reboot() },
			want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := worldtest.New(t, "h200")
			g := w.GPU("GPU-0")
			if test.before != nil {
				test.before(g)
			}
			prior := bring(t, w, two, resource.Prior{})
			if test.stated != nil {
				prior.GPUs[0].Baseline = prior.GPUs[0].Baseline.With(resource.SMClock, *test.stated)
				w.Host().Ledger[0].Baseline = prior.GPUs[0].Baseline
			}
			if test.meddle != nil {
				test.meddle(w, g)
			}
			if w.Host().Ledger[0].Was.Has(resource.MIGMode) { // the state has what the failed step was to set
				prior.GPUs[0].Applied = w.Host().Ledger[0].Set
			}
			d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{})
			if len(d.GPUs) != 1 || !d.GPUs[0].GiveBack {
				t.Fatalf("%+v", d.GPUs)
			}
			if got := settings(d.GPUs[0].Settings); got != test.want {
				t.Errorf("restored %q, want %q", got, test.want)
			}
			var kept []string
			for _, f := range d.GPUs[0].Kept {
				line := fmt.Sprintf("%s: %s", f.Kind, f.Reason.Kind)
				if f.Reason.Setting != nil {
					line += " " + f.Reason.Setting.String()
				}
				if f.Left {
					line += " (left)"
				}
				kept = append(kept, line)
			}
			left := strings.Contains(test.kept, "(left)")
			if released := d.GPUs[0].Action == diff.Delete; released == left {
				t.Errorf("released: %v", released)
			}
			given := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{AbandonBaseline: true}).GPUs[0]
			if given.Action != diff.Delete || !given.Abandon {
				t.Errorf("given up: %v, %v", given.Action, given.Abandon)
			}
			if got := strings.Join(kept, "; "); got != test.kept {
				t.Errorf("kept %q, want %q", got, test.kept)
			}
		})
	}
}

// failedRestore has a ledger in which the baseline was about to be restored.
func failedRestore(w *worldtest.World) {
	book := &w.Host().Ledger[0]
	set := book.Set
	book.Leaving, book.Was, book.Set = book.Holders[0].Lineage, set.Without(resource.SMClock), book.Baseline.Copy(resource.SMClock, set)
}

func settings(s resource.Settings) string {
	var all []string
	for _, setting := range []resource.Setting{resource.SMClock, resource.MIGMode, resource.PersistenceMode, resource.PowerLimit} {
		if value, given := s.Get(setting); given {
			all = append(all, setting.String()+"="+setting.Text(value))
		}
	}
	return strings.Join(all, " ")
}

// TestDisguiseBroken: a damaged disguise is written again, in Docker with a new container.
func TestDisguiseBroken(t *testing.T) {
	w, prior := applied(t)
	w.Host().Bodies[0].Damaged = "figures was changed"
	p, _ := w.Plan(t, two, prior)
	if c := p.Diff.Sessions[0]; c.Action != diff.Update || c.Body != diff.Refit || c.Slice != diff.Keep {
		t.Errorf("a session folder: %s, container %s, slice %s", c.Action, c.Body, c.Slice)
	}
	if c := p.Diff.Sessions[1]; c.Action != diff.NoOp {
		t.Errorf("the other one: %s", c.Action)
	}
}

// outdated are facades of another cosplay, and another driver.
var outdated = []resource.Outdated{{Part: resource.Facades, From: "cosplay 1", To: "cosplay 2"}, {Part: resource.Driver, From: "535.1", To: "550.2"}}

// TestOutdated: a disguise that would be made otherwise now is no drift; it is
// brought up to date in place, with whatever else changes.
func TestOutdated(t *testing.T) {
	both := "facades: cosplay 1 -> cosplay 2, driver: 535.1 -> 550.2"
	for name, test := range map[string]struct {
		text   string
		meddle func(*worldtest.World)
		want   string
	}{
		"alone":           {two, func(*worldtest.World) {}, "update keep refit renew; " + both},
		"with an edit":    {strings.Replace(two, `target = "2060"`, "target = \"2060\"\n  command = [\"true\"]", 1), func(*worldtest.World) {}, "update keep refit; command: (none) -> [\"true\"], " + both},
		"with a new fit":  {strings.Replace(two, `target = "2060"`, "target = \"2060\"\n  fit { tolerance = \"7%\" }", 1), func(*worldtest.World) {}, "update keep refit; fit.tolerance: 10 % -> 7 %, " + both},
		"another target":  {strings.Replace(two, `target = "2060"`, `target = "3090"`, 1), func(*worldtest.World) {}, "replace"},
		"slice removed":   {two, func(w *worldtest.World) { w.GPU("GPU-0").Slices = w.GPU("GPU-0").Slices[1:] }, "create make remake; "},
		"GPU removed":     {two, func(w *worldtest.World) { w.Host().GPUs = nil }, "no-op keep keep; "},
		"damaged as well": {two, func(w *worldtest.World) { w.Host().Bodies[0].Damaged = "figures was changed" }, "update keep refit; " + both},
	} {
		t.Run(name, func(t *testing.T) {
			w, prior := applied(t)
			w.Host().Bodies[0].Outdated = outdated
			test.meddle(w)
			p, diags := w.Plan(t, test.text, prior)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			c := p.Diff.Sessions[0]
			got := fmt.Sprintf("%s %s %s", c.Action, c.Slice, c.Body)
			if c.Renew {
				got += " renew"
			}
			var fields []string
			for _, f := range c.Fields {
				fields = append(fields, fmt.Sprintf("%s: %s -> %s", words.Field(f), words.Value(f.From, resource.Live{}), words.Value(f.To, resource.Live{})))
			}
			if got += "; " + strings.Join(fields, ", "); !strings.HasPrefix(got, test.want) || (c.Record && c.Body == diff.Refit) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if name == "alone" && (p.Diff.Sessions[1].Action != diff.NoOp || len(p.Diff.Drift) > 0) {
				t.Errorf("the other one: %+v, drift %+v", p.Diff.Sessions[1], p.Diff.Drift)
			}
		})
	}
}

// TestOutdatedTriggers: what is replaced when another session changes is not when
// that only gets another cosplay's facades.
func TestOutdatedTriggers(t *testing.T) {
	w, prior := applied(t)
	o := diff.Options{Triggers: map[resource.Address][]diff.Trigger{prior.Sessions[1].Address: {{Of: resource.Reference{Address: prior.Sessions[0].Address}}}}}
	p, _ := w.Plan(t, two, prior)
	for _, test := range []struct {
		meddle func(*resource.Body)
		want   diff.Action
	}{
		{func(c *resource.Body) { c.Outdated = outdated }, diff.NoOp},
		{func(c *resource.Body) { c.Damaged = "figures was changed" }, diff.Replace},
	} {
		test.meddle(&w.Host().Bodies[0])
		d := diff.Compare(p.Desired, prior, w.Live, o)
		if d.Sessions[0].Action != diff.Update || d.Sessions[1].Action != test.want {
			t.Errorf("%+v: %s, and the other one %s, want %s", w.Host().Bodies[0], d.Sessions[0].Action, d.Sessions[1].Action, test.want)
		}
	}
}

// TestChange: what an edit of the file does to a session.
func TestChange(t *testing.T) {
	for _, test := range []struct {
		name, attribute string
		want            string
	}{
		{"nothing", "", "no-op keep keep"},
		{"env", `env = { A = 1 }`, "update keep refit"},
		{"command", `command = ["true"]`, "update keep refit"},
		{"workspace", `workspace = "elsewhere"`, "update keep refit"},
		{"strict", `strict = true`, "update keep refit"},
		{"capability", `capability = "target"`, "update keep refit"},
		{"a closer look at the same slice", `fit { tolerance = "11%" }`, "update keep keep"},
		{"bandwidth first", `fit { prefer = "bandwidth" }`, "update keep keep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, prior := applied(t)
			text := strings.Replace(two, `target = "2060"`, "target = \"2060\"\n  "+test.attribute, 1)
			p, diags := w.Plan(t, text, prior)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			for _, c := range p.Diff.Sessions {
				if got := fmt.Sprint(c.Action, c.Slice, c.Body); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(test.want, " ", "") {
					t.Errorf("%s: %s, want %s: %+v", c.Address, got, test.want, c.Fields)
				}
			}
			after := bring(t, w, text, prior)
			if p, _ := w.Plan(t, text, after); p.Diff.Changes() || !p.Empty() {
				t.Errorf("it does not converge: %s%+v", p, p.Diff.Sessions)
			}
		})
	}
}

// TestByReboot: a reboot explains what the driver forgets, and nothing else.
func TestByReboot(t *testing.T) {
	w, prior := applied(t)
	w.Reboot()
	w.Host().Bodies[0].Damaged = "figures was changed"
	var others []string
	d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{}).Drift
	for _, d := range d {
		if !d.ByReboot {
			others = append(others, string(d.Class))
		}
	}
	if got := strings.Join(others, " "); got != "host-rebooted disguise-broken" || len(d) < 8 {
		t.Errorf("not explained: %s of %d", got, len(d))
	}
}

// TestUnreachable: of a host that cannot be read nothing is drift but the host, for information, and no GPU is given back, also
// one without a session.
func TestUnreachable(t *testing.T) {
	body := resource.Body{ID: "one", Session: "w-0", Host: "far", Runtime: "process", State: resource.Running, Hash: "hash"}
	prior := resource.Prior{Lineage: "l", BootIDs: map[string]string{"far": "boot"},
		GPUs: []resource.PriorGPU{{Host: "far", UUID: "GPU-0", Applied: resource.Settings{}.With(resource.MIGMode, resource.On)}, {Host: "far", UUID: "GPU-1"}},
		Sessions: []resource.PriorSession{{Handle: &resource.Handle{UUID: "MIG-0"}, Body: &body, Session: resource.Session{Address: resource.Nth("w", 0), ID: "w-0", Runtime: "process",
			Slice: resource.Slice{Host: "far", GPU: "GPU-0", Profile: "1g.18gb", Size: 1}}}}}
	live := resource.Live{Hosts: []resource.Host{{Name: "far", BootID: "boot", Bodies: prior.Bodies("far"), Unreachable: "no route"}}}
	left := map[resource.Address]bool{resource.Nth("w", 0): true}
	d := diff.Compare(resource.Desired{Sessions: []resource.Session{prior.Sessions[0].Session}}, prior, live, diff.Options{Left: left})
	if d.Changes() || d.NotAsApplied() || len(d.Drift) != 1 || d.Drift[0].Class != diff.HostUnreachable || !d.Drift[0].Informational {
		t.Errorf("drift %+v, GPUs %+v, sessions %+v", d.Drift, d.GPUs, d.Sessions)
	}
	prior.Sessions = nil
	if d := diff.Compare(resource.Desired{}, prior, live, diff.Options{}); d.Changes() || len(d.GPUs) > 0 {
		t.Errorf("GPUs %+v", d.GPUs)
	}
}
