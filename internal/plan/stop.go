package plan

import (
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Stopping is the plan that stops sessions: each after those that depend on it.
func Stopping(sessions []resource.PriorSession) *Plan {
	p := &Plan{}
	for _, c := range goingDown(asTheyAre(sessions)) {
		s := c.Before
		waits := func(other Step) bool {
			o := find(sessions, other.Group)
			return slices.Contains(o.DependsOn, s.Address.Name)
		}
		p.add(s, waits, StopSession{Address: s.Address, Host: s.Slice.Host, Runtime: s.Runtime, ID: s.ID})
	}
	return p
}

// Starting is the plan that starts sessions: each after those that it depends on.
func Starting(sessions []resource.PriorSession) *Plan {
	p := &Plan{}
	for _, c := range comingUp(asTheyAre(sessions)) {
		s := c.Before
		waits := func(other Step) bool {
			return slices.Contains(s.DependsOn, find(sessions, other.Group).Address.Name)
		}
		p.add(s, waits, StartSession{Address: s.Address, Host: s.Slice.Host, Runtime: s.Runtime})
	}
	return p
}

// add adds a step of a session that waits for some of the steps before it.
func (p *Plan) add(s *resource.PriorSession, waits func(Step) bool, do Op) {
	needs := ids(slices.DeleteFunc(slices.Clone(p.Steps), func(o Step) bool { return !waits(o) }))
	p.Steps = append(p.Steps, Step{ID: s.Address.String() + "/" + do.kind(), Group: s.Address.String(), Needs: needs, Do: OpJSON{do}})
}

func asTheyAre(sessions []resource.PriorSession) []diff.SessionChange {
	return prose.Each(sessions, func(s resource.PriorSession) diff.SessionChange {
		return diff.SessionChange{Address: s.Address, Before: &s, After: &s.Session}
	})
}

// find returns the session with an address; an empty one if there is none.
func find(sessions []resource.PriorSession, address string) resource.PriorSession {
	i := slices.IndexFunc(sessions, func(s resource.PriorSession) bool { return s.Address.String() == address })
	if i < 0 {
		return resource.PriorSession{}
	}
	return sessions[i]
}
