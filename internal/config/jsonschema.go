package config

import (
	"strings"

	"cosplay/internal/resource"
)

// JSONSchema returns a JSON schema, draft 2020-12, of a file in the JSON syntax. Fields that begin with x- have what
// editors can show: units, defaults and the effect of a change. Every value can also be an expression: a text with
// ${...}.
func JSONSchema() map[string]any {
	schema := bodySchema(&fileSchema)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "cosplay configuration"
	schema["$defs"] = map[string]any{"expression": map[string]any{
		"type": "string", "pattern": `[$%]\{`, "description": "A template with an expression: ${var.image}",
	}}
	return schema
}

func bodySchema(b *Block) map[string]any {
	properties := map[string]any{"//": map[string]any{"description": "A comment."}}
	for _, a := range b.Attributes {
		properties[a.Name] = attributeSchema(a)
	}
	for _, inner := range b.Blocks {
		properties[inner.Name] = blockSchema(&inner)
	}
	if names := b.dynamicNames(); len(names) > 0 {
		kinds := map[string]any{}
		for _, name := range names {
			kinds[name] = several(bodySchema(b.dynamics(name)))
		}
		properties[dynamicWord] = map[string]any{"type": "object", "properties": kinds, "additionalProperties": false,
			"description": "Blocks of a kind, one for each element of for_each."}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": b.Free != ""}
	if b.Description != "" {
		schema["description"] = b.Description
	}
	var required []string
	for _, a := range b.required() {
		if a.Instead == "" {
			required = append(required, a.Name)
			continue
		}
		schema["oneOf"] = []any{map[string]any{"required": []any{a.Name}}, map[string]any{"required": []any{a.Instead}}}
	}
	if required != nil {
		schema["required"] = required
	}
	without := map[string][]any{} // the attributes that are required without another one
	for _, a := range b.Attributes {
		if a.Unless != "" {
			without[a.Unless] = append(without[a.Unless], a.Name)
		}
	}
	for unless, names := range without {
		schema["anyOf"] = []any{map[string]any{"required": []any{unless}}, map[string]any{"required": names}}
	}
	return schema
}

// blockSchema returns the schema of one block or of a list of blocks, with a level of names if the blocks have names.
func blockSchema(b *Block) map[string]any {
	body := bodySchema(b)
	if b.Label != "" {
		body = map[string]any{"type": "object", "description": b.Description, "additionalProperties": several(body)}
	}
	return several(body) // HCL accepts a list of one element also for a block that cannot repeat
}

func several(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "array", "items": schema}}}
}

var (
	aText   = map[string]any{"type": "string"}
	anEntry = map[string]any{"type": []any{"string", "number", "boolean"}}
	aList   = map[string]any{"type": "array", "items": anEntry}
)

var valueSchemas = map[Type]map[string]any{
	Text: aText, Path: aText, TypeName: aText, SessionName: aText, Size: aText,
	Texts: aList, GPUNames: aList, Sessions: aList,
	References: {"type": "array"},
	Program:    {"anyOf": []any{aList, map[string]any{"const": resource.ImageEntrypoint}}},
	Attributes: {"anyOf": []any{aList, map[string]any{"const": IgnoreAll}}},
	TextMap:    {"type": "object", "additionalProperties": anEntry},
	MapOrSet:   {"type": []any{"object", "array"}},
	Number:     {"type": "number"},
	Whole:      {"type": "integer"},
	Flag:       {"type": "boolean"},
	Duration:   {"type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"},
	Time:       {"type": "string", "format": "date-time"},
	Percentage: {"anyOf": []any{map[string]any{"type": "string", "pattern": `^[0-9.]+ *%$`}, map[string]any{"type": "number", "minimum": 0, "maximum": 1}}},
	GPUName:    {"type": []any{"integer", "string"}},
	Port:       {"anyOf": []any{map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}, map[string]any{"const": "auto"}}},
	Anything:   {},
}

func attributeSchema(a Attribute) map[string]any {
	value := valueSchemas[a.Type]
	if a.Words != nil {
		value = map[string]any{"enum": a.words()}
		if a.Type == Texts {
			value = map[string]any{"type": "array", "items": value}
		}
	}
	schema := map[string]any{
		"description": a.Description,
		"anyOf":       []any{value, map[string]any{"$ref": "#/$defs/expression"}},
		"x-type":      string(a.Type),
		"x-example":   a.Example,
	}
	for name, text := range map[string]string{"x-unit": a.Unit, "x-default": strings.Trim(a.Default, "()"), "x-change": string(a.Change)} {
		if text != "" {
			schema[name] = text
		}
	}
	return schema
}
