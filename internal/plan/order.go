package plan

import (
	"cmp"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// ranks count, for each block, how many others in a row must exist before it. A block that depends on itself, which
// no configuration may do, counts as depending on nothing.
func ranks(needs map[string][]string) map[string]int {
	rank := map[string]int{}
	var of func(name string) int
	of = func(name string) int {
		if r, known := rank[name]; known {
			return r
		}
		rank[name] = 0
		highest := 0
		for _, need := range needs[name] {
			highest = max(highest, of(need)+1)
		}
		rank[name] = highest
		return highest
	}
	for name := range needs {
		of(name)
	}
	return rank
}

// comingUp orders changes so that each session follows those that it depends on.
func comingUp(changes []diff.SessionChange) []diff.SessionChange {
	return ordered(changes, 1, func(c diff.SessionChange) *resource.Session { return c.After })
}

// goingDown orders changes so that each session follows those that depend on it.
func goingDown(changes []diff.SessionChange) []diff.SessionChange {
	return ordered(changes, -1, func(c diff.SessionChange) *resource.Session {
		if c.Before == nil {
			return nil
		}
		return &c.Before.Session
	})
}

// ordered sorts changes by the rank of their blocks in a direction, 1 or -1.
func ordered(changes []diff.SessionChange, direction int, of func(diff.SessionChange) *resource.Session) []diff.SessionChange {
	needs := map[string][]string{} // the same for all sessions of a block, except while it changes
	for _, c := range changes {
		if s := of(c); s != nil {
			needs[c.Address.Name] = s.DependsOn
		}
	}
	rank := ranks(needs)
	compare := func(a, b diff.SessionChange) int {
		return direction * cmp.Compare(rank[a.Address.Name], rank[b.Address.Name])
	}
	if slices.IsSortedFunc(changes, compare) { // as without any dependency
		return changes
	}
	return slices.SortedStableFunc(slices.Values(changes), compare)
}
