package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Summaries of diagnostics of the HCL library.
const (
	unsupportedAttribute = "Unsupported attribute" // its detail does not name the alternatives
	invalidIndex         = "Invalid index"         // likewise
	notEnoughArguments   = "Not enough function arguments"
	tooManyArguments     = "Too many function arguments"
)

// inOurWords adapts a diagnostic of the HCL library to the form of cosplay's own.
func (r *reporter) inOurWords(d *hcl.Diagnostic) *hcl.Diagnostic {
	call, unknown := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
	switch {
	case unknown:
		name := withoutCore(call.CalledFunctionName())
		d.Summary = fmt.Sprintf("unknown function %q", name)
		d.Detail = "cosplay has no function of that name. Its functions have the names and the meaning that they have in Terraform. Write one of these."
		if instead, is := advice["functions"][name]; is {
			d.Detail = instead
		} else if suggestion := didYouMean(name, sortedKeys(r.functions)); suggestion != "" {
			d.Detail = "cosplay has no function of that name." + suggestion
		}
	case d.Summary == unsupportedAttribute:
		if !strings.Contains(d.Detail, ", which a session has.") {
			d.Detail += cmp.Or(stepsThere(d), " Remove the part after the dot.")
		}
	case d.Summary == invalidIndex:
		d.Detail += cmp.Or(r.tooFew(d), stepsThere(d), " Name one that exists; length(...) and keys(...) show what exists.")
	}
	if call, failed := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); failed && d.Expression != nil {
		d.Detail = ofCall(call, d)
	} else {
		d.Detail += nextStep(d.Summary)
	}
	d.Summary = lower(d.Summary)
	return d
}

// tooFew suggests another count if an expression uses count.index for a list that is too short. It starts with a space.
func (r *reporter) tooFew(d *hcl.Diagnostic) string {
	index, is := d.Expression.(*hclsyntax.IndexExpr)
	if !is || !slices.ContainsFunc(index.Key.Variables(), func(m hcl.Traversal) bool { return variableName(m) == "count.index" }) {
		return ""
	}
	of, diags := index.Collection.Value(d.EvalContext)
	file := r.files[index.Collection.Range().Filename]
	if of, marks := of.Unmark(); diags.HasErrors() || len(marks) > 0 || !of.IsKnown() || of.IsNull() || !isList(of.Type()) || file == nil {
		return ""
	}
	return fmt.Sprintf(" The list has %s, and count makes more sessions. Write: count = length(%s)", prose.Count(of.LengthInt(), "element"),
		index.Collection.Range().SliceBytes(file.Bytes))
}

// stepsThere lists the attributes or elements of a value if an expression uses one that does not exist. It starts
// with a space.
func stepsThere(d *hcl.Diagnostic) string {
	var (
		steps hcl.Traversal
		at    cty.Value
		diags hcl.Diagnostics
	)
	switch e := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		at, diags = e.Traversal[:1].TraverseAbs(d.EvalContext)
		steps = e.Traversal[1:]
	case *hclsyntax.RelativeTraversalExpr:
		at, diags = e.Source.Value(d.EvalContext)
		steps = e.Traversal
	case *hclsyntax.IndexExpr:
		var key cty.Value
		at, diags = e.Collection.Value(d.EvalContext)
		if key, _ = e.Key.Value(d.EvalContext); key.IsMarked() {
			return ""
		}
		steps = hcl.Traversal{hcl.TraverseIndex{Key: key}}
	}
	if diags.HasErrors() {
		return ""
	}
	for _, step := range steps {
		next, diags := step.TraversalStep(at)
		if diags.HasErrors() {
			return insteadOf(step, at)
		}
		at = next
	}
	return ""
}

// insteadOf lists the attributes or elements that a value has instead of a missing one. It starts with a space.
func insteadOf(step hcl.Traverser, of cty.Value) string {
	if of.HasMark(sensitive) {
		return ""
	}
	switch step := step.(type) {
	case hcl.TraverseAttr:
		if of.Type().IsObjectType() {
			names := sortedKeys(of.Type().AttributeTypes())
			return fmt.Sprintf(" Write one of %s.%s", prose.And(names), didYouMean(step.Name, names))
		}
	case hcl.TraverseIndex:
		if of, _ := of.Unmark(); of.IsKnown() && !of.IsNull() {
			return keysInstead(step.Key, of)
		}
	}
	return ""
}

func keysInstead(key, of cty.Value) string {
	t := of.Type()
	switch isPlace := isList(t) && !t.IsSetType(); {
	case !isPlace && !isMap(t):
		return ""
	case of.LengthInt() == 0:
		return " There is none to name. Put it into try(..., null), or leave it out."
	case isPlace && of.LengthInt() == 1:
		return " It has one element. Write 0."
	case isPlace:
		return fmt.Sprintf(" It has %d elements. Write a number from 0 to %d.", of.LengthInt(), of.LengthInt()-1)
	}
	keys, typed := sortedKeys(of.AsValueMap()), ""
	if at, ok := keyOf(key); ok {
		typed = at.Each
	}
	return fmt.Sprintf(" Write one of %s.%s", prose.And(prose.Few(prose.Quoted(keys), maxListed)), didYouMean(typed, keys))
}

// withLive lists the attributes of a session if a splat uses one that does not exist. The HCL library's diagnostic
// does not name the value that the splat applies to.
func withLive(d *hcl.Diagnostic, a attribute) *hcl.Diagnostic {
	of, relative := d.Expression.(*hclsyntax.RelativeTraversalExpr)
	if d.Summary != unsupportedAttribute || !relative || len(of.Traversal) == 0 {
		return d
	}
	if _, splat := of.Source.(*hclsyntax.AnonSymbolExpr); !splat || !mentionsSession(a.mentions) {
		return d
	}
	before := ""
	var wanted hcl.TraverseAttr
	for _, step := range of.Traversal {
		attr, named := step.(hcl.TraverseAttr)
		if !named {
			return d
		}
		if wanted = attr; attr.SrcRange == *d.Subject {
			break
		}
		before += attr.Name + "."
	}
	var names []string
	for _, one := range liveAttributes {
		name, inside := strings.CutPrefix(one.Name, before)
		name, _, _ = strings.Cut(name, ".")
		if inside && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return d
	}
	reported := *d
	reported.Detail += fmt.Sprintf(" Write one of %s, which a session has.%s", prose.And(names), didYouMean(wanted.Name, names))
	return &reported
}

// ofCall describes an invalid function call and its fix. The HCL library's text may end in two full stops, or contain
// a stack trace.
func ofCall(call hclsyntax.FunctionCallDiagExtra, d *hcl.Diagnostic) string {
	var (
		panicked function.PanicError
		template templateError
	)
	switch err := call.FunctionCallError(); {
	case errors.As(err, &template):
		return template.Error()
	case errors.As(err, &panicked):
		return fmt.Sprintf("%s cannot be evaluated with these arguments.", call.CalledFunctionName()) + nextStep(d.Summary)
	}
	return strings.TrimRight(d.Detail, ". ") + "." + nextStep(d.Summary)
}
