package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"cosplay/internal/resource"
)

// ConsoleName is what expressions that somebody typed are called in messages.
const ConsoleName = "<console>"

// Eval works out an expression that somebody typed, with all that the
// configuration has and what is known of sessions. The file is for those who show
// the diagnostics with their source.
func (i *Intent) Eval(typed string, live map[resource.Address]LiveSession) (Output, *hcl.File, hcl.Diagnostics) {
	file := &hcl.File{Bytes: []byte(typed)}
	expr, diags := hclsyntax.ParseExpression(file.Bytes, ConsoleName, hcl.InitialPos)
	l := i.l
	l.forget()
	for _, d := range diags {
		l.report(d)
	}
	if diags.HasErrors() {
		return Output{}, file, l.diags
	}
	a := attribute{path: "console", expr: expr, whole: expr.Range()}
	if _, ok := l.check(&a, reach{live: true}); !ok {
		return Output{}, file, l.diags
	}
	v, ok := l.evaluate(a, l.liveContext(a, live))
	if !ok {
		return Output{}, file, l.diags
	}
	bare, _ := v.UnmarkDeep()
	return Output{Sensitive: isSensitive(v.Value), Value: bare}, file, l.diags
}
