package plan

import (
	"cmp"
	"slices"

	"cosplay/internal/diff"
)

// ranks tell of each block, by what it depends on, how many others have to be there before it, one behind the other.
// What depends on itself, which no configuration may, is taken for depending on nothing.
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
	needs := map[string][]string{} // the same for all of a block, but while it is being changed
	for _, c := range changes {
		if c.After != nil {
			needs[c.Address.Name] = c.After.DependsOn
		}
	}
	rank := ranks(needs)
	return sortedBy(changes, func(c diff.SessionChange) int { return rank[c.Address.Name] })
}

// goingDown orders changes so that each session follows those that depend on it.
func goingDown(changes []diff.SessionChange) []diff.SessionChange {
	needs := map[string][]string{}
	for _, c := range changes {
		if c.Before != nil {
			needs[c.Before.Address.Name] = c.Before.DependsOn
		}
	}
	rank := ranks(needs)
	return sortedBy(changes, func(c diff.SessionChange) int { return -rank[c.Address.Name] })
}

func sortedBy(changes []diff.SessionChange, key func(diff.SessionChange) int) []diff.SessionChange {
	compare := func(a, b diff.SessionChange) int { return cmp.Compare(key(a), key(b)) }
	if slices.IsSortedFunc(changes, compare) { // as where nothing depends on anything
		return changes
	}
	return slices.SortedStableFunc(slices.Values(changes), compare)
}
