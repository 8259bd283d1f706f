package agent

import (
	"errors"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// entry is a request's GPU in the host's ledger.
func (l *nvmlLibrary) entry(r request) ledger.Entry {
	boot, _ := bootID(l.path) // without one, what is noted is of no boot that comes
	return ledger.Entry{Book: l.book, GPU: r.GPU, Holder: r.Holder, BootID: boot}
}

// keepBooks carries out what is about the ledger alone.
func (l *nvmlLibrary) keepBooks(r request) error {
	if l.book.Dir == "" {
		return nil
	}
	switch r.Op {
	case opTake:
		return l.entry(r).Take(*r.Take)
	case opLeave:
		return l.entry(r).Leave()
	}
	return l.entry(r).Release(r.AsItIs)
}

// allowed holds a change against the ledger, and notes there what is about to be
// done: whatever becomes of us, the book knows what may have to be undone.
func (l *nvmlLibrary) allowed(r request) error {
	if l.book.Dir == "" {
		return nil
	}
	zero := 0
	switch e := l.entry(r); r.Op {
	case opSetMIG:
		return e.Setting(resource.Settings{MIG: &r.On})
	case opSetPersistence:
		return e.Setting(resource.Settings{Persistence: &r.On})
	case opLockClock:
		return e.Setting(resource.Settings{ClockMHz: &r.Value})
	case opUnlockClock:
		return e.Setting(resource.Settings{ClockMHz: &zero})
	case opSetPower:
		return e.Setting(resource.Settings{PowerMW: &r.Value})
	case opCreateSlice:
		return e.Making(r.Slice.Slice)
	case opDestroySlice:
		return e.Destroying(*r.Slice)
	}
	return nil
}

// noted notes what has come of a change to the slices, and gives its error back.
// What failed and may have left something stays in the book.
func (l *nvmlLibrary) noted(r request, answer *response, err error) error {
	if l.book.Dir == "" {
		return err
	}
	switch e := l.entry(r); r.Op {
	case opCreateSlice:
		var known *Error
		if err == nil {
			return e.Made(*answer.Slice)
		}
		if errors.As(err, &known) && known.Sure && known.GPUInstance == nil {
			return errors.Join(err, e.Destroyed(*r.Slice))
		}
	case opDestroySlice:
		if err == nil {
			return e.Destroyed(*r.Slice)
		}
	}
	return err
}
