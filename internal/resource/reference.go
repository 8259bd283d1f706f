package resource

import (
	"fmt"
	"slices"
	"strings"
)

// Reference means one session or, with Block, all sessions of a block: then the name of its address counts alone.
type Reference struct {
	Address Address
	Block   bool
}

// Covers reports whether a session is meant.
func (r Reference) Covers(a Address) bool {
	if r.Block {
		return a.Name == r.Address.Name
	}
	return a == r.Address
}

// String is the reference as it is written: session.worker, session.worker[3].
func (r Reference) String() string { return r.Address.String() }

// MarshalText writes the reference as String does.
func (r Reference) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText writes: an address without a key means its block.
func (r *Reference) UnmarshalText(text []byte) error {
	err := r.Address.UnmarshalText(text)
	r.Block = r.Address == One(r.Address.Name)
	return err
}

// Renamed is a session that got another address.
type Renamed struct {
	From Address `json:"from"`
	To   Address `json:"to"`
}

// Rename gives sessions other addresses, all at once. Slices and bodies belong to the session's ID, which does not
// change. No two sessions may get the same address.
func (p Prior) Rename(moves []Renamed) Prior {
	to := make(map[Address]Address, len(moves))
	for _, m := range moves {
		to[m.From] = m.To
	}
	p = p.Clone()
	rename := func(a *Address) {
		if next, moved := to[*a]; moved {
			*a = next
		}
	}
	for i := range p.Sessions {
		rename(&p.Sessions[i].Address)
	}
	for i := range p.Missing {
		rename(&p.Missing[i])
	}
	for i := range p.Expired {
		rename(&p.Expired[i].Address)
	}
	slices.SortFunc(p.Expired, func(a, b Expired) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(p.Sessions, func(a, b PriorSession) int { return a.Address.Compare(b.Address) })
	return p
}

// Without leaves sessions out; their GPUs stay.
func (p Prior) Without(dropped map[Address]bool) Prior {
	if len(dropped) > 0 {
		p.Sessions = slices.DeleteFunc(slices.Clone(p.Sessions), func(s PriorSession) bool { return dropped[s.Address] })
	}
	return p
}

// Forget drops sessions, and records what exists of them as given up.
func (p Prior) Forget(all ...Address) Prior {
	drop := map[Address]bool{}
	for _, a := range all {
		drop[a] = true
	}
	p = p.Clone()
	p.Missing = slices.DeleteFunc(p.Missing, func(a Address) bool { return drop[a] })
	p.Sessions = slices.DeleteFunc(p.Sessions, func(s PriorSession) bool {
		if drop[s.Address] {
			p.Forgotten = append(p.Forgotten, s.things()...)
		}
		return drop[s.Address]
	})
	return p.Remembering()
}

// GiveUp records what exists of a session that the state no longer has as given up, unless another session has it too.
// It changes the state.
func (p *Prior) GiveUp(s PriorSession) {
	for _, thing := range s.things() {
		if thing != "" && !slices.Contains(p.Forgotten, thing) && !slices.ContainsFunc(p.Sessions, func(o PriorSession) bool { return o.has(thing) }) {
			p.Forgotten = append(p.Forgotten, thing)
		}
	}
}

// Recall is the reverse for a session that the state has. It changes the state.
func (p *Prior) Recall(s PriorSession) {
	if len(p.Forgotten) > 0 {
		p.Forgotten = slices.DeleteFunc(p.Forgotten, s.has)
	}
}

// ForgetGPUs drops GPUs in the same way.
func (p Prior) ForgetGPUs(drop map[GPUKey]bool) Prior {
	p = p.Clone()
	p.GPUs = slices.DeleteFunc(p.GPUs, func(g PriorGPU) bool {
		if drop[g.Key()] {
			p.Forgotten = append(p.Forgotten, g.UUID)
		}
		return drop[g.Key()]
	})
	return p.Remembering()
}

// Remembering is the state in which nothing that it has counts as given up.
func (p Prior) Remembering() Prior {
	if len(p.Forgotten) == 0 {
		return p
	}
	known := map[string]bool{"": true}
	for _, s := range p.Sessions {
		for _, thing := range s.things() {
			known[thing] = true
		}
	}
	for _, g := range p.GPUs {
		known[g.UUID] = true
	}
	p.Forgotten = slices.DeleteFunc(slices.Clone(p.Forgotten), func(thing string) bool {
		seen := known[thing]
		known[thing] = true
		return seen
	})
	return p
}

// HasForgotten reports whether the state has given up a GPU or a slice, by its UUID.
func (p Prior) HasForgotten(uuid string) bool { return slices.Contains(p.Forgotten, uuid) }

// HasForgottenBody reports the same of a body.
func (p Prior) HasForgottenBody(c Body) bool {
	return slices.Contains(p.Forgotten, c.lasting())
}

// things are the names of a session's slice and body.
func (s PriorSession) things() []string {
	var all []string
	if s.Handle != nil {
		all = append(all, s.Handle.UUID)
	}
	if s.Body != nil {
		all = append(all, s.Body.lasting())
	}
	return all
}

// has reports whether a name is one of these.
func (s PriorSession) has(thing string) bool {
	if s.Handle != nil && s.Handle.UUID == thing {
		return true
	}
	return s.Body != nil && (s.Body.ID == thing || strings.Contains(thing, s.Body.Session)) && s.Body.lasting() == thing
}

// lasting is a name that only this body ever has. The path of a session folder is no such name: a project can be moved,
// and a later session can have the same folder.
func (c Body) lasting() string {
	if !RuntimeNamed(c.Runtime).UniqueIDs {
		return fmt.Sprintf("%s:%s:%d", c.Runtime, c.Session, c.Serial)
	}
	return c.ID
}
