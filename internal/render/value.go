package render

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// maxInline is how many columns a list takes at most that stands on one line.
const maxInline = 80

// valueText is a known value as it would be written in a configuration, and as fmt lays it out: a list of plain
// values on one line where it is short, anything else with a line for each element.
func valueText(v cty.Value) string {
	const name = "v = "
	return strings.TrimPrefix(string(hclwrite.Format([]byte(name+written(v)))), name)
}

// written is a value in lines that are not aligned.
func written(v cty.Value) string {
	t := v.Type()
	switch {
	case v.IsNull() || !v.CanIterateElements() || v.LengthInt() == 0:
		return literal(v)
	case t.IsObjectType() || t.IsMapType():
		return writtenMap(v)
	}
	return writtenList(v)
}

// literal is a value on one line.
func literal(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }

func writtenList(v cty.Value) string {
	inline := true
	var elements []string
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		inline = inline && (element.IsNull() || element.Type().IsPrimitiveType())
		elements = append(elements, written(element))
	}
	if line := "[" + strings.Join(elements, ", ") + "]"; inline && columns(line) <= maxInline {
		return line
	}
	return "[\n" + strings.Join(elements, ",\n") + ",\n]"
}

func writtenMap(v cty.Value) string {
	var b strings.Builder
	for it := v.ElementIterator(); it.Next(); {
		key, element := it.Element()
		name := key.AsString()
		if !hclsyntax.ValidIdentifier(name) {
			name = literal(key)
		}
		b.WriteString(name + " = " + written(element) + "\n")
	}
	return "{\n" + b.String() + "}"
}
