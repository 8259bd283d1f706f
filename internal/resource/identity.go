package resource

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// SessionID is the name of a new session on its host: its short address in
// characters that a folder and a container may have.
func SessionID(a Address) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, a.Short())
}

// Hash tells one content of a session's container from another: everything that goes inside, and nothing that may
// change while it runs. It may lie open: without the key nobody can try out what the content is. With another cosplay
// it has to stay what it is, or each container would be made anew: a field that is new here has to be left out where
// it is empty.
func (s Session) Hash(key string) string {
	var box *ContainerSpec
	if !s.Spec.IsZero() {
		inside := s.Spec
		inside.Pull, inside.SSH.Kept = "", 0 // how an image is had; what is chosen, not asked for
		box = &inside
	}
	target := s.Target
	target.Aliases, target.Source, target.Year = nil, "", 0 // of the catalog, for people
	content, err := json.Marshal(struct {
		Target    Target
		Slice     Slice
		Runtime   string
		Command   []string
		Workspace string
		Env       map[string]string
		Strict    bool `json:",omitempty"` // what is not strict hashes as it did before there was the word
		Box       *ContainerSpec
		Sealed    map[string]string `json:",omitempty"`
	}{target, s.Slice, s.Runtime, s.Command, s.Workspace, s.Env, s.Strict, box, s.Sealed})
	if err != nil {
		panic(err) // strings and numbers only: it cannot fail
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Clone copies a prior deeply enough for Fold-like code to change the copy.
func (p Prior) Clone() Prior {
	boots := make(map[string]string, len(p.BootIDs))
	for host, id := range p.BootIDs {
		boots[host] = id
	}
	p.BootIDs = boots
	p.GPUs = append([]PriorGPU(nil), p.GPUs...)
	p.Sessions = append([]PriorSession(nil), p.Sessions...)
	p.Missing = append([]Address(nil), p.Missing...)
	p.Forgotten = append([]string(nil), p.Forgotten...)
	return p
}

// Lock tells what the SM clock shows about a lock at mhz; 0 is no lock.
type Lock int

// What can be known of a clock lock, which has no getter.
const (
	LockUnknown Lock = iota // nothing speaks against it
	LockLifted              // the clock is where the lock would not let it be
)

// LooksLocked reports whether the SM clock is where an unlocked GPU would not
// have it: below full with no reason to be, or above the lowest while idle.
func (g GPU) LooksLocked() bool {
	clocks := g.Model.ClocksMHz
	if len(clocks) == 0 || g.SMClockMHz == g.Model.MaxClockMHz() {
		return false
	}
	return !g.LowClockReason || g.SMClockMHz > clocks[0]
}

// LockState compares the SM clock with a lock: above it, or below it without a
// reason to be low, the lock is not there. Anything else proves nothing.
func (g GPU) LockState(mhz int) Lock {
	if mhz == 0 {
		mhz = g.Model.MaxClockMHz()
	}
	if g.SMClockMHz > mhz || (g.SMClockMHz < mhz && !g.LowClockReason) {
		return LockLifted
	}
	return LockUnknown
}
