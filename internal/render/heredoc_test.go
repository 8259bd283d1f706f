package render_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/config"
	"cosplay/internal/render"
)

// A text of several lines is shown as Terraform shows it; what a terminal would
// take for a command stays in quotes.
func TestOutputText(t *testing.T) {
	for value, want := range map[string]string{
		"one":              `"one"`,
		"one\n":            `"one\n"`,
		"one\n two\n":      "<<EOT\none\n two\nEOT",
		"one\ntwo":         "<<EOT\none\ntwo\nEOT",
		"a ${b}\n%{ if }":  "<<EOT\na $${b}\n%%{ if }\nEOT",
		"EOT\nb":           "<<EOT_\nEOT\nb\nEOT_",
		"\x1b[2J\nb":       `"\u001b[2J\nb"`,
		"carriage\r\nback": `"carriage\r\nback"`,
	} {
		if got := render.OutputText(config.Output{Value: cty.StringVal(value)}); got != want {
			t.Errorf("%q is shown as %s, want %s", value, got, want)
		}
	}
	for _, v := range []cty.Value{cty.NullVal(cty.String), cty.ListValEmpty(cty.String), cty.UnknownVal(cty.String)} {
		_ = render.OutputText(config.Output{Value: v}) // does not panic
	}
}
