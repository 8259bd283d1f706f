package diff_test

import (
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/words"
	"cosplay/internal/worldtest"
)

// TestUnprovenLocks: a lock of an idle GPU is information and no drift; one that was refuted, forgotten or lifted is
// drift, and one that a busy GPU runs at is neither.
func TestUnprovenLocks(t *testing.T) {
	for _, test := range []struct {
		name     string
		meddle   func(*resource.PriorGPU, *resource.GPU)
		unproven int // MHz
		drift    string
	}{
		{"idle at its lock", func(_ *resource.PriorGPU, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1575, true }, 1575, ""},
		{"idle below its lock", func(_ *resource.PriorGPU, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 345, true }, 1575, ""},
		{"busy at its lock", func(_ *resource.PriorGPU, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1575, false }, 0, ""},
		{"busy above its lock", func(_ *resource.PriorGPU, g *resource.GPU) { g.SMClockMHz, g.LowClockReason = 1980, false }, 0, "lifted"},
		{"persistence off", func(_ *resource.PriorGPU, g *resource.GPU) { g.Persistence, g.LowClockReason = false, true }, 0, "lifted"},
		{"refuted, nothing limits the clock", func(p *resource.PriorGPU, g *resource.GPU) { p.ClockRefutedMHz, g.LowClockReason = 1980, true }, 0, "lifted"},
		{"refuted, another lock", func(p *resource.PriorGPU, g *resource.GPU) { p.ClockRefutedMHz, g.LowClockReason = 900, true }, 0, "at 900 MHz"},
		{"a run was interrupted while it set it", func(p *resource.PriorGPU, g *resource.GPU) { p.ClockUnsure, g.LowClockReason = true, true }, 0, ""},
		{"unlocked", func(p *resource.PriorGPU, g *resource.GPU) {
			p.Applied, g.LowClockReason = p.Applied.With(resource.SMClock, 0), true
		}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, prior := applied(t)
			test.meddle(&prior.GPUs[0], w.GPU("GPU-0"))
			d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{})
			mhz := 0
			for _, l := range d.Unproven {
				mhz += l.MHz
			}
			drift := ""
			for _, one := range d.Drift {
				if one.Class == diff.ClockLock {
					drift = words.Value(one.To, resource.Live{})
				}
			}
			if mhz != test.unproven || drift != test.drift {
				t.Errorf("unproven at %d MHz, drift %q; want %d and %q", mhz, drift, test.unproven, test.drift)
			}
		})
	}
}

const three = `host "lab" {}
session "worker" {
  count  = 3
  target = "2060"
}`

// TestLockIsSentAgain: whatever changes on a GPU, its lock is sent again in a step
// that the plan shows; where nothing changes there, nothing is sent.
func TestLockIsSentAgain(t *testing.T) {
	one := strings.Replace(two, "count  = 2", "count  = 1", 1)
	for _, test := range []struct {
		name, text string
		meddle     func(*worldtest.World, resource.Prior) resource.Prior
		sent       bool
	}{
		{name: "nothing changes", text: two},
		{name: "a slice comes", text: three, sent: true},
		{name: "a slice is removed", text: one, sent: true},
		{name: "a container alone", text: two, meddle: func(w *worldtest.World, p resource.Prior) resource.Prior {
			w.Remove("worker-0")
			return p
		}},
		{name: "a slice was destroyed", text: two, sent: true, meddle: func(w *worldtest.World, p resource.Prior) resource.Prior {
			w.GPU("GPU-0").Slices = w.GPU("GPU-0").Slices[1:]
			return p
		}},
		{name: "the power limit", text: two, sent: true, meddle: func(w *worldtest.World, p resource.Prior) resource.Prior {
			w.GPU("GPU-0").PowerMW = 500_000
			return p
		}},
		{name: "verify refuted the lock", text: two, sent: true, meddle: func(_ *worldtest.World, p resource.Prior) resource.Prior {
			p = p.Clone()
			p.GPUs[0].ClockRefutedMHz = 1980
			return p
		}},
		{name: "clocks are not managed", text: strings.Replace(three, "{}", `{ manage = ["slices", "mig-mode", "persistence"] }`, 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, prior := applied(t)
			if test.meddle != nil {
				prior = test.meddle(w, prior)
			}
			p, diags := w.Plan(t, test.text, prior)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			sent, shown := strings.Contains(p.String(), "GPU-0/clock: set-gpu 1575 MHz"), false
			for _, g := range p.Diff.GPUs {
				for _, f := range g.Fields {
					shown = shown || f.Kind == diff.FieldSMClock && f.To == diff.Clock{MHz: 1575}
				}
			}
			if sent != test.sent || shown != test.sent {
				t.Errorf("sent %t, shown %t; want %t\n%s", sent, shown, test.sent, p)
			}
			after := bring(t, w, test.text, prior)
			if after.GPUs[0].ClockRefutedMHz != 0 {
				t.Error("the lock was sent again and still counts as refuted")
			}
			if again, _ := w.Plan(t, test.text, after); !again.Empty() {
				t.Errorf("applied, there is more to do:\n%s", again)
			}
		})
	}
}

// TestGiveBackOfARefutedLock: a lock that seems to be gone is lifted again, which is the only proof that the ledger
// has; one that another user set meanwhile is left alone.
func TestGiveBackOfARefutedLock(t *testing.T) {
	for mhz, kept := range map[int]bool{1980: false, 900: true} {
		w, prior := applied(t)
		prior.GPUs[0].ClockRefutedMHz = mhz
		d := diff.Compare(resource.Desired{}, prior, w.Live, diff.Options{})
		got := false
		for _, f := range d.GPUs[0].Kept {
			got = got || f.Kind == diff.FieldSMClock
		}
		if got != kept || (!d.GPUs[0].Settings.Has(resource.SMClock)) != kept {
			t.Errorf("seen at %d MHz: kept %t, want %t; set to %v", mhz, got, kept, d.GPUs[0].Settings)
		}
	}
}
