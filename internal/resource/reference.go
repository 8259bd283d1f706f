package resource

import "slices"

// Reference means one session or, with Block, all sessions of a block: then the
// name of its address counts alone.
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

// Renamed is a session that got another address.
type Renamed struct {
	From Address `json:"from"`
	To   Address `json:"to"`
}

// Rename gives sessions other addresses, all at once; slices and containers are
// known by the session's ID, which stays. No two may come to have the same.
func (p Prior) Rename(moves []Renamed) Prior {
	to := make(map[Address]Address, len(moves))
	for _, m := range moves {
		to[m.From] = m.To
	}
	p = p.Clone()
	for i, s := range p.Sessions {
		if next, moved := to[s.Address]; moved {
			p.Sessions[i].Address = next
		}
	}
	slices.SortFunc(p.Sessions, func(a, b PriorSession) int { return a.Address.Compare(b.Address) })
	return p
}

// Without leaves sessions out; their GPUs stay.
func (p Prior) Without(gone map[Address]bool) Prior {
	p = p.Clone()
	p.Sessions = slices.DeleteFunc(p.Sessions, func(s PriorSession) bool { return gone[s.Address] })
	return p
}
