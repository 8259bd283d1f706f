package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
)

// dependence is one reference in depends_on, which is checked once all sessions are known.
type dependence struct {
	of, on string // names of session blocks
	at     hcl.Range
}

func (l *loader) dependsOn(s *Session, a attribute, scope *hcl.EvalContext) {
	if a.elements == nil {
		l.complain(a.expr.Range(), `"depends_on" must be a list`, "Write the session blocks that have to be there first, without quotes, like [session.server].")
		return
	}
	s.DependsOn = nil
	for _, e := range a.elements {
		ref, attribute, ok := l.reference(a, e, scope)
		switch {
		case !ok:
		case attribute != "" || !ref.Block:
			l.complain(e.Range(), "a session depends on whole blocks", "All sessions of the block are brought up first. Write: session.%s", ref.Address.Name)
		case !slices.Contains(s.DependsOn, ref.Address.Name):
			s.DependsOn = append(s.DependsOn, ref.Address.Name)
			l.depends = append(l.depends, dependence{s.Address.Name, ref.Address.Name, e.Range()})
		}
	}
	slices.Sort(s.DependsOn)
}

// checkDepends reports references to blocks that do not exist, and blocks that depend on themselves.
func (l *loader) checkDepends() {
	on := map[string][]dependence{}
	for _, d := range l.depends {
		if _, declared := l.blocks[d.on]; !declared {
			l.complain(d.at, fmt.Sprintf("there is no session %q", d.on), "Name one of the session blocks of this configuration.%s", l.suggest(d.on, l.sessionNames))
			continue
		}
		on[d.of] = append(on[d.of], d)
	}
	rings(sortedKeys(on), on, func(d dependence) string { return d.on }, func(ring []dependence) {
		last := ring[len(ring)-1]
		names := prose.Each(ring, func(d dependence) string { return "session." + d.of })
		l.complain(last.at, fmt.Sprintf("session.%s waits for itself", last.on), "%s: each waits for the next. Remove one of these from its depends_on.",
			ringOf(append(names, names[0])))
	})
}

// rings follows the edges from each of the nodes, and reports the path each time that it returns to a node on it.
func rings[K comparable, E any](nodes []K, edges map[K][]E, to func(E) K, report func([]E)) {
	done, place := map[K]bool{}, map[K]int{} // nodes that were followed, and those on the way, with their place on it
	var way []E
	var follow func(K)
	follow = func(at K) {
		place[at] = len(way)
		for _, e := range edges[at] {
			way = append(way, e)
			if first, is := place[to(e)]; is {
				report(way[first:])
			} else if !done[to(e)] {
				follow(to(e))
			}
			way = way[:len(way)-1]
		}
		delete(place, at)
		done[at] = true
	}
	for _, at := range nodes {
		if !done[at] {
			follow(at)
		}
	}
}
