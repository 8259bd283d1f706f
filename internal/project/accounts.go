package project

import (
	"maps"
	"slices"
	"time"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// accounts are the uses of memory of the sessions, with what programs had that have ended. Those of sessions on this
// machine can be read again without their runtime.
type accounts struct {
	uses map[resource.Address]resource.Use
	here []account
	turn int       // of here, which is read next
	last time.Time // when accounts were read
}

type account struct {
	session *resource.PriorSession
	in      runtime.Runtime
}

// shareOfTime is the part of the time between two readings that the accounts may take: 1/500.
const shareOfTime = 500

// leastAccounts are read in any case: those of a GPU that is full.
const leastAccounts = 8

// accounts are those of a snapshot.
func (l *Fleet) accounts(prior resource.Prior, live resource.Live) accounts {
	all, runtimes := accounts{uses: l.counted(prior, live), last: time.Now()}, l.runtimes(prior)
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		_, counted := all.uses[s.Address]
		in, open := runtimes[s.Slice.Host][s.Runtime]
		if h, err := l.Host(s.Slice.Host); counted && open && err == nil && !l.Machine.Elsewhere(h) {
			all.here = append(all.here, account{s, in})
		}
	}
	return all
}

// read reads accounts in turn, as many as the time since the last reading permits, and returns the sessions whose use has
// changed.
func (a *accounts) read(l *Fleet, prior resource.Prior, now time.Time) []resource.Address {
	until := now.Add(now.Sub(a.last) / shareOfTime)
	a.last = now
	changed := map[resource.Address]resource.Use{}
	for n := 0; n < len(a.here) && (n < leastAccounts || time.Now().Before(until)); n++ {
		one := a.here[a.turn]
		a.turn = (a.turn + 1) % len(a.here)
		usage, err := one.in.Usage(one.session.ID)
		if err != nil {
			continue // the next reading of its runtime reports why
		}
		if use := usage.Use(); !use.Equals(a.uses[one.session.Address]) {
			changed[one.session.Address] = use
		}
	}
	if len(changed) == 0 {
		return nil
	}
	l.explain(prior, changed)
	maps.Copy(a.uses, changed)
	return slices.Collect(maps.Keys(changed))
}
