package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

var importSchema = Block{
	Name: "import", Repeatable: true, what: "an import block",
	Description: "Imports an existing object into a session with the next apply, as cosplay import does. After that the block has no effect.",
	Attributes: []Attribute{
		{Name: "for_each", Type: MapOrSet, Default: "(one import)", Example: `{ a = "MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11" }`,
			Description: "Imports an object for each element, which to and id read as each.key and each.value."},
		{Name: "to", Type: SessionName, Required: true, Example: "session.x", Description: "The session that gets the object."},
		{Name: "id", Type: Text, Required: true, Example: `"MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11"`, Description: "The UUID of a MIG slice (MIG-UUID or MIG-GPU-UUID/GI/CI), the name or ID of a container, or the name of a session on its host."},
		{Name: "baseline_mig", Type: Flag, Default: "(as it is)", Example: "false",
			Description: "Whether MIG mode was on before another tool created the object. destroy restores this and the two below, instead of what cosplay finds; on hardware only root may state them. Without host's baseline_clock there was no clock lock then."},
		{Name: "baseline_persistence", Type: Flag, Default: "(as it is)", Example: "false", Description: "Likewise, whether persistence mode was on."},
		{Name: "baseline_power", Type: Whole, Unit: "W", Default: "(as it is)", Example: "700", Description: "Likewise, the power limit."},
	},
}

func (l *loader) readImport(b *hcl.Block) {
	l.readPairs(b, &importSchema, "to", "id", "import does not say what becomes what", "to = session.x\n    id = \"MIG-...\"", l.addImport)
}

// importBaselines has a reader for each attribute of an import block that states a setting of the GPU.
var importBaselines = []struct {
	name    string
	setting resource.Setting
	read    func(value) (int, bool)
}{
	{"baseline_mig", resource.MIGMode, value.bit},
	{"baseline_persistence", resource.PersistenceMode, value.bit},
	{"baseline_power", resource.PowerLimit, func(v value) (int, bool) {
		watts, ok := wholeUpTo(10_000, "a power in W")(v)
		return watts * 1000, ok
	}},
}

// BaselineAttribute is the attribute of an import block that states a setting of the GPU.
func BaselineAttribute(setting resource.Setting) string {
	for _, one := range importBaselines {
		if one.setting == setting {
			return one.name
		}
	}
	return ""
}

// bit reads a flag as the value of a mode.
func (v value) bit() (int, bool) {
	on, ok := v.flag()
	return resource.Bit(on), ok
}

// baseline reads what an import block states of the GPU.
func (l *loader) baseline(said content, of instance, r reach) (all resource.Settings) {
	for _, one := range importBaselines {
		a := said.find(one.name)
		if a == nil {
			continue
		}
		if _, ok := l.check(a, r); !ok {
			continue
		}
		if v, known := l.evaluate(*a, of.scope(l.scopeOf(a.mentions))); known && !v.leftOut() {
			if value, ok := one.read(v); ok {
				all = all.With(one.setting, value)
			}
		}
	}
	return all
}

func (l *loader) addImport(to, id attribute, said content, of instance, r reach) {
	one := Import{Range: to.expr.Range(), IDRange: id.expr.Range(), Baseline: l.baseline(said, of, r)}
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
