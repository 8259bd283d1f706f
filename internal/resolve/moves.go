package resolve

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// Moved gives the sessions of the state the addresses that moved blocks say,
// and those that follow from giving a block count or taking it away. moved tells
// for each new address which one it was. A move to an address that is taken is
// warned of, and not made.
func Moved(intent *config.Intent, prior resource.Prior) (next resource.Prior, moved map[resource.Address]resource.Address, diags hcl.Diagnostics) {
	m := mover{intent: intent, prior: prior, to: map[resource.Address]resource.Address{}, by: map[resource.Address]config.Move{}, hops: map[resource.Address]int{}, wanted: map[resource.Address]bool{}}
	for _, s := range intent.Sessions {
		m.wanted[s.Address] = true
	}
	astir := false
	for _, s := range prior.Sessions {
		m.to[s.Address] = m.destination(s.Address)
		astir = astir || m.to[s.Address] != s.Address
	}
	if !astir {
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
	hops   map[resource.Address]int              // how many blocks did
	diags  hcl.Diagnostics
}

// destination follows the moves, which have no cycle, to their end.
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

// implied takes a lone session for the first of several, and the first for the
// lone one, where the block has got count or lost it.
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

// settle takes back one move to an address that another session has or gets, by
// fewer moves; it fails when there is none.
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
		Detail: fmt.Sprintf("That address is taken by what is %s in the state, so this one keeps its own. Move or remove that one first.", other)}
	if move, ok := m.by[from]; ok {
		d.Subject = &move.Range
	}
	m.diags = append(m.diags, d)
}

// Forgotten are the sessions of the state that removed blocks take out of it
// without destroying them.
func Forgotten(intent *config.Intent, prior resource.Prior) map[resource.Address]bool {
	gone := map[resource.Address]bool{}
	for _, s := range prior.Sessions {
		for _, removal := range intent.Removals {
			if !removal.Destroy && removal.From.Covers(s.Address) {
				gone[s.Address] = true
			}
		}
	}
	return gone
}
