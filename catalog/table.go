package catalog

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// table is the catalog's blocks of one type. Parsing all of them takes too long for a small command, so load only
// splits the text at the blocks' first lines, and a block is parsed when its values are needed.
type table[T any] struct {
	kind    string // "target" or "host", the type of block
	entries []*entry[T]
	forms   map[string]*entry[T] // by normalized key, alias and name
}

// entry is one block.
type entry[T any] struct {
	key, name string
	aliases   []string
	value     func() T
}

// load splits the tables of all generations into blocks.
func load[T any](kind string, decode func(generation string, block *hclsyntax.Block) T) *table[T] {
	t := &table[T]{kind: kind, forms: map[string]*entry[T]{}}
	for _, generation := range generations {
		file := kind + "s-" + generation + ".hcl"
		text, err := files.ReadFile(file)
		if err != nil {
			continue // no such GPUs in this generation
		}
		opening := "\n" + kind + ` "`
		before, blocks, _ := strings.Cut(string(text), opening)
		line := strings.Count(before, "\n") + 2
		for block := range strings.SplitSeq(blocks, opening) {
			block = opening[1:] + block
			start := hcl.Pos{Line: line, Column: 1}
			line += strings.Count(block, "\n") + 1
			t.entries = append(t.entries, &entry[T]{
				key:     quoted(block)[0],
				name:    quoted(lineOf(block, "name"))[0],
				aliases: quoted(lineOf(block, "aliases")),
				value:   sync.OnceValue(func() T { return decode(generation, parse(file, block, start)) }),
			})
		}
	}
	t.index()
	return t
}

// lineOf returns an attribute's line from a block's text.
func lineOf(block, attribute string) string {
	_, rest, _ := strings.Cut(block, "\n  "+attribute+" ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// quoted returns the strings in a piece of text, without escapes.
func quoted(text string) []string {
	var found []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			found = append(found, part)
		}
	}
	return found
}

// parse reads one block. The files are part of the program, and its tests parse every block, so an error in them is a
// bug.
func parse(file, text string, start hcl.Pos) *hclsyntax.Block {
	f, diags := hclsyntax.ParseConfig([]byte(text), file, start)
	if diags.HasErrors() {
		panic(fmt.Errorf("catalog: %w", diags))
	}
	return f.Body.(*hclsyntax.Body).Blocks[0]
}

// index makes entries searchable. Keys and aliases take precedence over names, because NVML gives some cards the same
// name: both RTX 2060.
func (t *table[T]) index() {
	for _, e := range t.entries {
		t.forms[plain(e.key)] = e
		for _, alias := range e.aliases {
			t.forms[plain(alias)] = e
		}
	}
	for _, e := range t.entries {
		if form := plain(e.name); t.forms[form] == nil {
			t.forms[form] = e
		}
	}
}

func (t *table[T]) all() []T {
	all := make([]T, len(t.entries))
	for i, e := range t.entries {
		all[i] = e.value()
	}
	return all
}

// find returns the value for a name in any spelling, or an *UnknownError.
func (t *table[T]) find(typed string) (value T, err error) {
	if e, ok := t.forms[plain(typed)]; ok {
		return e.value(), nil
	}
	return value, t.unknown(typed)
}
