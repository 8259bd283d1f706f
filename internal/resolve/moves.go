package resolve

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// Moved gives the sessions of the state the addresses that moved blocks state, and those
// that follow when a block gets or loses count. moved has the old address for each new
// one. If another session has the new address, Moved warns and does not move the session.
func Moved(intent *config.Intent, prior resource.Prior) (next resource.Prior, moved map[resource.Address]resource.Address, diags hcl.Diagnostics) {
	if len(intent.Moves) == 0 && slices.EqualFunc(intent.Sessions, prior.Sessions, func(s config.Session, was resource.PriorSession) bool { return s.Address == was.Address }) {
		return prior, nil, nil
	}
	m := mover{intent: intent, prior: prior, to: map[resource.Address]resource.Address{}, by: map[resource.Address]config.Move{}, hops: map[resource.Address]int{}, wanted: map[resource.Address]bool{}}
	for _, s := range intent.Sessions {
		m.wanted[s.Address] = true
	}
	changed := false
	for _, s := range prior.Sessions {
		m.to[s.Address] = m.destination(s.Address)
		changed = changed || m.to[s.Address] != s.Address
	}
	if !changed {
		return prior, nil, nil
	}
	for m.settle() {
	}
	moved = map[resource.Address]resource.Address{}
	var moves []resource.Renamed
	for _, s := range prior.Sessions {
		if to := m.to[s.Address]; to != s.Address {
			moved[to] = s.Address
			moves = append(moves, resource.Renamed{From: s.Address, To: to})
		}
	}
	if len(moves) == 0 {
		return prior, nil, m.diags
	}
	return prior.Rename(moves), moved, m.diags
}

type mover struct {
	intent *config.Intent
	prior  resource.Prior
	wanted map[resource.Address]bool             // the configuration's
	to     map[resource.Address]resource.Address // by the address in the state
	by     map[resource.Address]config.Move      // the block that moves it, by the address in the state
	hops   map[resource.Address]int              // how many blocks move it, by the address in the state
	diags  hcl.Diagnostics
}

// destination follows the moves of an address to their end. Moves have no cycle.
func (m *mover) destination(a resource.Address) resource.Address {
	at := a
	for range m.intent.Moves {
		i := slices.IndexFunc(m.intent.Moves, func(mv config.Move) bool { return !mv.From.Block && mv.From.Address == at })
		if i < 0 {
			i = slices.IndexFunc(m.intent.Moves, func(mv config.Move) bool { return mv.From.Covers(at) })
		}
		if i < 0 {
			break
		}
		move := m.intent.Moves[i]
		m.by[a] = move
		m.hops[a]++
		if key := at.Key; move.From.Block {
			at = resource.Address{Name: move.To.Address.Name, Key: key}
		} else {
			at = move.To.Address
		}
	}
	return m.implied(at)
}

// implied moves a single session to index 0 if its block got count, and index 0 to the
// single session if the block lost count.
func (m *mover) implied(a resource.Address) resource.Address {
	if m.wanted[a] {
		return a
	}
	other := resource.One(a.Name)
	switch a.Key {
	case resource.Key{}:
		other = resource.Nth(a.Name, 0)
	case resource.Nth(a.Name, 0).Key:
	default:
		return a
	}
	if _, taken := m.prior.Session(other); taken || !m.wanted[other] {
		return a
	}
	return other
}

// settle undoes one move to an address that another session has, or gets by fewer
// moves. It returns false if there is no such move.
func (m *mover) settle() bool {
	has := map[resource.Address]resource.Address{}
	for _, s := range m.prior.Sessions {
		if m.to[s.Address] == s.Address {
			has[s.Address] = s.Address
		}
	}
	nearest := slices.SortedStableFunc(slices.Values(m.prior.Sessions), func(a, b resource.PriorSession) int { return m.hops[a.Address] - m.hops[b.Address] })
	for _, s := range nearest {
		to := m.to[s.Address]
		other, taken := has[to]
		has[to] = s.Address
		if !taken || to == s.Address {
			continue
		}
		m.to[s.Address] = s.Address
		m.warn(s.Address, to, other)
		return true
	}
	return false
}

func (m *mover) warn(from, to, other resource.Address) {
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s is not moved to %s", from, to), Subject: &hcl.Range{},
		Detail: fmt.Sprintf("The address belongs to %s of the state, so the session keeps its address. Move or remove %s first.", other, other)}
	if move, ok := m.by[from]; ok {
		d.Subject = &move.Range
	}
	m.diags = append(m.diags, d)
}

// Forgotten are the sessions that removed blocks remove from the state without destroying them.
func Forgotten(intent *config.Intent, prior resource.Prior) map[resource.Address]bool {
	forgotten := map[resource.Address]bool{}
	for _, s := range prior.Sessions {
		for _, removal := range intent.Removals {
			if !removal.Destroy && removal.From.Covers(s.Address) {
				forgotten[s.Address] = true
			}
		}
	}
	return forgotten
}
