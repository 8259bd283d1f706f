package config

import "strings"

// JSONSchema is a JSON schema, draft 2020-12, of a file in the JSON syntax. What
// editors show beside it, units, defaults and what a change leads to, stands in
// x- fields. Wherever a value goes an expression can: a text with ${...}.
func JSONSchema() map[string]any {
	schema := bodySchema(&fileSchema)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "cosplay configuration"
	schema["$defs"] = map[string]any{"expression": map[string]any{
		"type": "string", "pattern": `[$%]\{`, "description": "A template with an expression: ${var.image}",
	}}
	return schema
}

// bodySchema is that of what stands in a block.
func bodySchema(b *Block) map[string]any {
	properties := map[string]any{"//": map[string]any{"description": "A comment."}}
	var required []string
	for _, a := range b.Attributes {
		properties[a.Name] = attributeSchema(a)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	for _, inner := range b.Blocks {
		properties[inner.Name] = blockSchema(&inner)
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": b.Free != ""}
	if b.Description != "" {
		schema["description"] = b.Description
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// blockSchema is that of one block or, in a list, of several; names come between
// where blocks have them.
func blockSchema(b *Block) map[string]any {
	body := bodySchema(b)
	if b.Label != "" {
		body = map[string]any{"type": "object", "description": b.Description, "additionalProperties": several(body)}
	}
	return several(body) // HCL takes a list of one also where there can be no more
}

func several(schema map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "array", "items": schema}}}
}

var (
	aText   = map[string]any{"type": "string"}
	anEntry = map[string]any{"type": []any{"string", "number", "boolean"}}
	aList   = map[string]any{"type": "array", "items": anEntry}
)

// valueSchemas are what values of a type look like.
var valueSchemas = map[Type]map[string]any{
	Text: aText, Path: aText, TypeName: aText, SessionName: aText, Size: aText,
	Texts: aList, GPUNames: aList, Sessions: aList,
	References: {"type": "array"},
	Attributes: {"anyOf": []any{aList, map[string]any{"const": IgnoreAll}}},
	TextMap:    {"type": "object", "additionalProperties": anEntry},
	MapOrSet:   {"type": []any{"object", "array"}},
	Number:     {"type": "number"},
	Whole:      {"type": "integer"},
	Flag:       {"type": "boolean"},
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
