package project

import (
	"errors"
	"fmt"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Readdress writes the new addresses of sessions into their folders, where state rebuild
// reads them.
func (p *Project) Readdress(prior resource.Prior, moves []resource.Renamed) error {
	var problems []error
	for _, m := range moves {
		s, there := prior.Session(m.To)
		c, err := p.Host(s.Slice.Host)
		if !there || err != nil {
			continue // it has been removed, or its host cannot be reached
		}
		h, err := p.Machine.Open(c)
		if d, registered := runtime.Named(s.Runtime); err == nil && registered {
			err = d.Readdress(h.For(prior.Owner()), s.ID, m.To)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("write the new address of %s into its folder: %w", m.To, err))
		}
	}
	return errors.Join(problems...)
}

// moves are the new addresses that the operations of steps, or of a journal, give to
// sessions.
func moves[T any](all []T, opOf func(T) *plan.OpJSON) (moves []resource.Renamed) {
	for _, one := range all {
		done := opOf(one)
		if done == nil {
			continue
		}
		if op, is := done.Op.(plan.MoveSessions); is {
			moves = append(moves, op.Moves...)
		}
	}
	return moves
}
