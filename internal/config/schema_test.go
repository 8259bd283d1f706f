package config

import (
	"maps"
	"slices"
	"testing"
)

// The tables must describe exactly the attributes that the package reads.
func TestSchemaAndReadersAgree(t *testing.T) {
	for kind, readers := range map[string][]string{
		"target":  append(slices.Collect(maps.Keys(figures)), "base", "name", "vram", "compute_capability"),
		"host":    slices.Collect(maps.Keys(hostAttributes)),
		"session": slices.Concat(slices.Collect(maps.Keys(sessionAttributes)), slices.Collect(maps.Keys(sessionReferences)), []string{"count", "for_each"}),
	} {
		var reported []string
		walkSchema(*fileSchema.block(kind), "", func(path string, _ Attribute) { reported = append(reported, path) })
		slices.Sort(reported)
		slices.Sort(readers)
		if !slices.Equal(reported, readers) {
			t.Errorf("%s: the schema has\n%v, read are\n%v", kind, reported, readers)
		}
	}
}

// Everything in the schema must have a description.
func TestSchemaIsComplete(t *testing.T) {
	for _, b := range Schema().Blocks {
		checkBlock(t, b)
		walkSchema(b, b.Name+".", func(path string, a Attribute) {
			switch {
			case a.Type == "" || a.Description == "" || a.Example == "":
				t.Errorf("%s lacks its type, description or example: %+v", path, a)
			case a.Required == (a.Default != ""):
				t.Errorf("%s is required: %v, and has the default %q", path, a.Required, a.Default)
			case (a.Type == Word) != (a.Words != nil) && a.Type != Texts:
				t.Errorf("%s is a %s with the words %v", path, a.Type, a.Words)
			}
		})
	}
}

func checkBlock(t *testing.T, b Block) {
	if b.Name == "" || b.Description == "" || b.what == "" {
		t.Errorf("block %q lacks its name, description or what it is called", b.Name)
	}
	for _, inner := range b.Blocks {
		checkBlock(t, inner)
	}
}

func walkSchema(b Block, prefix string, visit func(path string, a Attribute)) {
	for _, a := range b.Attributes {
		visit(prefix+a.Name, a)
	}
	for _, inner := range b.Blocks {
		walkSchema(inner, prefix+inner.Name+".", visit)
	}
}
