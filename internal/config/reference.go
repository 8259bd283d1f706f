package config

import (
	"fmt"
	"math/big"
	"slices"
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
	if !ok || len(steps) == 0 || nameIn(steps[0]) != "session" {
		return no(fmt.Sprintf("%q does not name a session", a.path), "%s", referenceAdvice(expr))
	}
	if len(steps) == 1 || nameIn(steps[1]) == "" {
		return no("session without a name", "Name the session behind the dot. %s", referenceAdvice(expr))
	}
	ref = resource.Reference{Address: resource.One(nameIn(steps[1])), Block: true}
	rest := steps[2:]
	if len(rest) > 0 && nameIn(rest[0]) == "" {
		at, _ := rest[0].(hcl.TraverseIndex)
		index := value{Value: at.Key, l: l}
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
		name := nameIn(s)
		if name == "" {
			return no("this is no attribute of a session", "Name an attribute of the session's block behind the dot, like session.worker.image.")
		}
		names = append(names, name)
	}
	return ref, strings.Join(names, "."), true
}

// stepsOf splits a reference into its parts; an index may be an expression.
func stepsOf(expr hcl.Expression, scope *hcl.EvalContext) (hcl.Traversal, bool) {
	if traversal, diags := hcl.AbsTraversalForExpr(expr); !diags.HasErrors() {
		return traversal, true
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
		return append(slices.Clip(before), hcl.TraverseIndex{Key: index}), ok && !diags.HasErrors()
	case *hclsyntax.RelativeTraversalExpr:
		before, ok := stepsOf(e.Source, scope)
		return slices.Concat(before, e.Traversal), ok
	}
	return nil, false
}

// nameIn returns the name in a part of a reference; "" in an index.
func nameIn(step hcl.Traverser) string {
	switch s := step.(type) {
	case hcl.TraverseRoot:
		return s.Name
	case hcl.TraverseAttr:
		return s.Name
	}
	return ""
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
