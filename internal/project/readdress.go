package project

import (
	"errors"
	"fmt"

	"cosplay/internal/apply"
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

// moves are the new addresses that steps give to sessions.
func moves(steps []plan.Step) []resource.Renamed {
	var all []resource.Renamed
	for _, s := range steps {
		if op, is := s.Do.Op.(plan.MoveSessions); is {
			all = append(all, op.Moves...)
		}
	}
	return all
}

// moved are the new addresses that a journal has.
func moved(entries []apply.Entry) []resource.Renamed {
	var all []resource.Renamed
	for _, e := range entries {
		if e.Op == nil {
			continue
		}
		if op, is := e.Op.Op.(plan.MoveSessions); is {
			all = append(all, op.Moves...)
		}
	}
	return all
}
