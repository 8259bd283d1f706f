package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// laterVariables and laterFunctions are what expressions cannot use yet.
var (
	laterVariables = []string{"var", "local", "each", "session"}
	laterFunctions = []string{"file", "env"}
)

// scope makes what expressions may mention. Whatever joins count.index and
// path.module joins them here.
type scope struct {
	base *hcl.EvalContext
}

func newScope() scope {
	return scope{base: &hcl.EvalContext{
		Variables: map[string]cty.Value{
			// As in Terraform, relative to the folder that cosplay runs in.
			"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(".")}),
		},
		Functions: functions,
	}}
}

// instance is the scope inside instance i of a block with count.
func (s scope) instance(i int) *hcl.EvalContext {
	inner := s.base.NewChild()
	inner.Variables = map[string]cty.Value{
		"count": cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(int64(i))}),
	}
	return inner
}

// check looks at what an expression mentions, before it is evaluated: whether
// all of it exists, and whether it varies between the instances of a block
// with count. What does not exist is told.
func (l *loader) check(a attribute, counted bool) (varies, ok bool) {
	ok = true
	for _, mention := range a.expr.Variables() {
		switch name := variableName(mention); {
		case name == "path" || name == "path.module":
		case counted && (name == "count" || name == "count.index"):
			varies = true
		default:
			ok = false
			l.unknownVariable(a, mention)
		}
	}
	return varies, ok
}

// variableName is as much of a mention as names a variable: "count.index".
func variableName(mention hcl.Traversal) string {
	if len(mention) > 1 {
		if step, ok := mention[1].(hcl.TraverseAttr); ok {
			return mention.RootName() + "." + step.Name
		}
	}
	return mention.RootName()
}

func (l *loader) unknownVariable(a attribute, mention hcl.Traversal) {
	name, at := mention.RootName(), mention.SourceRange()
	full := variableName(mention)
	switch {
	case full == "count.index" && a.path == "count":
		l.complain(at, a.whole, "count depends on itself",
			"count.index is known once count is. Write the number of sessions, like 7.")
	case full == "count.index":
		l.complain(at, a.whole, "count.index without count",
			"count.index is the number of a session within a session block that has count. Add count to the block, or write a fixed value here.")
	case slices.Contains(laterVariables, name):
		l.complain(at, a.whole, fmt.Sprintf("%q is not yet part of cosplay", full),
			"A later version will have %s. Write the value itself for now.", name)
	case len(mention) == 1:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", name),
			"A word without quotes is the name of a variable, and there are only count.index and path.module. Put text in quotes: \"%s\".", name)
	default:
		l.complain(at, a.whole, fmt.Sprintf("unknown variable %q", full),
			"Expressions can use count.index and path.module.%s", didYouMean(full, []string{"count.index", "path.module"}))
	}
}

// evaluate works out an attribute's value in a scope. It fails, after telling
// why, where that is not possible.
func (l *loader) evaluate(a attribute, scope *hcl.EvalContext) (value, bool) {
	result, diags := a.expr.Value(scope)
	for _, d := range diags {
		l.report(d)
	}
	return value{Value: result, attribute: a, expr: a.expr, scope: scope}, !diags.HasErrors()
}
