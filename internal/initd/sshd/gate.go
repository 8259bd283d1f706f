package sshd

import (
	"container/list"
	"math/rand/v2"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// stage is a stage of a login.
type stage int

const (
	silent  stage = iota // it has connected
	greeted              // it has sent its version, and exchanges keys in the clear
	keyed                // it has sent its last message in the clear
	known                // it has named the user and a key that may log in
	stages
)

// startups limits how many clients may be in the middle of a login, as OpenSSH's MaxStartups does: above start of
// them, each new client closes another one with a probability of rate percent, which grows to 100 percent at full.
//
// OpenSSH refuses the new client. cosplay closes the client that has waited longest in the most crowded stage. An
// honest client passes each stage in milliseconds, and a client that holds its connection open waits until it is
// closed. Clients that send only the first bytes of a login do not displace a client in a later stage. A limit per
// address does not help, since Docker's proxy gives all clients the same address.
type startups struct{ start, rate, full int }

// mostStartups was chosen by memory, which TestFloodMemory measures.
var mostStartups = startups{start: 1000, rate: 30, full: 1300}

// limit is the limit of this process: half of the files that it can open are for users who have logged in.
var limit = func() startups {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return mostStartups
	}
	return mostStartups.within(files.Cur)
}()

// within is the limit reduced in proportion for a process that can open only so many files.
func (s startups) within(files uint64) startups {
	if files/2 >= uint64(s.full) {
		return s
	}
	full := max(1, int(files/2))
	return startups{start: s.start * full / s.full, rate: s.rate, full: full}
}

// exceeded reports whether one of n has to be closed.
func (s startups) exceeded(n int) bool {
	switch {
	case n <= s.start:
		return false
	case n > s.full:
		return true
	}
	percent := s.rate + (100-s.rate)*(n-s.start)/(s.full-s.start)
	return rand.IntN(100) < percent
}

// gate lists the clients that have not logged in, by stage, the oldest first.
type gate struct {
	mu      sync.Mutex
	waiting [stages]list.List // of *visitor
}

// admit adds a client, and may close another one.
func (g *gate) admit(conn net.Conn) *visitor {
	v := &visitor{Conn: conn, gate: g, left: visitorBytes}
	g.mu.Lock()
	defer g.mu.Unlock()
	v.place = g.waiting[silent].PushBack(v)
	crowded, total := &g.waiting[silent], 0
	for i := range g.waiting {
		total += g.waiting[i].Len()
		if g.waiting[i].Len() > crowded.Len() {
			crowded = &g.waiting[i]
		}
	}
	if limit.exceeded(total) {
		oldest := crowded.Remove(crowded.Front()).(*visitor)
		oldest.place = nil
		shut(oldest.Conn)
	}
	return v
}

// promote moves a client to a later stage.
func (g *gate) promote(v *visitor, to stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.place != nil && v.stage < to {
		g.waiting[v.stage].Remove(v.place)
		v.stage, v.place = to, g.waiting[to].PushBack(v)
	}
}

// leave removes a client that has logged in or disconnected.
func (g *gate) leave(v *visitor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.place != nil {
		g.waiting[v.stage].Remove(v.place)
		v.place = nil
	}
	v.trusted.Store(true)
}
