package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/public"
)

// hidden stands for a value that is not to be shown.
const hidden = "(sensitive)"

// Outputs shows the outputs of a configuration, each as it would be written there.
func Outputs(w io.Writer, s Style, all []config.Output) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w) // apart from what was shown before
	p := newPage(s)
	p.flow(0, 2, inked(strong, "Outputs:"))
	p.gap()
	p.outputs(2, all)
	p.flush(w)
}

// outputs lists them, with their values beside each other.
func (p *page) outputs(indent int, all []config.Output) {
	wide := 0
	for _, o := range all {
		wide = max(wide, columns(o.Name))
	}
	for _, o := range all {
		lines := strings.Split(OutputText(o), "\n")
		p.print(indent, text(o.Name+strings.Repeat(" ", wide-columns(o.Name))+" = "+lines[0]))
		for _, more := range lines[1:] {
			p.print(indent, text(more))
		}
	}
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
	return list(each(all, func(o config.Output) public.Output {
		one := public.Output{Name: o.Name, Sensitive: o.Sensitive}
		if !o.Sensitive && o.Value.IsWhollyKnown() {
			one.Type, one.Value = typeAndValue(o.Value)
		}
		return one
	}))
}

func typeAndValue(v cty.Value) (kind, value json.RawMessage) {
	kind, _ = ctyjson.MarshalType(v.Type())
	value, _ = ctyjson.Marshal(v, v.Type())
	return kind, value
}

// OutputList shows outputs, and nothing else.
func OutputList(w io.Writer, s Style, all []config.Output) {
	p := newPage(s)
	p.outputs(0, all)
	p.flush(w)
}

// OutputsJSON writes outputs as data, by name.
func OutputsJSON(w io.Writer, all []config.Output) error {
	return JSON(w, public.Outputs{Format: public.V1, Outputs: outputsJSON(all)})
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
