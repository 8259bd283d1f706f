package render

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/public"
)

// hidden is the text of a sensitive value.
const hidden = "(sensitive)"

// Outputs shows the outputs of a configuration after other lines, each as it would be written there.
func Outputs(w io.Writer, s Style, all []config.Output) {
	p := newPage(s)
	p.blank = false
	p.outputsAfter(all)
	p.flush(w)
}

func (p *page) outputsAfter(all []config.Output) {
	if len(all) == 0 {
		return
	}
	p.gap()
	p.flow(0, 2, inked(strong, "Outputs:"))
	p.gap()
	p.outputs(2, all)
}

// outputs lists outputs, with their values beside each other.
func (p *page) outputs(indent int, all []config.Output) {
	for _, lines := range assignments(all, func(o config.Output) string { return o.Name }, OutputText) {
		for _, l := range lines {
			p.print(indent, text(l))
		}
	}
}

// assignments are the lines of each "name = value", with the values beside each other.
func assignments[T any](all []T, name, value func(T) string) [][]string {
	wide := 0
	for _, one := range all {
		wide = max(wide, columns(name(one)))
	}
	return each(all, func(one T) []string {
		return strings.Split(name(one)+strings.Repeat(" ", wide-columns(name(one)))+" = "+value(one), "\n")
	})
}

// OutputText is an output's value as it would be written in a configuration.
func OutputText(o config.Output) string {
	switch {
	case o.Sensitive:
		return hidden
	case !o.Value.IsWhollyKnown():
		return "(known after apply)"
	case isLines(o.Value):
		return heredoc(o.Value.AsString())
	}
	return valueText(o.Value)
}

// isLines reports whether a value is a text of several lines, which can be shown as they are.
func isLines(v cty.Value) bool {
	if v.Type() != cty.String || v.IsNull() {
		return false
	}
	odd := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	return strings.Contains(strings.TrimRight(v.AsString(), "\n"), "\n") && !strings.ContainsFunc(v.AsString(), odd)
}

// heredoc is a text of several lines as Terraform shows it.
func heredoc(s string) string {
	end := "EOT"
	for strings.Contains(s, end) {
		end += "_"
	}
	s = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strings.TrimSuffix(s, "\n"))
	return "<<" + end + "\n" + s + "\n" + end
}

// outputsJSON gives outputs as data; one that is sensitive or not known has no value.
func outputsJSON(all []config.Output) []public.Output {
	return each(all, func(o config.Output) public.Output {
		one := public.Output{Name: o.Name, Sensitive: o.Sensitive}
		if !o.Sensitive && o.Value.IsWhollyKnown() {
			one.Type, one.Value = typeAndValue(o.Value)
		}
		return one
	})
}

func typeAndValue(v cty.Value) (kind, value json.RawMessage) {
	kind, _ = ctyjson.MarshalType(v.Type())
	value, _ = ctyjson.Marshal(v, v.Type())
	return kind, value
}

// OutputsView are outputs, and nothing else.
type OutputsView []config.Output

func (all OutputsView) draw(p *page) {
	p.outputs(0, all)
}

func (all OutputsView) data() any {
	return public.Outputs{Format: public.V1, Outputs: outputsJSON(all)}
}

// OutputJSON writes one value alone; one that is not to be shown, or not known, is null.
func OutputJSON(w io.Writer, o config.Output) error {
	value := json.RawMessage("null")
	if !o.Sensitive && o.Value.IsWhollyKnown() {
		_, value = typeAndValue(o.Value)
	}
	return JSON(w, value)
}

// RawText is a text, number or truth value as a shell takes it. The error says what else it is.
func RawText(v cty.Value) (string, error) {
	if v.IsKnown() && v.IsNull() {
		return "", errors.New("null")
	}
	if !v.IsWhollyKnown() || !v.Type().IsPrimitiveType() {
		return "", errors.New("neither a text nor a number, true or false")
	}
	text, err := convert.Convert(v, cty.String)
	if err != nil {
		return "", err
	}
	return text.AsString(), nil
}

// outputChanges lists the outputs that get other values.
func (p *page) outputChanges(all []diff.OutputChange) {
	if len(all) == 0 {
		return
	}
	p.gap()
	p.print(0, inked(strong, "Changes to outputs:"))
	for i, lines := range outputChangeLines(all, p.arrow()) {
		sign := signs[all[i].Action]
		p.print(2, join(inked(sign.ink, sign.sign), text(" "+lines[0])))
		for _, more := range lines[1:] {
			p.print(4, text(more))
		}
	}
}

// outputChangeLines are the lines of each "name = old -> new".
func outputChangeLines(all []diff.OutputChange, arrow string) [][]string {
	return assignments(all, func(c diff.OutputChange) string { return c.Name }, func(c diff.OutputChange) string {
		switch c.Action {
		case diff.Update:
			return outputValue(c, c.Before) + " " + arrow + " " + outputValue(c, c.After)
		case diff.Delete:
			return outputValue(c, c.Before)
		default: // an output is created with its future value
			return outputValue(c, c.After)
		}
	})
}

// outputValue is a value as it would be written in a configuration.
func outputValue(c diff.OutputChange, written json.RawMessage) string {
	switch {
	case c.Sensitive:
		return hidden
	case written == nil:
		return "(known after apply)"
	}
	v, err := ctyjson.Unmarshal(written, cty.DynamicPseudoType)
	if err != nil {
		return string(written)
	}
	return valueText(v)
}

// maxInline is the largest width of a list on one line, in columns.
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
	for _, element := range v.Elements() {
		inline = inline && (element.IsNull() || element.Type().IsPrimitiveType())
		elements = append(elements, written(element))
	}
	if line := "[" + strings.Join(elements, ", ") + "]"; inline && columns(line) <= maxInline {
		return line
	}
	return "[\n" + strings.Join(elements, ",\n") + ",\n]"
}

func writtenMap(v cty.Value) string {
	text := "{\n"
	for key, element := range v.Elements() {
		name := key.AsString()
		if !hclsyntax.ValidIdentifier(name) {
			name = literal(key)
		}
		text += name + " = " + written(element) + "\n"
	}
	return text + "}"
}
