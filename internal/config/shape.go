package config

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// attribute is one assignment in a valid place. Its path names it within its top-level block: "target",
// "fit.tolerance".
type attribute struct {
	path   string
	schema *Attribute
	nth    int // the number of the repeatable block that contains it, from 1; otherwise 0
	expr   hcl.Expression
	whole  hcl.Range // from the name to the end of the value

	mentions []hcl.Traversal  // set once the attribute has been checked
	elements []hcl.Expression // likewise, those that refer to something if it is a list of references

	iterator string               // within a dynamic block: the name of its element
	bound    map[string]cty.Value // the element, by its name
}

// kind is the kind of the nested block that contains the attribute; "" if none does.
func (a attribute) kind() string {
	kind, _, nested := strings.Cut(a.path, ".")
	if !nested {
		return ""
	}
	return kind
}

// key identifies an attribute in its top-level block.
func (a attribute) key() string {
	if a.nth == 0 {
		return a.path
	}
	block, name, _ := strings.Cut(a.path, ".")
	return fmt.Sprintf("%s[%d].%s", block, a.nth-1, name)
}

// content is the content of a top-level block.
type content struct {
	attributes []attribute // including those of nested blocks, in the order of the file
	blocks     hcl.Blocks  // nested blocks, in the order of the file
	dynamics   []*dynamic  // what stands for further ones
	meant      []string    // paths that misspelled attributes were meant to be, which has been reported
}

// find returns an attribute by its path; nil if the block does not have it.
func (c content) find(path string) *attribute {
	return first(c.attributes, func(a *attribute) bool { return a.path == path })
}

// lacks reports whether the block leaves an attribute out. A misspelled attribute does not count as left out, because
// the misspelling has been reported.
func (c content) lacks(path string) bool {
	return c.find(path) == nil && !slices.Contains(c.meant, path)
}

func (c content) ranges(header hcl.Range) Ranges {
	r := Ranges{Decl: header, values: make([]valueRange, 0, len(c.attributes)+len(c.blocks))}
	for _, a := range c.attributes {
		r.values = append(r.values, valueRange{a.key(), a.expr.Range()})
	}
	for _, inner := range c.blocks {
		r.values = append(r.values, valueRange{inner.Type, inner.TypeRange}) // of several, the first counts
	}
	return r
}

// read returns the content of a block, and reports what is not valid there and what is missing.
func (r *reporter) read(b *hcl.Block, schema *Block) content {
	c := r.readInto(b, schema, "")
	slices.SortFunc(c.attributes, func(a, b attribute) int { return a.whole.Start.Byte - b.whole.Start.Byte })
	return c
}

func (r *reporter) readInto(b *hcl.Block, schema *Block, prefix string) content {
	assigned, blocks := b.Body.(body).read(r, schema)
	c := content{attributes: make([]attribute, 0, len(assigned)), blocks: blocks}
	for _, a := range assigned {
		known := schema.attribute(a.Name)
		if known == nil && schema.Free == "" {
			r.unexpected("attribute", a.Name, schema, a.NameRange)
			c.meant = append(c.meant, prefix+nearest(a.Name, schema.attributeNames()))
			continue
		}
		c.attributes = append(c.attributes, attribute{path: prefix + a.Name, schema: known, expr: a.Expr, whole: a.Range})
	}
	nth := map[string]int{}
	for i, inner := range blocks {
		if inner.Type == dynamicWord && len(schema.dynamicNames()) > 0 {
			if d := r.readDynamic(inner, schema); d != nil {
				c.dynamics = append(c.dynamics, d)
			}
			continue
		}
		known := schema.block(inner.Type)
		first := slices.IndexFunc(blocks[:i], func(o *hcl.Block) bool { return o.Type == inner.Type })
		switch {
		case known == nil:
			r.unexpected("block", inner.Type, schema, inner.TypeRange)
			c.meant = append(c.meant, prefix+nearest(inner.Type, schema.attributeNames()))
		case first >= 0 && !known.Repeatable:
			r.complain(inner.TypeRange, fmt.Sprintf("second %s block", inner.Type),
				"%s has one %s block; the first is at line %d. Put everything into one.", prose.Capital(schema.what), inner.Type, blocks[first].DefRange.Start.Line)
		case len(inner.Labels) > 0:
			r.unnamed(inner)
		default:
			inside := r.readInto(inner, known, prefix+inner.Type+".")
			if known.Repeatable {
				nth[inner.Type]++
				for i := range inside.attributes {
					inside.attributes[i].nth = nth[inner.Type]
				}
			}
			c.attributes = append(c.attributes, inside.attributes...)
			c.meant = append(c.meant, inside.meant...)
			r.checkWhole(inner, known, prefix+inner.Type+".", inside)
		}
	}
	c.blocks = slices.DeleteFunc(c.blocks, func(b *hcl.Block) bool { return b.Type == dynamicWord })
	return c
}

// checkWhole reports required attributes that a nested block leaves out.
func (r *reporter) checkWhole(b *hcl.Block, schema *Block, prefix string, c content) {
	required := schema.required()
	names := prose.Each(required, func(a Attribute) string { return a.Name })
	for _, a := range required {
		if c.lacks(prefix + a.Name) {
			r.complain(b.TypeRange, fmt.Sprintf("%q of the %s is missing", a.Name, b.Type),
				"%s needs %s. Add a line like: %s = %s", prose.Capital(schema.what), prose.And(names), a.Name, a.Example)
		}
	}
}

// unexpected reports an attribute or block that is not part of the schema.
func (r *reporter) unexpected(kind, name string, schema *Block, at hcl.Range) {
	summary, detail := schema.misplaced(kind, name)
	if summary == "" {
		summary, detail = fmt.Sprintf("unknown %s %q", kind, name), schema.describe()+schema.closest(kind, name)
	}
	r.complain(at, summary, "%s", detail)
}

// misplaced describes a word that means something, but not as an attribute or block of this one; "" for another word.
func (b *Block) misplaced(kind, name string) (summary, detail string) {
	inner, isAttribute := b.block(name), kind == "attribute"
	outside := isAttribute && len(b.Attributes) == 0 && inner == nil // in JSON a block looks like an attribute
	instead := advice["terraform"][name]
	if instead == "" && b.Name == sessionSchema.Name {
		instead = advice["compose"][name]
	}
	switch homes := b.homes(name); {
	case instead != "":
		return fmt.Sprintf("unknown %s %q", kind, name), instead
	case isAttribute && homes != nil:
		whose := "its"
		if b.Name == "" {
			whose = "any"
		}
		return fmt.Sprintf("%q is outside of %s block", name, whose), fmt.Sprintf("Put it into the block that it is meant for: %s.", prose.Or(homes))
	case outside && nearest(name, b.blockNames()) != "":
		return fmt.Sprintf("unknown block %q", name), b.describe() + didYouMean(name, b.blockNames())
	case outside:
		return fmt.Sprintf("%q is outside of any block", name), b.describe() + " Put it into the one that it is meant for."
	case slices.Contains(b.later, name):
		return fmt.Sprintf("%q is not yet part of cosplay", name), "A later version will have it. Leave it out for now."
	case isAttribute && inner != nil:
		return fmt.Sprintf("%q is a block", name), "Write it without the equals sign:\n" + inner.sample()
	case !isAttribute && b.attribute(name) != nil:
		return fmt.Sprintf("%q is an attribute", name), fmt.Sprintf("Write it with an equals sign: %s = %s", name, b.attribute(name).Example)
	}
	return "", ""
}

// closest suggests what to write instead of an unknown word. It starts with a space.
func (b *Block) closest(kind, name string) string {
	homes := fileSchema.homes(name)
	if len(homes) == 0 && !slices.Contains(b.inner(), name) && advice["compose"][name] == "" { // a word that exists is no misspelling
		if next := didYouMean(name, slices.Concat(b.attributeNames(), b.blockNames(), b.later)); next != "" {
			return next
		}
	}
	if inside := nearest(name, b.inner()); inside != "" {
		return fmt.Sprintf("%s Put it into the block %s.", meant(inside), prose.Or(b.homes(inside)))
	}
	if compose := nearest(name, sortedKeys(advice["compose"])); compose != "" && b.Name == sessionSchema.Name {
		return " " + advice["compose"][compose]
	}
	if kind == "attribute" && len(homes) > 0 {
		return fmt.Sprintf(" Put it where it belongs: %s blocks.", prose.Or(homes))
	}
	return " Remove it, or write one of these."
}

// homes returns the nested blocks that have an attribute.
func (b *Block) homes(name string) []string {
	with := prose.Only(b.Blocks, func(inner Block) bool { return inner.attribute(name) != nil })
	return prose.Each(with, func(inner Block) string { return inner.Name })
}

func (b *Block) inner() []string {
	var all []string
	for i := range b.Blocks {
		all = append(all, b.Blocks[i].attributeNames()...)
	}
	return all
}

// sample returns a block that a user can copy: with the attributes that it needs or, without any, the first one.
func (b *Block) sample() string {
	lines := []string{b.Name + " {"}
	if b.Label != "" {
		lines[0] = fmt.Sprintf("%s %q {", b.Name, b.Label)
	}
	shown := b.required()
	if len(shown) == 0 {
		shown = b.Attributes[:min(1, len(b.Attributes))]
	}
	for _, a := range shown {
		lines = append(lines, fmt.Sprintf("  %s = %s", a.Name, a.Example))
	}
	return "    " + strings.Join(append(lines, "}"), "\n    ")
}

// describe lists what a block can contain.
func (b *Block) describe() string {
	var has []string
	if len(b.Attributes) > 0 {
		has = append(has, "the attributes "+prose.And(b.attributeNames()))
	}
	switch names := b.blockNames(); len(names) {
	case 0:
	case 1:
		has = append(has, "the block "+names[0])
	default:
		has = append(has, "the blocks "+prose.And(names))
	}
	return prose.Capital(b.what) + " has " + strings.Join(has, ", and ") + "."
}
