package render

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
)

// hidden stands for a value that is not to be shown.
const hidden = "(sensitive)"

// Outputs shows the outputs of a configuration, each as it would be written there.
func Outputs(w io.Writer, s Style, all []config.Output) {
	if len(all) == 0 {
		return
	}
	p := newPage(s)
	p.gap()
	p.flow(0, 2, inked(strong, "Outputs:"))
	p.gap()
	wide := 0
	for _, o := range all {
		wide = max(wide, columns(o.Name))
	}
	for _, o := range all {
		lines := strings.Split(OutputText(o), "\n")
		p.print(2, text(o.Name+strings.Repeat(" ", wide-columns(o.Name))+" = "+lines[0]))
		for _, more := range lines[1:] {
			p.print(2, text(more))
		}
	}
	p.flush(w)
}

// OutputText is an output's value as it would be written in a configuration.
func OutputText(o config.Output) string {
	switch {
	case o.Sensitive:
		return hidden
	case !o.Value.IsWhollyKnown():
		return "(known after apply)"
	}
	return string(hclwrite.TokensForValue(o.Value).Bytes())
}

// outputJSON is an output as data; one that is sensitive or not known has no
// value.
type outputJSON struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

func outputsJSON(all []config.Output) []outputJSON {
	out := []outputJSON{}
	for _, o := range all {
		one := outputJSON{Name: o.Name, Sensitive: o.Sensitive}
		if !o.Sensitive && o.Value.IsWhollyKnown() {
			one.Type, one.Value = typeAndValue(o.Value)
		}
		out = append(out, one)
	}
	return out
}

func typeAndValue(v cty.Value) (kind, value json.RawMessage) {
	kind, _ = ctyjson.MarshalType(v.Type())
	value, _ = ctyjson.Marshal(v, v.Type())
	return kind, value
}
