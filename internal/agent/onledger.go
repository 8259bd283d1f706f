//go:build cgo && linux

package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/diff"
	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

func (l *nvmlLibrary) entry(r request) ledger.Entry {
	boot, _ := bootID(l.path) // a record without one matches no later boot
	return ledger.Entry{Book: l.book, GPU: r.GPU, Holder: r.Holder, BootID: boot}
}

func (l *nvmlLibrary) look(r request) ledger.Look {
	return func() (*ledger.Found, error) {
		d, err := l.device(r.GPU)
		if err != nil {
			return nil, err
		}
		gpu, err := d.read()
		if err != nil {
			return nil, err
		}
		now, _ := diff.Baseline(gpu, 0)
		boot, _ := bootID(l.path)
		return &ledger.Found{GPU: gpu, Settings: now, BootID: boot, Now: time.Now().UTC().Format(time.RFC3339)}, nil
	}
}

// believed reports whether the agent trusts what a request states about the past: root
// could edit the ledger, and a ledger that is not the system's belongs to the user.
func (l *nvmlLibrary) believed() bool { return l.guard == nil || l.guard.uid == 0 }

func (l *nvmlLibrary) changeLedger(r request) error {
	if l.book.Dir == "" {
		return nil
	}
	switch r.Op {
	case opTake:
		t := *r.Take
		t.Trusted = l.believed()
		if err := l.ownClock(r.GPU, &t); err != nil {
			return err
		}
		return l.entry(r).Take(t, l.look(r))
	case opLeave:
		return l.entry(r).Leave()
	}
	return l.entry(r).Release(ledger.Parting{AsItIs: r.AsItIs, Abandon: r.Abandon, Trusted: l.believed()}, l.look(r))
}

// ownClock replaces what a user states about a clock lock from before cosplay by the
// value in the admin's file: NVML has no getter for it.
func (l *nvmlLibrary) ownClock(gpu string, t *ledger.Take) error {
	if t.Trusted && t.Baseline.Has(resource.SMClock) || l.book.Dir != ledger.SystemDir {
		return nil
	}
	clocks, err := ClocksOf(adminFile(BaselineClocks))
	if err != nil {
		return err
	}
	t.Baseline = t.Baseline.Without(resource.SMClock)
	if mhz, listed := clocks[gpu]; listed {
		t.Baseline = t.Baseline.With(resource.SMClock, mhz)
	}
	return nil
}

func (r request) wanted() (s resource.Settings, sets bool) {
	if r.Op != opSet {
		return s, false
	}
	return s.With(*r.Setting, r.Value), true
}

// allowed checks a change against the ledger, and records it there before it is made: if
// this process ends, the ledger lists what may have to be undone.
func (l *nvmlLibrary) allowed(r request) error {
	if l.book.Dir == "" {
		return nil
	}
	e := l.entry(r)
	if s, sets := r.wanted(); sets {
		return e.Setting(s, l.look(r))
	}
	if r.Op == opDestroySlice {
		return e.Destroying(*r.Slice)
	}
	return nil
}

func (l *nvmlLibrary) page(r request) (resource.Page, error) {
	if l.book.Dir == "" {
		return resource.Page{}, nil
	}
	return l.entry(r).Page()
}

// giveUp records that the driver does not offer the call that failed, so that the next
// plan does without it, and returns the error. before is the page before the change: a
// missing call has changed nothing. A restoration or removal is not given up.
func (l *nvmlLibrary) giveUp(r request, before resource.Page, err error) error {
	lacks, is := degradation(err)
	if !is || !unavailable(err) || l.book.Dir == "" || r.unlocks() || r.Op == opDestroySlice {
		return err
	}
	var tried resource.Settings
	if lacks.Set && lacks.Code != int(nvml.ERROR_UNKNOWN) {
		tried, _ = r.wanted()
	}
	e := l.entry(r)
	news, bookErr := e.GiveUp(lacks, l.driver(), tried, before)
	at, known := failedCall(err)
	if known && news {
		at.GivenUp = lacks.Feature
	}
	sameFeature := func(o resource.Degradation) bool { return o.Feature == lacks.Feature }
	if known && slices.ContainsFunc(e.Book.GivenUp(e.GPU, e.BootID, l.driver()), sameFeature) { // another session may have found out
		at.Advice = prose.Advice{What: fmt.Sprintf("The driver does not offer this call: cosplay no longer manages %s of this GPU.", lacks.Feature.Words()), Fix: "run cosplay apply again, which plans without it"}
	}
	return errors.Join(err, bookErr)
}

// noted records the outcome of a change, and returns its error.
func (l *nvmlLibrary) noted(r request, answer *response, err error) error {
	if l.book.Dir == "" {
		return err
	}
	e := l.entry(r)
	if s, sets := r.wanted(); sets {
		now, known := l.result(r, s, answer.Value, err)
		if !known {
			return err
		}
		return errors.Join(err, e.Settled(now))
	}
	if err == nil && r.Op == opDestroySlice {
		return e.Destroyed(*r.Slice)
	}
	return err
}

// result is the outcome of a change of settings: the value that the driver reports, which
// may differ from the requested one, also after an error.
func (l *nvmlLibrary) result(r request, s resource.Settings, now int, err error) (resource.Settings, bool) {
	switch {
	case err == nil:
		return s.With(*r.Setting, now), true // read back, but for a clock lock, which the driver confirmed
	case !r.Setting.Readable():
		return s, false
	}
	found, unread := l.look(r)()
	if unread != nil || !found.Settings.Has(*r.Setting) { // the driver does not report it any more
		return s, false
	}
	return resource.Settings{}.Copy(*r.Setting, found.Settings), true
}
