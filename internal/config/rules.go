package config

import (
	"cmp"
	"fmt"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
)

// rule is a validation or assert block, or the attributes of a check block.
type rule struct {
	header             hcl.Range
	condition, message *attribute // nil if the block lacks it
}

// rulesOf returns the blocks of a kind that have a condition and a message.
func rulesOf(said content, kind string) []rule {
	var all []rule
	for _, b := range said.blocks {
		if b.Type == kind {
			all = append(all, rule{header: b.TypeRange})
		}
	}
	for i := range said.attributes {
		switch a := &said.attributes[i]; a.path {
		case kind + ".condition":
			all[a.nth-1].condition = a
		case kind + ".error_message":
			all[a.nth-1].message = a
		}
	}
	return all
}

// isWhole reports whether a rule is complete; if not, that has been reported.
func (r rule) isWhole() bool { return r.condition != nil && r.message != nil }

// validate checks the values of variables against the rules of their blocks.
func (l *loader) validate() {
	for _, name := range sortedKeys(l.variables) {
		v := l.variables[name]
		n := l.nodes["var."+name]
		good := n.ok
		for _, r := range v.rules {
			if n.ok && r.isWhole() {
				good = l.obeys(v, r) && good
				continue
			}
			for _, part := range []*attribute{r.condition, r.message} { // the rest has been reported
				if part != nil {
					_, _ = l.check(part, nowhere)
				}
			}
		}
		n.ok = good // Only now: the result of one rule must not prevent the evaluation of the next.
	}
}

// broken returns the message of a rule whose condition is false, and "" for one that holds or is not known yet. ok is
// false if a part of it cannot be evaluated, which has been reported.
func (l *loader) broken(r rule, evaluate func(*attribute) (value, bool)) (message string, ok bool) {
	c, ok := evaluate(r.condition)
	open := ok && c.isOpen()
	if !ok || !open && !c.IsKnown() {
		return "", ok
	}
	if !open {
		c.Value, _ = c.Unmark() // The result of a rule is not secret even if its values are.
	}
	if good, ok := c.flag(); good || !ok {
		return "", good || open
	}
	switch m, evaluated := evaluate(r.message); {
	case !evaluated:
		ok = false
	case m.IsMarked():
		message = "Details are not shown, because the text has a sensitive value."
	case m.IsKnown():
		message, ok = m.text()
	}
	return ruleSentence(message), ok
}

// obeys checks a variable's value against one rule.
func (l *loader) obeys(v *variable, r rule) bool {
	message, ok := l.broken(r, l.work)
	if message == "" || !ok {
		return ok
	}
	at, from := v.header, "its default"
	if len(v.given) > 0 {
		last := v.given[len(v.given)-1]
		l.show(v, last)
		at, from = v.subject(last.at), last.From
	}
	l.complain(at, fmt.Sprintf("variable %q cannot have this value", v.Name),
		"%s\nGive it another value than that of %s; the rule is at %s.", message, from, place(r.header))
	return false
}

// ruleSentence ends a message with a full stop, and leaves its first letter as it is: it may be the name of a thing.
func ruleSentence(message string) string {
	return cmp.Or(prose.Stop(message), "The rule says no more.")
}
