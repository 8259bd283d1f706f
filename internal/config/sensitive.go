package config

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// mark is a property of a value that all values derived from it inherit.
type mark string

const (
	sensitive = mark("sensitive") // must not be shown
	reported  = mark("reported")  // unknown because of a mistake that has been reported
)

// isSensitive reports whether any part of a value must not be shown.
func isSensitive(v cty.Value) bool {
	_, marks := v.UnmarkDeep()
	_, there := marks[sensitive]
	return there
}

// redactedValue returns a value with null for each part that must not be shown.
func redactedValue(bare cty.Value, marked []cty.PathValueMarks) cty.Value {
	hidden := cty.NewPathSet()
	for _, m := range marked {
		if _, is := m.Marks[sensitive]; is {
			hidden.Add(m.Path)
		}
	}
	shown, err := cty.Transform(bare, func(at cty.Path, v cty.Value) (cty.Value, error) {
		if hidden.Has(at) {
			return cty.NullVal(v.Type()), nil
		}
		return v, nil
	})
	if err != nil { // never: nothing above fails
		return cty.NullVal(bare.Type())
	}
	return shown
}

// redacted removes from a diagnostic of the HCL library everything that a sensitive value may have left in it. A
// message about the number of arguments contains no values, so it stays.
func redacted(d *hcl.Diagnostic) *hcl.Diagnostic {
	counts := d.Summary == notEnoughArguments || d.Summary == tooManyArguments
	if d.Expression == nil || d.EvalContext == nil || counts || !worksOnSensitive(d.Expression, d.EvalContext) {
		return d
	}
	d.Detail = "Details are not shown, because the expression uses a sensitive value. Try it out with another value."
	d.Expression = nil
	return d
}

// worksOnSensitive reports whether an expression uses a sensitive value or computes one.
func worksOnSensitive(expr hcl.Expression, scope *hcl.EvalContext) bool {
	for _, mention := range expr.Variables() {
		if v, diags := mention.TraverseAbs(scope); !diags.HasErrors() && isSensitive(v) {
			return true
		}
	}
	made := false
	if written, native := expr.(hclsyntax.Node); native {
		_ = hclsyntax.VisitAll(written, func(n hclsyntax.Node) hcl.Diagnostics {
			call, is := n.(*hclsyntax.FunctionCallExpr)
			made = made || is && withoutCore(call.Name) == "sensitive"
			return nil
		})
	}
	return made
}

// partly is the minimum length of a sensitive text that must not be part of a name; shorter texts occur in too many
// names by chance.
const partly = 8

// isHidden reports whether a name contains the text of a sensitive variable or local. The mark alone is not enough,
// because a map's mark does not cover its keys.
func (l *loader) isHidden(name string) bool {
	if l.hidden == nil {
		l.hidden = map[string]bool{}
		for _, n := range l.nodes {
			if n.ok {
				gatherHidden(n.value, false, l.hidden)
			}
		}
	}
	name = strings.ToLower(name)
	for text := range l.hidden {
		if name == text || len(text) >= partly && strings.Contains(name, text) {
			return true
		}
	}
	return false
}

// gatherHidden adds the sensitive texts within a value to a set, in lower case.
func gatherHidden(v cty.Value, hidden bool, into map[string]bool) {
	bare, marks := v.Unmark()
	_, sensitiveHere := marks[sensitive]
	hidden = hidden || sensitiveHere
	switch {
	case !bare.IsKnown() || bare.IsNull():
	case bare.CanIterateElements():
		for _, element := range bare.Elements() {
			gatherHidden(element, hidden, into)
		}
	case hidden && isOneOf(bare.Type(), cty.String, cty.Number):
		if text, err := convert.Convert(bare, cty.String); err == nil && text.AsString() != "" {
			into[strings.ToLower(text.AsString())] = true
		}
	}
}

// hasSecretName rejects a sensitive value as a name, because names are printed.
func (v value) hasSecretName() bool {
	written, _ := hcl.ExprMap(v.expr)
	for _, p := range written {
		if key, diags := p.Key.Value(v.scope); !diags.HasErrors() && isSensitive(key) {
			v.l.complain(p.Key.Range(), secretName, secretNameAdvice)
			return true
		}
	}
	return false
}

const (
	secretName       = "the name of an environment variable would show a sensitive value"
	secretNameAdvice = "Names are shown in plans and in the state, values that are sensitive are not. Write the name itself, like TOKEN."
)

// marking returns one of the functions that set, remove or read the sensitive mark.
func marking(result func(cty.Value) cty.Value, t func(cty.Value) cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) { return t(args[0]), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return result(args[0]), nil },
	})
}

func typeOf(v cty.Value) cty.Type { return v.Type() }

var (
	makeSensitive = marking(func(v cty.Value) cty.Value { return v.Mark(sensitive) }, typeOf)

	nonSensitive = marking(func(v cty.Value) cty.Value {
		bare, marks := v.Unmark()
		delete(marks, sensitive)
		return bare.WithMarks(marks)
	}, typeOf)

	isSensitiveFunc = marking(func(v cty.Value) cty.Value { return cty.BoolVal(v.HasMark(sensitive)) },
		func(cty.Value) cty.Type { return cty.Bool })
)
