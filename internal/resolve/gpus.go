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

// gpus collects the GPUs that placement may use.
func (r *resolver) gpus() {
	for _, host := range r.intent.Hosts {
		shown, _ := r.live.Host(host.Name)
		for _, selector := range host.GPUs {
			if !slices.ContainsFunc(shown.Unusable, func(u resource.Unusable) bool { return selector.Matches(resource.GPU{Index: u.Index, UUID: u.UUID}) }) {
				r.find(shown, selector)
			}
		}
		for _, g := range shown.GPUs {
			if selected(host, g) && !slices.ContainsFunc(r.others(g), func(h resource.Holder) bool { return h.Whole }) && r.barred(g) == "" {
				r.cards = append(r.cards, r.newCard(host, g))
			}
		}
	}
}

// newCard states what placement may change on a GPU: what the host's block permits, and
// what foreign slices and processes on the GPU forbid.
func (r *resolver) newCard(host config.Host, g resource.GPU) place.GPU {
	held, ours := r.prior.GPU(host.Name, g.UUID)
	foreign := diff.Foreign(g, r.placements)
	card := place.GPU{
		GPU:      g,
		Foreign:  foreign,
		Mine:     r.countMine(g, foreign),
		Sharing:  host.Sharing,
		NoSlices: !host.Manage.Slices || g.Without(resource.FeatureMIG),
		Busy:     len(diff.ForeignProcesses(g, r.placements)) > 0,
	}
	if read, _ := r.live.Host(host.Name); len(held.All()) == 0 {
		card.ForeignMPS = foreignMPS(read, g)
	}
	if mhz, known := held.Applied.Get(resource.SMClock); known && !held.ClockUnsure && r.fittedAt(g, mhz) {
		card.LockMHz = &mhz
	}
	for s := range held.Applied.All() {
		card.Base = card.Base.Copy(s, held.Baseline)
	}
	if i := slices.Index(resource.TimeSlices, host.TimeSlice); i >= 0 {
		card.WantTimeSlice = &i
	}
	for _, s := range resource.AllSettings {
		card.Fixed[s] = !host.Manage.Settings[s] || gaveUp(g, s, held, ours)
	}
	card.Hindered = card.Busy && g.Model.MIG() && !g.MIG && !card.Fixed[resource.MIGMode]
	forgets := card.Fixed[resource.PersistenceMode] && !g.Persistence
	if forgets {
		r.warnOfForgetting(host, g)
	}
	forbidden := r.neighboursForbid(host, card) || len(r.others(g)) > 0
	unseen := g.Without(resource.ReadingProcesses) && !host.SlowNeighbours
	undone := r.undone(g)
	for s, fixed := range card.Fixed {
		s := resource.Setting(s)
		fixed = fixed || unseen && !s.Mode() || forgets && s.Forgotten()
		card.Fixed[s] = fixed || forbidden && s != resource.PersistenceMode
		used := card.Busy || len(foreign) > 0
		if value, was := undone.Get(s); was && !fixed && !r.neighboursForbid(host, card) && !(used && s.Mode()) {
			card.Again = card.Again.With(s, value)
		}
	}
	card.Fixed[resource.ComputeMode] = card.Fixed[resource.ComputeMode] || card.Busy
	if mode, again := card.Again.Get(resource.MIGMode); again {
		card.Show(resource.MIGMode, mode)
	}
	if card.Fixed[resource.SMClock] {
		now := r.clockAsItIs(held, g)
		if mhz, again := card.Again.Get(resource.SMClock); again {
			now = cmp.Or(mhz, g.Model.MaxClockMHz())
		}
		card.FixedClockMHz = &now
	}
	if host.Manage.Settings[resource.SMClock] && !ours && card.FixedClockMHz == nil && host.BaselineClockMHz == nil {
		r.warnOfLock(host, g)
	}
	return card
}

// fittedAt reports whether the fit of all sessions on a GPU assumes its clock lock. After a failed update it may not.
func (r *resolver) fittedAt(g resource.GPU, lock int) bool {
	at := cmp.Or(lock, g.Model.MaxClockMHz())
	return !slices.ContainsFunc(r.placements.On(g), func(s *resource.PriorSession) bool { return s.Fit.ClockMHz != at })
}

// neighboursForbid reports whether foreign programs use the GPU and must not be slowed.
func (r *resolver) neighboursForbid(host config.Host, card place.GPU) bool {
	return (len(card.Foreign) > 0 || card.Busy) && !host.SlowNeighbours
}

// gaveUp reports whether cosplay does not change a setting of a GPU: the driver does not offer it, or an acquired GPU has
// no baseline of it to restore, because the setting could not be read when cosplay acquired the GPU. Then cosplay does not
// change it until it has released the GPU. A length of time slices gets its baseline later.
func gaveUp(g resource.GPU, s resource.Setting, held resource.PriorGPU, ours bool) bool {
	without := g.Without(s.Feature())
	switch s {
	case resource.MIGMode:
		return !g.MIGCapable && g.Model.MIG() || without && !ownMode(held, g)
	case resource.SMClock, resource.TimeSlice:
		return without
	default:
		return without || ours && !held.Baseline.Has(s) && !held.Applied.Has(s)
	}
}

// warnOfForgetting warns if persistence mode is off, since the driver then forgets limits and locks.
func (r *resolver) warnOfForgetting(host config.Host, g resource.GPU) {
	may := host.Manage.Settings
	if !may[resource.SMClock] && !may[resource.PowerLimit] {
		return
	}
	if may[resource.PersistenceMode] { // the driver does not offer it, which has its own warning
		return
	}
	r.report(hcl.DiagWarning, host.Ranges.Of("manage"),
		fmt.Sprintf("cosplay does not change clock and power of GPU %d of host %q", g.Index, host.Name),
		"Persistence mode is off and manage does not include it: the driver would forget a clock lock and a power limit at once. "+
			"Fix: add \"persistence\" to manage, or switch it on: nvidia-smi -pm 1.")
}

// others are the other projects that hold a GPU and whose sessions or settings count.
func (r *resolver) others(g resource.GPU) []resource.Holder {
	book, _ := r.live.Page(g.Host, g.UUID)
	return book.Binding(r.prior.Lineage)
}

// undone are the settings that projects on a GPU had set, and that a reboot has undone. Each of them may set these again, as
// they were: it is the first that knows.
func (r *resolver) undone(g resource.GPU) (all resource.Settings) {
	if len(r.others(g)) == 0 {
		return all
	}
	read, _ := r.live.Host(g.Host)
	book, _ := r.live.Page(g.Host, g.UUID)
	had := book.Undone
	if book.BootID != "" && read.BootID != "" && book.BootID != read.BootID { // no project has changed anything since
		had = had.Over(book.Set)
	}
	for s, value := range had.All() {
		if now, known := g.Now(s); !known || now != value {
			all = all.With(s, value)
		}
	}
	return all
}

// clockAsItIs is the SM clock in MHz of a session on a GPU whose clock cosplay must not change: the lock of this
// project or of another one, otherwise the current clock of a busy GPU, otherwise its maximum.
func (r *resolver) clockAsItIs(held resource.PriorGPU, g resource.GPU) int {
	lost := diff.LockLost(held, r.prior, r.live)
	if ours := held.Applied.Value(resource.SMClock); ours != 0 && !held.ClockUnsure && !lost {
		return ours
	}
	book, _ := r.live.Page(g.Host, g.UUID)
	if theirs := book.Set.Value(resource.SMClock); theirs != 0 && len(r.others(g)) > 0 && !g.RefutesLock(theirs) {
		return theirs
	}
	if !g.LowClockReason && slices.Contains(g.Model.ClocksMHz, g.SMClockMHz) {
		return g.SMClockMHz
	}
	return g.Model.MaxClockMHz()
}

// warnOfLock warns if the SM clock indicates a lock. NVML cannot read a lock, so destroy could not restore it.
func (r *resolver) warnOfLock(host config.Host, g resource.GPU) {
	if g.LooksLocked() {
		r.report(hcl.DiagWarning, host.Ranges.Of("baseline_clock"),
			fmt.Sprintf("GPU %d of host %q may have a clock lock already", g.Index, host.Name),
			fmt.Sprintf("Its SM clock is %[1]d MHz, neither idle nor full. NVML cannot read a lock, so destroy would remove it. "+
				"If the clock is locked, write baseline_clock = %[1]d in the host block.", g.SMClockMHz))
	}
}
