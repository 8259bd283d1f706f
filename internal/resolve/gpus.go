package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/resource"
)

// gpus collects what placement may use.
func (r *resolver) gpus() {
	for _, host := range r.intent.Hosts {
		shown, _ := r.live.Host(host.Name)
		for _, selector := range host.GPUs {
			if !slices.ContainsFunc(shown.Unusable, func(u resource.Unusable) bool { return selector.Matches(resource.GPU{Index: u.Index, UUID: u.UUID}) }) {
				r.find(shown, selector)
			}
		}
		for _, g := range shown.GPUs {
			if selected(host, g) && !r.takenWhole(g) && r.barred(g) == "" {
				r.cards = append(r.cards, r.newCard(host, g))
			}
		}
	}
}

// newCard says what placement may do with a GPU: what the host's block leaves to
// us, and what neighbours forbid.
func (r *resolver) newCard(host config.Host, g resource.GPU) place.GPU {
	held, ours := r.prior.GPU(host.Name, g.UUID)
	card := place.GPU{
		GPU:              g,
		Foreign:          diff.Foreign(g, r.seats),
		FixedMIG:         !host.Manage.MIGMode || !g.MIGCapable && g.Model.MIG() || g.Without(resource.FeatureMIG) && !ownMode(held, g),
		FixedPower:       !host.Manage.Power || g.Without(resource.FeaturePower) || ours && neverRead(held, resource.PowerLimit),
		FixedPersistence: !host.Manage.Persistence || g.Without(resource.FeaturePersistence) || ours && neverRead(held, resource.PersistenceMode),
		NoSlices:         !host.Manage.Slices || g.Without(resource.FeatureMIG),
		Busy:             len(diff.ForeignProcesses(g, r.seats)) > 0,
	}
	if mhz, known := held.Applied.Get(resource.SMClock); known && !held.ClockUnsure && r.fittedAt(g, mhz) {
		card.LockMHz = &mhz
	}
	forbidden := r.neighboursForbid(host, card) || len(r.others(g)) > 0
	if forbidden {
		card.FixedMIG, card.FixedPower = true, true
	}
	unseen := g.Without(resource.ReadingProcesses) && !host.SlowNeighbours
	forgets := card.FixedPersistence && !g.Persistence
	if forgets && (host.Manage.Clocks || host.Manage.Power) {
		r.warnOfForgetting(host, g)
	}
	card.FixedPower = card.FixedPower || forgets || unseen
	if !host.Manage.Clocks || g.Without(resource.FeatureClock) || forgets || forbidden || unseen {
		now := r.clockAsItIs(held, g)
		card.FixedClockMHz = &now
	}
	if host.Manage.Clocks && !ours && card.FixedClockMHz == nil && host.BaselineClockMHz == nil {
		r.warnOfLock(host, g)
	}
	return card
}

// fittedAt reports whether the sessions on a GPU were fitted at the lock that it
// has: after an update that failed they were not.
func (r *resolver) fittedAt(g resource.GPU, lock int) bool {
	at := cmp.Or(lock, g.Model.MaxClockMHz())
	return !slices.ContainsFunc(r.seats.On(g), func(s *resource.PriorSession) bool { return s.Fit.ClockMHz != at })
}

// neighboursForbid reports whether others use the GPU and may not be slowed.
func (r *resolver) neighboursForbid(host config.Host, card place.GPU) bool {
	return (len(card.Foreign) > 0 || card.Busy) && !host.SlowNeighbours
}

// neverRead reports whether a setting of an acquired GPU has no baseline to go back to: it
// could not be read when cosplay acquired the GPU, and is left as it is until cosplay
// has released it.
func neverRead(held resource.PriorGPU, s resource.Setting) bool {
	return !held.Baseline.Has(s) && !held.Applied.Has(s)
}

// warnOfForgetting warns where limits and locks would not last.
func (r *resolver) warnOfForgetting(host config.Host, g resource.GPU) {
	if host.Manage.Persistence { // then the driver does not offer it, which is another warning
		return
	}
	r.diags = append(r.diags, &hcl.Diagnostic{
		Severity: hcl.DiagWarning,
		Summary:  fmt.Sprintf("clock and power of GPU %d of host %q are left as they are", g.Index, host.Name),
		Detail:   "Persistence mode is off and manage leaves it out: the driver would forget a clock lock and a power limit at once. Add \"persistence\" to manage, or switch it on: nvidia-smi -pm 1.",
		Subject:  rangeOf(host.Ranges, "manage"),
	})
}

// others are the projects besides this one that hold a GPU.
func (r *resolver) others(g resource.GPU) []resource.Holder {
	book, _ := r.live.Held(g.Host, g.UUID)
	return book.Others(r.prior.Lineage)
}

// takenWhole reports whether another project has a GPU for itself alone.
func (r *resolver) takenWhole(g resource.GPU) bool {
	return slices.ContainsFunc(r.others(g), func(h resource.Holder) bool { return h.Whole })
}

// clockAsItIs is the SM clock that a session gets where it may not be changed:
// our own lock or that of another project, else what shows, else full clock.
func (r *resolver) clockAsItIs(held resource.PriorGPU, g resource.GPU) int {
	lost := diff.LockLost(held, r.prior, r.live)
	if ours := held.Applied.Value(resource.SMClock); ours != 0 && !held.ClockUnsure && !lost {
		return ours
	}
	book, _ := r.live.Held(g.Host, g.UUID)
	if theirs := book.Set.Value(resource.SMClock); theirs != 0 && len(r.others(g)) > 0 && g.LockState(theirs) == resource.LockUnknown {
		return theirs
	}
	if !g.Held && slices.Contains(g.Model.ClocksMHz, g.SMClockMHz) {
		return g.SMClockMHz
	}
	return g.Model.MaxClockMHz()
}

// warnOfLock warns where the SM clock looks as if it were locked already: the
// lock cannot be read, so destroy could not bring it back.
func (r *resolver) warnOfLock(host config.Host, g resource.GPU) {
	if !g.LooksLocked() {
		return
	}
	r.diags = append(r.diags, &hcl.Diagnostic{
		Severity: hcl.DiagWarning,
		Summary:  fmt.Sprintf("GPU %d of host %q may have a clock lock already", g.Index, host.Name),
		Detail: fmt.Sprintf("Its SM clock is %d MHz, neither idle nor full. NVML cannot read a lock, so destroy would lift it. If there is one, tell it: baseline_clock = %d in the host block.",
			g.SMClockMHz, g.SMClockMHz),
		Subject: rangeOf(host.Ranges, "baseline_clock"),
	})
}
