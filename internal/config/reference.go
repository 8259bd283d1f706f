package config

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/resource"
)

// referenceAdvice states how to write a session's address.
func referenceAdvice(expr hcl.Expression) string {
	if native(expr) {
		return `Write it without quotes, like session.worker, session.worker[3] or session.worker["a"].`
	}
	return `Write it as a text without ${ }, like "session.worker", "session.worker[3]" or "session.worker[\"a\"]".`
}

// reference reads an expression that refers to a session or a whole block, and the attribute behind it:
// session.worker[3].fit.tolerance. Indexes are evaluated in the given scope. It reports the reason and fails if the
// expression is not a reference.
func (l *loader) reference(a attribute, expr hcl.Expression, scope *hcl.EvalContext) (ref resource.Reference, attribute string, ok bool) {
	no := func(summary, detail string, args ...any) (resource.Reference, string, bool) {
		l.complain(expr.Range(), summary, detail, args...)
		return resource.Reference{}, "", false
	}
	steps, ok := stepsOf(expr, scope)
	if !ok || len(steps) == 0 || steps[0].name != "session" {
		return no(fmt.Sprintf("%q does not name a session", a.path), "%s", referenceAdvice(expr))
	}
	if len(steps) == 1 || steps[1].name == "" {
		return no("session without a name", "Name the session behind the dot. %s", referenceAdvice(expr))
	}
	ref = resource.Reference{Address: resource.One(steps[1].name), Block: true}
	rest := steps[2:]
	if len(rest) > 0 && rest[0].name == "" {
		index := value{Value: rest[0].index, l: l}
		key, ok := keyOf(index.Value)
		if !ok && index.Value != cty.NilVal && index.isOpen() {
			return resource.Reference{}, "", false
		}
		if !ok {
			return no("this is no key of a session", "The instances of a block with count have the keys 0, 1, 2 and so on; those of one with for_each have texts. %s", referenceAdvice(expr))
		}
		ref.Address.Key, ref.Block, rest = key, false, rest[1:]
	}
	var names []string
	for _, s := range rest {
		if s.name == "" {
			return no("this is no attribute of a session", "Name an attribute of the session's block behind the dot, like session.worker.image.")
		}
		names = append(names, s.name)
	}
	return ref, strings.Join(names, "."), true
}

// step is one part of a reference: a name behind a dot, or an index.
type step struct {
	name  string
	index cty.Value
}

// stepsOf splits a reference into its parts; an index may be an expression.
func stepsOf(expr hcl.Expression, scope *hcl.EvalContext) ([]step, bool) {
	if traversal, diags := hcl.AbsTraversalForExpr(expr); !diags.HasErrors() {
		return traversed(nil, traversal), true
	}
	if text, diags := expr.Value(nil); !native(expr) && !diags.HasErrors() && text.Type() == cty.String { // JSON has an index in a text
		parsed, diags := parseExpression(text.AsString(), expr.Range().Filename)
		if diags.HasErrors() {
			return nil, false
		}
		expr = parsed
	}
	switch e := expr.(type) {
	case *hclsyntax.IndexExpr:
		before, ok := stepsOf(e.Collection, scope)
		index, diags := e.Key.Value(scope)
		return append(before, step{index: index}), ok && !diags.HasErrors()
	case *hclsyntax.RelativeTraversalExpr:
		before, ok := stepsOf(e.Source, scope)
		return traversed(before, e.Traversal), ok
	}
	return nil, false
}

func traversed(steps []step, traversal hcl.Traversal) []step {
	for _, t := range traversal {
		switch t := t.(type) {
		case hcl.TraverseRoot:
			steps = append(steps, step{name: t.Name})
		case hcl.TraverseAttr:
			steps = append(steps, step{name: t.Name})
		case hcl.TraverseIndex:
			steps = append(steps, step{index: t.Key})
		default:
			steps = append(steps, step{})
		}
	}
	return steps
}

// keyOf reads the index of an instance.
func keyOf(v cty.Value) (resource.Key, bool) {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() || v.IsMarked() {
		return resource.Key{}, false
	}
	switch v.Type() {
	case cty.String:
		return resource.Each("", v.AsString()).Key, true
	case cty.Number:
		n, accuracy := v.AsBigFloat().Int64()
		return resource.Nth("", int(n)).Key, accuracy == big.Exact && n >= 0 && n < maxCount
	}
	return resource.Key{}, false
}
