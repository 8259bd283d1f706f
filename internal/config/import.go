package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
)

var importSchema = Block{
	Name: "import", Repeatable: true, what: "an import block",
	Description: "Imports an existing object into a session with the next apply, as cosplay import does. After that the block has no effect.",
	Attributes: []Attribute{
		{Name: "for_each", Type: MapOrSet, Default: "(one import)", Example: `{ a = "MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11" }`,
			Description: "Imports an object for each element, which to and id read as each.key and each.value."},
		{Name: "to", Type: SessionName, Required: true, Example: "session.x", Description: "The session that gets the object."},
		{Name: "id", Type: Text, Required: true, Example: `"MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11"`, Description: "The UUID of a MIG slice (MIG-UUID or MIG-GPU-UUID/GI/CI), the name or ID of a container, or the name of a session on its host."},
	},
}

func (l *loader) readImport(b *hcl.Block) {
	l.readPairs(b, &importSchema, "to", "id", "import does not say what becomes what", "to = session.x\n    id = \"MIG-...\"", l.addImport)
}

func (l *loader) addImport(to, id attribute, of instance, r reach) {
	one := Import{Range: to.expr.Range(), IDRange: id.expr.Range()}
	ref, ok := l.wholeReference(to, of, r)
	if _, checked := l.check(&id, r); checked {
		v, known := l.evaluate(id, of.scope(l.scopeOf(id.mentions)))
		if !known {
			return
		}
		one.ID, known = v.text()
		if known && strings.TrimSpace(one.ID) == "" {
			v.wrong(`"id" is empty`, "Write %s", lower(id.schema.Description))
		}
		ok = ok && (known || v.isOpen())
	}
	if ok {
		one.To = ref.Address
		l.imports = append(l.imports, one)
	}
}

// checkImports reports imports into sessions that do not exist, and duplicate imports.
func (l *loader) checkImports() {
	if len(l.imports) == 0 {
		return
	}
	there, seen := l.addresses(), map[string]Import{} // by session and by ID
	for _, one := range l.imports {
		twice, is := seen[one.To.String()]
		if !is && one.ID != "" {
			twice, is = seen["id "+one.ID]
		}
		switch {
		case !there[one.To] && !l.blocks[one.To.Name].guessed:
			names := func() []string { return prose.Each(l.sessions, func(s Session) string { return s.Address.String() }) }
			l.complain(one.Range, fmt.Sprintf("there is no %s", one.To), "Write its session block first, because what no block has would be removed again.%s", l.suggest(one.To.String(), names))
		case slices.ContainsFunc(l.sessions, func(s Session) bool { return s.Address == one.To && s.Hosts != nil }):
			l.complain(one.Range, fmt.Sprintf("%s has no host", one.To), "What is imported is on one host. Name it in the session's block, with host.")
		case is:
			l.complain(one.Range, "two imports of the same", "The other is at %s. A session has one slice and one container, and each of these one session. With for_each, both to and id need each.key or each.value.", place(twice.Range))
		}
		for _, what := range []string{one.To.String(), "id " + one.ID} {
			if _, known := seen[what]; !known {
				seen[what] = one
			}
		}
	}
}
