package resource

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
)

// SessionID is the ID of a new session: its short address in characters that a folder and a container may have.
func SessionID(a Address) string { return SafeName(a.Short()) }

// SessionIDIn is the ID of a new session with the name of its project, for a runtime that names bodies after it.
func SessionIDIn(project string, a Address) string {
	return SafeName(a.Short() + "-" + project)
}

// SafeName is a name in characters that a folder, a container and a unit of systemd may have: each other is a "-".
func SafeName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
}

// Hash identifies the content of a session's body: everything that is inside, and nothing that may change while it
// runs. Safe to publish: it cannot be brute-forced without the key. It must stay the same in later versions of cosplay,
// which would otherwise replace each container: leave out a new field while it is empty.
func (s Session) Hash(key string) string { return s.hash(key, false) }

// HasHash reports whether a body with this hash has the session's content. An older cosplay's hash includes the bounds,
// which it could not change in place.
func (s Session) HasHash(key, hash string) bool {
	return hash == s.hash(key, false) || hash == s.hash(key, true)
}

func (s Session) hash(key string, bounds bool) string {
	var spec *ContainerSpec
	if !s.Spec.IsZero() {
		inside := s.Spec
		inside.Name, inside.Pull, inside.SSH.Kept = "", "", 0 // what can change in place; what cosplay chose, not the user
		if len(inside.Entrypoint) == 0 {
			inside.Entrypoint = nil
		}
		if !bounds {
			inside.Limits, inside.Restart = Limits{ShmMiB: s.Spec.Limits.ShmMiB}, ""
		}
		spec = &inside
	}
	target := s.Target
	target.Aliases, target.Source, target.Year = nil, "", 0 // of the catalog, for people
	content := hashed.Get().(*bytes.Buffer)
	defer hashed.Put(content)
	content.Reset()
	err := json.NewEncoder(content).Encode(&struct {
		Target    Target
		Slice     Slice
		Runtime   string
		Command   []string
		Workspace string
		Env       map[string]string
		Strict    bool `json:",omitempty"` // left out if false, as before the attribute existed
		Box       *ContainerSpec
		Sealed    map[string]string `json:",omitempty"`
		More      []Slice           `json:",omitempty"`
		MPS       string            `json:",omitempty"`
		Compute   string            `json:",omitempty"`

		Capability string `json:",omitempty"`
	}{target, s.Slice, s.Runtime, s.Command, s.Workspace, s.Env, s.Strict, spec, s.Sealed, s.More, s.MPS, s.Compute, s.Capability})
	if err != nil {
		panic(err) // strings and numbers only: it cannot fail
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write(bytes.TrimSuffix(content.Bytes(), []byte("\n"))) // as json.Marshal writes it
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// hashed has buffers for what is hashed, since a plan hashes each session.
var hashed = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// Clone copies a prior with its lists, so that the copy can be changed.
func (p Prior) Clone() Prior {
	p.BootIDs = maps.Collect(maps.All(p.BootIDs)) // never nil
	p.GPUs, p.Sessions = slices.Clone(p.GPUs), slices.Clone(p.Sessions)
	p.Missing, p.Forgotten, p.Expired = slices.Clone(p.Missing), slices.Clone(p.Forgotten), slices.Clone(p.Expired)
	return p
}

// LooksLocked reports whether the SM clock is where an unlocked GPU would not have it: below full without a reason,
// or above the lowest while idle.
func (g GPU) LooksLocked() bool {
	clocks := g.Model.ClocksMHz
	if len(clocks) == 0 || g.SMClockMHz == g.Model.MaxClockMHz() {
		return false
	}
	return !g.LowClockReason || g.SMClockMHz > clocks[0]
}

// RefutesLock reports whether the SM clock proves that the GPU has no clock lock at mhz, or no unlocked clock if mhz
// is 0: the clock is above it, or below it without a reason. Any other clock proves nothing.
func (g GPU) RefutesLock(mhz int) bool {
	if mhz == 0 {
		mhz = g.Model.MaxClockMHz()
	}
	return g.SMClockMHz > mhz || g.SMClockMHz < mhz && !g.LowClockReason
}

// Seal records each secret as a hash that only the key can make. Without a key, before there is a state, it records
// the names alone.
func (s Session) Seal(key string) Session {
	if len(s.Secret) == 0 {
		return s
	}
	s.Sealed = maps.Collect(maps.All(s.Sealed))
	for name, value := range s.Secret {
		s.Sealed[name] = seal(key, name, value)
	}
	return s
}

func seal(key, name, value string) string {
	if key == "" {
		return ""
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte("env\x00" + name + "\x00" + value))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// IsSecret reports whether a value is the one that was sealed.
func (s Session) IsSecret(key, name, value string) bool {
	return hmac.Equal([]byte(s.Sealed[name]), []byte(seal(key, name, value)))
}

// Environ is the whole environment of the session's programs.
func (s Session) Environ() map[string]string {
	env := maps.Collect(maps.All(s.Env))
	maps.Copy(env, s.Secret)
	return env
}
