package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

var movedSchema = Block{
	Name: "moved", Repeatable: true, what: "a moved block",
	Description: "Gives sessions a new address. They keep their slices and containers. A block's name without a key means all its instances.",
	Attributes: []Attribute{
		{Name: "for_each", Type: MapOrSet, Default: "(one move)", Example: `{ old = "new" }`,
			Description: "Moves a session for each element, which from and to read as each.key and each.value."},
		{Name: "from", Type: SessionName, Required: true, Example: "session.a", Description: "The previous address, which no block declares any more."},
		{Name: "to", Type: SessionName, Required: true, Example: "session.b", Description: "The new address."},
	},
}

var removedSchema = Block{
	Name: "removed", Repeatable: true, what: "a removed block",
	Description: "States what happens to sessions whose block was removed.",
	Attributes: []Attribute{
		{Name: "from", Type: SessionName, Required: true, Example: "session.old", Description: "The previous address, which no block declares any more."},
		{Name: "destroy", Type: Flag, Default: "true", Example: "false", Description: "false leaves the sessions unchanged and removes them from the state."},
	},
	Blocks: []Block{{
		Name: "lifecycle", what: "a lifecycle block of removed",
		Description: "The same in Terraform's syntax.",
		Attributes: []Attribute{
			{Name: "destroy", Type: Flag, Default: "true", Example: "false", Description: "The same as in the surrounding block, which is shorter."},
		},
	}},
}

func (l *loader) readMoved(b *hcl.Block) {
	l.readPairs(b, &movedSchema, "from", "to", "moved does not say from where to where", "from = session.a\n    to   = session.b",
		func(from, to attribute, _ content, of instance, r reach) { l.addMove(b, from, to, of, r) })
}

// readPairs reads a block without a name that needs two attributes. It adds them for each element of the block's for_each,
// and once for a block without it. A sample of the two is for the diagnostic about a block that lacks one.
func (l *loader) readPairs(b *hcl.Block, schema *Block, one, two, lacking, sample string, add func(one, two attribute, said content, of instance, r reach)) {
	l.unnamed(b)
	said := l.read(b, schema)
	first, second, each := said.find(one), said.find(two), said.find("for_each")
	if said.lacks(one) || said.lacks(two) {
		l.complain(b.TypeRange, lacking, "It needs both, each on a separate line, like:\n    %s", sample)
	}
	all := instances{list: []instance{{}}}
	switch {
	case first == nil || second == nil:
		return
	case each != nil:
		all = l.byEach("", each)
	}
	for _, of := range all.list {
		add(*first, *second, said, of, all.reach)
	}
}

func (l *loader) addMove(b *hcl.Block, from, to attribute, of instance, r reach) {
	move := Move{Range: from.expr.Range()}
	var fromOK, toOK bool
	move.From, fromOK = l.wholeReference(from, of, r)
	move.To, toOK = l.wholeReference(to, of, r)
	if !fromOK || !toOK {
		return
	}
	// If either side has a key, a name alone means a session without a key.
	move.From.Block = move.From.Block && move.To.Block
	move.To.Block = move.From.Block
	if move.From == move.To {
		l.complainIn(to.expr.Range(), b.DefRange, fmt.Sprintf("%s is moved to itself", move.From), "Both addresses are the same, so nothing moves. Write the new address behind to, or remove the block.")
		return
	}
	l.moves = append(l.moves, move)
}

func (r *reporter) unnamed(b *hcl.Block) {
	if len(b.Labels) > 0 {
		r.complain(b.LabelRanges[0], fmt.Sprintf("%s has no name", b.Type), "Remove what is between the word and the brace.")
	}
}

// wholeReference reads a reference to a session or a block, whose index may be of the element of a for_each.
func (l *loader) wholeReference(a attribute, of instance, r reach) (resource.Reference, bool) {
	r.refers = true
	if mentionsSession(a.expr.Variables()) {
		if _, ok := l.check(&a, r); !ok {
			return resource.Reference{}, false
		}
	}
	ref, attribute, ok := l.reference(a, a.expr, of.scope(l.scopeOf(a.mentions)))
	if ok && attribute != "" {
		l.complain(a.expr.Range(), fmt.Sprintf("%s.%s is no session", ref, attribute), "Whole sessions are meant here, not one of their attributes. Write: %s", ref)
		return ref, false
	}
	return ref, ok
}

func (l *loader) readRemoved(b *hcl.Block) {
	l.unnamed(b)
	said := l.read(b, &removedSchema)
	removal := Removal{Destroy: true}
	for _, path := range []string{"destroy", "lifecycle.destroy"} {
		if a := said.find(path); a != nil {
			if v, ok := l.work(a); ok {
				removal.Destroy, _ = v.flag()
			}
		}
	}
	if one, two := said.find("destroy"), said.find("lifecycle.destroy"); one != nil && two != nil {
		l.complain(two.expr.Range(), `"destroy" is there twice`, "It is set at line %d as well. Keep one of the two.", one.whole.Start.Line)
	}
	from := said.find("from")
	if said.lacks("from") {
		l.complain(b.TypeRange, "removed does not say what", "Name the session whose block was removed, like: from = session.old")
	}
	if from == nil {
		return
	}
	removal.Range = from.expr.Range()
	var ok bool
	if removal.From, ok = l.wholeReference(*from, instance{}, nowhere); ok {
		l.removals = append(l.removals, removal)
	}
}

// checkMoved reports moved and removed blocks that contradict the declared sessions or each other.
func (l *loader) checkMoved() {
	for _, m := range l.moves {
		if l.isDeclared(m.From) {
			l.complain(m.Range, fmt.Sprintf("%s is still declared", m.From),
				"The move would leave it without a session. Rename its block to %s, or remove the moved block.", m.To)
		}
	}
	for i, m := range l.moves {
		j := slices.IndexFunc(l.moves[:i], func(o Move) bool { return o.From == m.From || o.To == m.To })
		if j < 0 {
			continue
		}
		same, word := m.From, "from"
		if m.From != l.moves[j].From {
			same, word = m.To, "to"
		}
		l.complain(m.Range, fmt.Sprintf("two moves %s %s", word, same), "The other is at %s. Keep the one that is right.", place(l.moves[j].Range))
	}
	l.checkCircles(l.moves)
	for i, r := range l.removals {
		twice := slices.IndexFunc(l.removals[:i], func(o Removal) bool { return o.From.Covers(r.From.Address) || r.From.Covers(o.From.Address) })
		moved := slices.IndexFunc(l.moves, func(m Move) bool { return m.From == r.From })
		switch {
		case l.isDeclared(r.From):
			l.complain(r.Range, fmt.Sprintf("%s is still declared", r.From), "Remove its session block, or this removed block.")
		case twice >= 0:
			other := l.removals[twice]
			l.complain(r.Range, fmt.Sprintf("%s is removed twice", r.From), "The other removed block, of %s, is at %s. Keep the one that is right.", other.From, place(other.Range))
		case moved >= 0:
			other := l.moves[moved]
			l.complain(r.Range, fmt.Sprintf("%s is both moved and removed", r.From), "It is moved to %s at %s. Keep the one that is right.", other.To, place(other.Range))
		}
	}
}

// isDeclared reports whether the files declare a block or, with a key, an instance.
func (l *loader) isDeclared(r resource.Reference) bool {
	if r.Block {
		_, declared := l.declared[fmt.Sprintf("session %q", r.Address.Name)]
		return declared
	}
	return !l.blocks[r.Address.Name].guessed && slices.ContainsFunc(l.sessions, func(s Session) bool { return s.Address == r.Address })
}

// checkCircles reports moves that form a cycle, once for each cycle.
func (r *reporter) checkCircles(moves []Move) {
	from := map[resource.Reference][]Move{} // the first move from each address
	for _, m := range slices.Backward(moves) {
		from[m.From] = []Move{m}
	}
	rings(prose.Each(moves, func(m Move) resource.Reference { return m.From }), from, func(m Move) resource.Reference { return m.To }, func(ring []Move) {
		at := ring[0]
		names := prose.Each(ring, func(m Move) string { return m.From.String() })
		r.complain(at.Range, "the moves go in a circle", "%s. Remove the one that is not true any more.", ringOf(append(names, at.From.String())))
	})
}
