package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
)

// dependence is one reference in depends_on, which is checked once all sessions are known.
type dependence struct {
	of, on    string // names of session blocks
	at, whole hcl.Range
}

func (l *loader) dependsOn(s *Session, a attribute, scope *hcl.EvalContext) {
	elements, diags := hcl.ExprList(a.expr)
	if diags.HasErrors() {
		l.complain(a.expr.Range(), a.whole, `"depends_on" must be a list`, "Write the session blocks that have to be there first, without quotes, like [session.server].")
		return
	}
	s.DependsOn = nil
	for _, e := range elements {
		ref, attribute, ok := l.reference(a, e, scope)
		switch {
		case !ok:
		case attribute != "" || !ref.Block:
			l.complain(e.Range(), a.whole, "a session depends on whole blocks", "All sessions of the block are brought up first. Write: session.%s", ref.Address.Name)
		case !slices.Contains(s.DependsOn, ref.Address.Name):
			s.DependsOn = append(s.DependsOn, ref.Address.Name)
			l.depends = append(l.depends, dependence{s.Address.Name, ref.Address.Name, e.Range(), a.whole})
		}
	}
	slices.Sort(s.DependsOn)
}

// checkDepends reports references to blocks that do not exist, and blocks that depend on themselves.
func (l *loader) checkDepends() {
	on := map[string][]dependence{}
	for _, d := range l.depends {
		if _, declared := l.reaches[d.on]; !declared {
			l.complain(d.at, d.whole, fmt.Sprintf("there is no session %q", d.on), "Name one of the session blocks of this configuration.%s", l.suggest(d.on, l.sessionNames))
			continue
		}
		on[d.of] = append(on[d.of], d)
	}
	done := map[string]bool{}
	for _, name := range sortedKeys(on) {
		l.follow(name, on, nil, done)
	}
}

// follow visits everything that a block depends on, and draws the path if it returns to a block.
func (l *loader) follow(name string, on map[string][]dependence, way []dependence, done map[string]bool) {
	if done[name] {
		return
	}
	for _, d := range on[name] {
		way := append(slices.Clip(way), d)
		if first := slices.IndexFunc(way, func(o dependence) bool { return o.of == d.on }); first >= 0 {
			l.complain(d.at, d.whole, fmt.Sprintf("session.%s waits for itself", d.on), "%s: each waits for the next. Remove one of these from its depends_on.", drawn(way[first:]))
			continue
		}
		l.follow(d.on, on, way, done)
	}
	done[name] = true
}

func drawn(ring []dependence) string {
	return ringOf(append([]string{"session." + ring[0].of}, prose.Each(ring, func(d dependence) string { return "session." + d.on })...))
}
