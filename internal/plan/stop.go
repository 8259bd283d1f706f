package plan

import (
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Stopping is the plan that stops sessions: each after those that depend on it.
func Stopping(sessions []resource.PriorSession) *Plan {
	waits := func(s, other *resource.PriorSession) bool { return slices.Contains(other.DependsOn, s.Address.Name) }
	return inOrder(sessions, goingDown, waits, func(s *resource.PriorSession) Op {
		return StopSession{Address: s.Address, Host: s.Slice.Host, Runtime: s.Runtime, ID: s.ID}
	})
}

// Starting is the plan that starts sessions: each after those that it depends on.
func Starting(sessions []resource.PriorSession) *Plan {
	waits := func(s, other *resource.PriorSession) bool { return slices.Contains(s.DependsOn, other.Address.Name) }
	return inOrder(sessions, comingUp, waits, func(s *resource.PriorSession) Op {
		return StartSession{Address: s.Address, Host: s.Slice.Host, Runtime: s.Runtime}
	})
}

// inOrder is a plan with a step for each session. A session waits for those before it that waits names.
func inOrder(sessions []resource.PriorSession, order func([]diff.SessionChange) []diff.SessionChange,
	waits func(s, other *resource.PriorSession) bool, do func(*resource.PriorSession) Op) *Plan {
	p, changes := &Plan{}, make([]diff.SessionChange, len(sessions))
	for i := range sessions {
		changes[i] = diff.SessionChange{Address: sessions[i].Address, Before: &sessions[i], After: &sessions[i].Session}
	}
	changes = order(changes)
	for i, c := range changes {
		op, group := OpJSON{do(c.Before)}, c.Address.String()
		step := Step{ID: group + "/" + op.Kind(), Group: group, Do: op}
		for n, other := range changes[:i] {
			if waits(c.Before, other.Before) {
				step.Needs = append(step.Needs, p.Steps[n].ID)
			}
		}
		p.Steps = append(p.Steps, step)
	}
	return p
}
