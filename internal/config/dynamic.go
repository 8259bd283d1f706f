package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/prose"
)

// dynamicWord is the kind of a block that stands for several others.
const dynamicWord = "dynamic"

const maxBlocks = 100 // that one dynamic block stands for

// dynamic is a dynamic block: it stands for a block of a kind for each element of its for_each.
type dynamic struct {
	block    *hcl.Block // of the kind, without its content
	schema   *Block
	each     attribute
	iterator string // name of the element in expressions
	content  []attribute
}

// dynamics returns the schema of a dynamic block, whose label is the kind; nil if none of this kind can be dynamic.
func (b *Block) dynamics(kind string) *Block {
	known := b.block(kind)
	if known == nil || !known.Dynamic {
		return nil
	}
	content := *known
	content.Name, content.what, content.Repeatable, content.Dynamic = "content", "the content of "+known.what, false, false
	content.Description = "The content of each block. Its expressions read the element as " + kind + ".key and " + kind + ".value."
	return &Block{Name: dynamicWord, Label: kind, Repeatable: true, what: "a dynamic block", Blocks: []Block{content},
		Description: "Stands for a block for each element of for_each.",
		Attributes: []Attribute{
			{Name: "for_each", Type: Anything, Required: true, Example: "var.data", Description: "A map, a set or a list: there is a block for each element."},
			{Name: "iterator", Type: TypeName, Default: "(the kind of the block)", Example: "each_" + kind, Description: "The name of the element in the expressions of content."},
		}}
}

func (b *Block) dynamicNames() []string {
	dynamic := prose.Only(b.Blocks, func(inner Block) bool { return inner.Dynamic })
	return prose.Each(dynamic, func(inner Block) string { return inner.Name })
}

// readDynamic reads a dynamic block; nil with a mistake that has been reported.
func (r *reporter) readDynamic(b *hcl.Block, outer *Block) *dynamic {
	names := outer.dynamicNames()
	if len(b.Labels) != 1 || outer.dynamics(b.Labels[0]) == nil {
		at, typed := b.TypeRange, ""
		if len(b.Labels) > 0 {
			at, typed = b.LabelRanges[0], didYouMean(b.Labels[0], names)
		}
		r.complain(at, "no kind of block that can be dynamic", "In %s these can: %s. Write one of them in quotes behind the word dynamic.%s", outer.what, prose.And(names), typed)
		return nil
	}
	kind := b.Labels[0]
	schema := outer.dynamics(kind)
	said := r.readInto(b, schema, "")
	r.checkWhole(b, schema, "", said)
	content := slices.IndexFunc(said.blocks, func(inner *hcl.Block) bool { return inner.Type == "content" })
	if content < 0 && !slices.Contains(said.meant, "content") {
		r.complain(b.TypeRange, "dynamic block without content", "The attributes of each %s are in a block with the name content. Add it.", kind)
	}
	each := said.find("for_each")
	if content < 0 || each == nil {
		return nil
	}
	d := &dynamic{schema: outer.block(kind), each: *each, iterator: kind,
		block: &hcl.Block{Type: kind, TypeRange: b.LabelRanges[0], DefRange: b.DefRange}}
	if a := said.find("iterator"); a != nil {
		d.iterator = hcl.ExprAsKeyword(a.expr)
		if _, taken := whereNamesBelong[d.iterator]; taken || d.iterator == "" || d.iterator == "session" {
			r.complain(a.expr.Range(), "this cannot be the name of the element", "Write a word without quotes that is no other name, like: iterator = %s", schema.attribute("iterator").Example)
			return nil
		}
	}
	for _, a := range said.attributes {
		if name, inside := strings.CutPrefix(a.path, "content."); inside {
			a.path, a.iterator = kind+"."+name, d.iterator
			d.content = append(d.content, a)
		}
	}
	return d
}

// differ reports whether the dynamic blocks of a block are others in each of its instances, and drops those whose
// for_each cannot be evaluated.
func (l *loader) differ(said *content, r reach) bool {
	differ := false
	said.dynamics = slices.DeleteFunc(said.dynamics, func(d *dynamic) bool {
		varies, ok := l.check(&d.each, r)
		differ = differ || ok && varies
		for _, a := range d.content { // there may be no element to evaluate it for
			l.check(&a, r)
		}
		return !ok
	})
	return differ
}

// expand returns the content with the blocks that its dynamic blocks stand for, in the order of the file. It returns the
// kinds of dynamic blocks whose number is unknown as well.
func (l *loader) expand(said content, of instance) (full content, open []string) {
	if len(said.dynamics) == 0 {
		return said, nil
	}
	full = content{meant: said.meant, blocks: slices.Clone(said.blocks)}
	all := slices.Clone(said.dynamics)
	slices.SortFunc(all, func(a, b *dynamic) int { return a.block.DefRange.Start.Byte - b.block.DefRange.Start.Byte })
	count := map[string]int{} // blocks so far, by kind
	last := attribute{}       // of the static blocks
	static := func(before int) {
		for len(said.attributes) > 0 && said.attributes[0].whole.Start.Byte < before {
			a := said.attributes[0]
			said.attributes = said.attributes[1:]
			if kind := a.kind(); a.nth > 0 {
				if last.kind() != kind || last.nth != a.nth {
					count[kind]++
				}
				last = a
				a.nth = count[kind]
			}
			full.attributes = append(full.attributes, a)
		}
	}
	for _, b := range said.blocks {
		if known := sessionSchema.block(b.Type); known != nil && !known.Repeatable {
			count[b.Type]++
		}
	}
	for _, d := range all {
		static(d.block.DefRange.Start.Byte)
		elements, known := l.elementsOf(d, of)
		if !known {
			open = append(open, d.block.Type)
		}
		if len(elements) > 0 {
			full.blocks = append(full.blocks, d.block)
		}
		for _, element := range elements {
			count[d.block.Type]++
			if n := count[d.block.Type]; n > 1 && !d.schema.Repeatable {
				l.complain(d.each.expr.Range(), fmt.Sprintf("second %s block", d.block.Type), "A session has one %s block, and this would make %s. Write a for_each with one element at most, and no other block of the kind.", d.block.Type, prose.Count(n, "block"))
				break
			}
			for _, a := range d.content {
				a.bound = map[string]cty.Value{d.iterator: element}
				if d.schema.Repeatable {
					a.nth = count[d.block.Type]
				}
				full.attributes = append(full.attributes, a)
			}
		}
	}
	static(math.MaxInt)
	return full, open
}

// elementsOf evaluates the for_each of a dynamic block: key and value of each element. Of an unknown one it reports false.
func (l *loader) elementsOf(d *dynamic, of instance) ([]cty.Value, bool) {
	v, ok := l.evaluate(d.each, of.scope(l.scopeOf(d.each.mentions)))
	switch {
	case !ok || v.isOpen():
		return nil, false
	case !v.given():
		return nil, true
	case !isList(v.Type()) && !isMap(v.Type()):
		v.wrong(`"for_each" must be a map, a set or a list`, "This is %s. Write one of these, like [\"/data\"]. For a block that may be left out: var.wanted ? [1] : []", v.kind())
		return nil, true
	case v.LengthInt() > maxBlocks:
		v.wrong(`"for_each" is too large`, "It has %d elements. Write at most %d.", v.LengthInt(), maxBlocks)
		return nil, true
	}
	var all []cty.Value
	for key, element := range v.Elements() {
		if v.Type().IsSetType() {
			key = element
		}
		all = append(all, cty.ObjectVal(map[string]cty.Value{"key": key, "value": element}))
	}
	return all, true
}
