package render

import (
	"encoding/json"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/diff"
)

// outputChanges lists the outputs that will have other values.
func (p *page) outputChanges(all []diff.OutputChange) {
	if len(all) == 0 {
		return
	}
	p.gap()
	p.print(0, inked(strong, "Changes to outputs:"))
	wide := outputsWidth(all)
	for _, c := range all {
		sign := map[diff.Action]line{diff.Create: inked(added, "+"), diff.Update: inked(changed, "~"), diff.Delete: inked(removed, "-")}[c.Action]
		lines := outputChangeLines(c, wide, p.arrow())
		p.print(2, join(sign, text(" "+lines[0])))
		for _, more := range lines[1:] {
			p.print(4, text(more))
		}
	}
}

// outputs shows them in a fence.
func (m *markdown) outputs() {
	var lines []string
	wide := outputsWidth(m.Plan.Diff.Outputs)
	for _, c := range m.Plan.Diff.Outputs {
		for i, l := range outputChangeLines(c, wide, "->") {
			sign := fenceSigns[c.Action]
			if i > 0 {
				sign = " "
			}
			lines = append(lines, oneLine(sign+" "+l))
		}
	}
	if len(lines) > 0 {
		m.block("Outputs:")
		m.fence("diff", lines)
	}
}

func outputsWidth(all []diff.OutputChange) int {
	wide := 0
	for _, c := range all {
		wide = max(wide, columns(c.Name))
	}
	return wide
}

// outputChangeLines are "name = old -> new"; a value can take several lines.
func outputChangeLines(c diff.OutputChange, wide int, arrow string) []string {
	words := outputValue(c, c.After)
	switch c.Action {
	case diff.Update:
		words = outputValue(c, c.Before) + " " + arrow + " " + words
	case diff.Delete:
		words = outputValue(c, c.Before)
	default: // an output is created with the value that it will have
	}
	return strings.Split(c.Name+strings.Repeat(" ", wide-columns(c.Name))+" = "+words, "\n")
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
