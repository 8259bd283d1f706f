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

// nextSteps gives the fix for diagnostics of the HCL library that do not state one, by their summaries. Each starts
// with a space.
var nextSteps = map[string]string{
	"Argument or block definition required":           " Write a name, an equals sign and a value; or the word of a block, its name in quotes, and a brace.",
	"Attempt to get attribute from null value":        " Give it a value, or put it into try(..., null).",
	"Attempt to index null value":                     " Give it a value, or put it into try(..., null).",
	"Condition is null":                               " Write a comparison, like if x > 0.",
	"Duplicate argument":                              " Remove one of the two.",
	"Duplicate attribute definition":                  " Remove one of the two.",
	"Duplicate object key":                            " Make the keys different, or add the ellipsis.",
	"Error in function call":                          " Change its arguments.",
	"Extra characters after expression":               " Remove them, or put an operator or a comma before.",
	"Extra characters after interpolation expression": " Write $${ for a literal ${.",
	"Extra characters in if marker":                   " Remove them.",
	"Inconsistent conditional result types":           " Write two values of one type.",
	"Incorrect condition type":                        " Write a comparison, like var.workers > 0.",
	"Incorrect JSON value type":                       " Write braces with attributes in them: { ... }",
	"Incorrect key type":                              " Write a text or a number.",
	"Invalid 'for' condition":                         " Write a comparison, like if x > 0.",
	"Invalid 'for' directive":                         " Write it like: %{ for x in list }${x}%{ endfor }",
	"Invalid 'for' expression":                        " Write [for x in list : x], or { for k, v in map : k => v }.",
	"Invalid attribute name":                          " Write one, like var.image; or put text in double quotes.",
	"Invalid block definition":                        " Write it like: session \"worker\" {",
	"Invalid escape sequence":                         " Write \\\\ for a literal \\.",
	"Invalid expanding argument value":                " Write a list.",
	"Invalid expression":                              " Write a value here, like \"text\" or 7.",
	"Invalid function argument":                       " Pass a value of the expected type.",
	"Invalid number literal":                          " Write it like 7, 0.5 or 1e6.",
	"Invalid object key":                              " Write a text or a number.",
	"Invalid operand":                                 " Write a value of that kind; tonumber(...) and tostring(...) convert.",
	"Invalid single-argument block definition":        " Write each attribute on a separate line, and the closing brace after them; text goes in double quotes.",
	"Invalid template interpolation value":            " Write a value that converts to a text; join(...) and jsonencode(...) make texts.",
	"Iteration over non-iterable value":               " Write a list, a set or a map.",
	"Iteration over null value":                       " Write a list, a set or a map.",
	"Missing argument separator":                      " Add it.",
	"Missing attribute separator":                     " Add a comma before it, or write it on a separate line.",
	"Missing block label":                             " Write the name as a property: { \"lab\": { ... } }",
	"Missing close bracket on index":                  " Add it.",
	"Missing close bracket on splat index":            " Add it.",
	"Missing closing parenthesis":                     " Write what is expanded as the last argument.",
	"Missing false expression in conditional":         " Write it like: condition ? this : that",
	"Missing item separator":                          " Add it, or the bracket that ends the list.",
	"Missing key/value separator":                     " Write it like: { name = value }",
	"Missing map element":                             " Name one that exists; keys(...) lists them.",
	"Missing newline after argument":                  " Write what follows, be it a closing brace, on a separate line; text goes in double quotes.",
	"Missing open parenthesis":                        " Write the name of a function without colons: there are no namespaces.",
	notEnoughArguments:                                " Add the missing arguments.",
	"Null condition":                                  " Write a comparison, like var.workers > 0.",
	"Null value as key":                               " Write a text or a number.",
	"Operation failed":                                " Change its operands.",
	tooManyArguments:                                  " Remove the extra arguments.",
	"Trailing comma in object":                        " Remove it.",
	"Unbalanced parentheses":                          " Add it.",
	"Unclosed configuration block":                    " Add the closing brace.",
	"Unclosed template interpolation sequence":        " Add it.",
	"Unexpected else directive":                       " Remove it, or add the if that it belongs to.",
	"Unexpected end of template":                      " Add it.",
	"Unexpected endfor directive":                     " Remove it, or add what it should end.",
	"Unexpected endif directive":                      " Remove it, or add what it should end.",
	"Unterminated template string":                    " Add the quote, or the word that ends the heredoc on a separate line.",
}

// inOurWords adapts a diagnostic of the HCL library to the form of cosplay's own.
func (l *loader) inOurWords(d *hcl.Diagnostic) *hcl.Diagnostic {
	call, unknown := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
	switch {
	case unknown:
		name := call.CalledFunctionName()
		d.Summary = fmt.Sprintf("unknown function %q", name)
		d.Detail = "cosplay has no function of that name. Its functions have the names and the meaning that they have in Terraform. Write one of these."
		if instead, is := terraformFunctions[name]; is {
			d.Detail = instead
		} else if suggestion := didYouMean(name, sortedKeys(l.functions)); suggestion != "" {
			d.Detail = "cosplay has no function of that name." + suggestion
		}
	case d.Summary == unsupportedAttribute:
		if !strings.Contains(d.Detail, ", which a session has.") {
			d.Detail += cmp.Or(stepsThere(d), " Remove the part after the dot.")
		}
	case d.Summary == invalidIndex:
		d.Detail += cmp.Or(stepsThere(d), " Name one that exists; length(...) and keys(...) show what exists.")
	}
	if call, failed := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); failed && d.Expression != nil {
		d.Detail = ofCall(call, d)
	} else {
		d.Detail += nextSteps[d.Summary]
	}
	d.Summary = lower(d.Summary)
	return d
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
	if _, splat := of.Source.(*hclsyntax.AnonSymbolExpr); !splat || !slices.ContainsFunc(a.mentions, func(m hcl.Traversal) bool { return m.RootName() == "session" }) {
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
		return fmt.Sprintf("%s cannot be evaluated with these arguments.", call.CalledFunctionName()) + nextSteps[d.Summary]
	}
	return strings.TrimRight(d.Detail, ". ") + "." + nextSteps[d.Summary]
}
