package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// ConsoleName is the file name in messages about expressions that a user typed.
const ConsoleName = "<console>"

// Eval evaluates an expression that a user typed, with the whole configuration and the live attributes of sessions
// that are known. It returns the file so that callers can show diagnostics with their source.
func (i *Intent) Eval(typed string, live map[resource.Address]LiveSession) (Output, *hcl.File, hcl.Diagnostics) {
	file := &hcl.File{Bytes: []byte(typed)}
	expr, diags := parseExpression(typed, ConsoleName)
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
	bare, marks := v.UnmarkDeep()
	if _, open := marks[reported]; open && !bare.IsWhollyKnown() {
		l.reportOpen(a)
	}
	return Output{Sensitive: isSensitive(v.Value), Value: bare}, file, l.diags
}

// reportOpen reports an expression that cannot be evaluated because variables have no value: the variables that it
// refers to or, if it depends on them indirectly, all variables without a value.
func (l *loader) reportOpen(a attribute) {
	at, names := a.expr.Range(), l.missedNames()
	for _, mention := range a.mentions {
		if name, is := strings.CutPrefix(variableName(mention), "var."); is && slices.Contains(names, name) {
			at, names = mention.SourceRange(), []string{name}
		}
	}
	for i, name := range names {
		names[i] = "var." + name
	}
	l.complain(at, at, fmt.Sprintf("this needs a value for %s", prose.Or(names)), "Give it one with --var 'NAME=...', in a file with --var-file FILE, in cosplay.hclvars, or as %sNAME in the environment.", EnvPrefix)
}
