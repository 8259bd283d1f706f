package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxAtOnePlace is how often one place of a file is complained about: an
// expression that is wrong for each of 10,000 instances is one mistake.
const maxAtOnePlace = 3

// complain tells of a mistake. The subject is the very word that is wrong, the
// context what should be shown around it.
func (l *loader) complain(subject, context hcl.Range, summary, detail string, args ...any) {
	l.report(&hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(detail, args...),
		Subject:  &subject,
		Context:  &context,
	})
}

// wrong tells of a value that is not what its attribute takes.
func (l *loader) wrong(v value, summary, detail string, args ...any) {
	subject, context := v.expr.Range(), v.attribute.whole
	l.report(&hcl.Diagnostic{
		Severity:    hcl.DiagError,
		Summary:     summary,
		Detail:      fmt.Sprintf(detail, args...),
		Subject:     &subject,
		Context:     &context,
		Expression:  v.expr,
		EvalContext: v.scope,
	})
}

// inOrder mends the place of what the file ends in the middle of: the HCL library
// gives it no end.
func inOrder(r *hcl.Range) *hcl.Range {
	if r == nil || r.End.Byte >= r.Start.Byte {
		return r
	}
	mended := *r
	mended.End = mended.Start
	return &mended
}

// report adds a diagnostic, of ours or of the HCL library, unless its place
// has been complained about enough.
func (l *loader) report(d *hcl.Diagnostic) {
	d = l.inOurWords(d)
	d.Subject, d.Context = inOrder(d.Subject), inOrder(d.Context)
	told := l.told[*d.Subject]
	same := func(other *hcl.Diagnostic) bool {
		// An index is wrong for each instance in other words.
		return other.Summary == d.Summary && (other.Detail == d.Detail || d.Summary == "invalid index")
	}
	if len(told) == maxAtOnePlace || slices.ContainsFunc(told, same) {
		return
	}
	l.told[*d.Subject] = append(told, d)
	l.diags = append(l.diags, d)
}

// inOurWords makes a diagnostic of the HCL library one of ours.
func (l *loader) inOurWords(d *hcl.Diagnostic) *hcl.Diagnostic {
	call, unknown := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d)
	switch {
	case unknown:
		name := call.CalledFunctionName()
		d.Summary = fmt.Sprintf("unknown function %q", name)
		d.Detail = "There is no function of that name; those that there are have the names and do the work that they have in Terraform. Write one of these."
		if instead, is := terraformFunctions[name]; is {
			d.Detail = instead
		} else if suggestion := didYouMean(name, sortedKeys(l.functions)); suggestion != "" {
			d.Detail = "There is no function of that name." + suggestion
		}
	case d.Summary == unsupportedAttribute:
		if !strings.Contains(d.Detail, ", which a session has.") {
			d.Detail += cmp.Or(attributesThere(d), " Leave out what is behind the dot.")
		}
	}
	d.Detail += nextSteps[d.Summary]
	d.Summary = lower(d.Summary)
	return d
}

// nextSteps are what to do about those mistakes that the HCL library tells without
// saying so, by its summaries. Each starts with a space.
var nextSteps = map[string]string{
	"Duplicate argument":                              " Remove one of the two.",
	"Duplicate attribute definition":                  " Remove one of the two.",
	"Error in function call":                          " Change what it is given.",
	"Incorrect JSON value type":                       " Write braces with attributes in them: { ... }",
	"Invalid expression":                              " Write a value here, like \"text\" or 7.",
	"Invalid function argument":                       " Give it one of the kind that it wants.",
	"Invalid index":                                   " Name one that is there; length(...) and keys(...) tell which are.",
	"Invalid operand":                                 " Write a value of that kind; tonumber(...) and tostring(...) convert.",
	"Argument or block definition required":           " Write a name, an equals sign and a value; or the word of a block, its name in quotes, and a brace.",
	"Extra characters after expression":               " Remove them, or put an operator or a comma before.",
	"Extra characters after interpolation expression": " Write $${ for a ${ that stands for itself.",
	"Invalid 'for' expression":                        " Write [for x in list : x], or { for k, v in map : k => v }.",
	"Invalid block definition":                        " Write it like: session \"worker\" {",
	"Invalid single-argument block definition":        " Write each attribute on a line of its own, and the closing brace after them.",
	"Missing attribute separator":                     " Add a comma before it, or write it on a line of its own.",
	"Missing item separator":                          " Add it.",
	"Missing newline after argument":                  " Write what follows on a line of its own; text goes in double quotes.",
	"Unterminated template string":                    " Add the quote, or the word that ends the heredoc on a line of its own.",
	"Missing block label":                             " Write the name as a property: { \"lab\": { ... } }",
	"Not enough function arguments":                   " Add what is missing.",
	"Too many function arguments":                     " Remove what is too much.",
	"Trailing comma in object":                        " Remove it.",
	"Unclosed configuration block":                    " Add the closing brace.",
}

// unsupportedAttribute is a summary of the HCL library's whose detail leaves out
// what there is instead.
const unsupportedAttribute = "Unsupported attribute"

// attributesThere lists what an object has of which an expression wants something
// else. It starts with a space.
func attributesThere(d *hcl.Diagnostic) string {
	var (
		steps hcl.Traversal
		at    cty.Value
	)
	switch e := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		root, diags := e.Traversal[:1].TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			return ""
		}
		at, steps = root, e.Traversal[1:]
	case *hclsyntax.RelativeTraversalExpr:
		source, diags := e.Source.Value(d.EvalContext)
		if diags.HasErrors() {
			return ""
		}
		at, steps = source, e.Traversal
	}
	for _, step := range steps {
		next, diags := step.TraversalStep(at)
		if !diags.HasErrors() {
			at = next
			continue
		}
		wanted, ok := step.(hcl.TraverseAttr)
		if !ok || !at.Type().IsObjectType() {
			return ""
		}
		names := sortedKeys(at.Type().AttributeTypes())
		return fmt.Sprintf(" Write one of %s.%s", and(names), didYouMean(wanted.Name, names))
	}
	return ""
}

// withLive lists the attributes of a session where a splat wants another, of which
// the HCL library does not tell what it is applied to.
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
	told := *d
	told.Detail += fmt.Sprintf(" Write one of %s, which a session has.%s", and(names), didYouMean(wanted.Name, names))
	return &told
}

// didYouMean is a sentence with the candidate closest to what was typed, or
// nothing where none is close. It starts with a space.
func didYouMean(typed string, candidates []string) string {
	if best := nearest(typed, candidates); best != "" {
		return meant(best)
	}
	return ""
}

// nearest is the candidate closest to what was typed; "" where none is close.
func nearest(typed string, candidates []string) string {
	best, distance := "", 3
	for _, c := range candidates {
		if d := levenshtein.Distance(strings.ToLower(typed), strings.ToLower(c), nil); d < distance && (d < len(c) || d < len(typed) && d == 1) {
			best, distance = c, d
		}
	}
	return best
}

// meant is the sentence that suggests what should have been typed. It starts with
// a space.
func meant(suggestion string) string { return fmt.Sprintf(" Did you mean %q?", suggestion) }

// and lists words: a, b and c.
func and(words []string) string { return list(words, "and") }

// or lists words: a, b or c.
func or(words []string) string { return list(words, "or") }

func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// explain parts an error from outside into what is wrong and what to do about
// it. Some know both; others get the summary given.
func explain(err error, summary string) (string, string) {
	var e interface {
		Summary() string
		Detail() string
	}
	if errors.As(err, &e) {
		return e.Summary(), e.Detail()
	}
	return summary, sentence(err)
}

// sentence is an error's text as a sentence of a longer message.
func sentence(err error) string {
	text := strings.TrimRight(err.Error(), ". \n")
	if text == "" {
		return ""
	}
	if last := text[len(text)-1]; last == '?' || last == '!' {
		return capital(text)
	}
	return capital(text) + "."
}
