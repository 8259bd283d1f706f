package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// EnvPrefix precedes a variable's name in the environment.
const EnvPrefix = "COSPLAY_VAR_"

// Input gives values to variables: a text or a value for one variable, or a file for several.
type Input struct {
	From string // the source, for messages: "--var", "the environment", a file's name

	Name string // of the variable; "" for a file
	Text string // as typed
	File []byte // a file's contents, in HCL or, by its name, in JSON

	Value *cty.Value // instead of Text

	Flag bool // the user set it for this command

	MayBeUnknown bool // a name that no block declares is not reported as a mistake

	// Unread marks an input that cosplay does not read. If a variable has no value, this input may be what the user
	// meant to set, and Text says what to do.
	Unread bool
}

// given is one value for a variable.
type given struct {
	Input // with Text or Value, unless a file has the value
	at    hcl.Range
	expr  hcl.Expression // the expression, if a file has the value
}

// typed reports whether the value is text from the command line or the environment, which the variable's type
// interprets.
func (g given) typed() bool { return g.expr == nil && g.Value == nil }

// takeInputs assigns the inputs to the variables; later ones override earlier ones.
func (l *loader) takeInputs() {
	for _, in := range l.Inputs {
		switch {
		case in.Unread:
			l.unread = append(l.unread, in)
		case in.Name == "" && in.File != nil:
			l.takeFile(in)
		case l.variables[in.Name] != nil:
			v := l.variables[in.Name]
			v.given = append(v.given, given{Input: in, at: inputRange(in.From, in.Text)})
		case !in.MayBeUnknown:
			l.files[in.From] = &hcl.File{Bytes: []byte(in.Name)} // the value may be a secret
			l.complain(inputRange(in.From, in.Name), fmt.Sprintf("unknown variable %q", in.Name), "It gets a value, and no block declares it.%s Add: variable %q {}",
				l.variableMeant(in.Name), in.Name)
		default:
			l.unmatched = append(l.unmatched, in.From)
		}
	}
}

// variableMeant suggests the variable that the user may have meant or, if none is close, lists all variables. It
// starts with a space.
func (l *loader) variableMeant(typed string) string {
	names := sortedKeys(l.variables)
	if suggestion := didYouMean(typed, names); suggestion != "" || len(names) == 0 || len(names) > maxListed {
		return suggestion
	}
	return fmt.Sprintf(" Declared: %s.", prose.And(names))
}

// inputRange returns the source range of what the user typed, which has its own file in diagnostics.
func inputRange(from, typed string) hcl.Range {
	end := hcl.Pos{Line: 1, Column: len(typed) + 1, Byte: len(typed)}
	return hcl.Range{Filename: from, Start: hcl.InitialPos, End: end}
}

// show registers a typed input as a source file, so that diagnostics can show it.
func (r *reporter) show(v *variable, g given) {
	if g.typed() && !v.Sensitive {
		r.files[g.at.Filename] = &hcl.File{Bytes: []byte(g.Text)}
	}
}

func (l *loader) takeFile(in Input) {
	mistakes := len(l.diags)
	all := l.parseBody(in.From, in.File)
	if len(l.diags) > mistakes {
		l.coverLines(in.From)
		l.notRead = append(l.notRead, in.File...)
	}
	if all == nil {
		return
	}
	attributes, blocks := all.read(&l.reporter, &Block{Free: "a value"})
	for _, b := range blocks {
		l.complain(b.TypeRange, fmt.Sprintf("%q cannot be in a file of values", b.Type),
			"Put blocks into a file that ends with .hcl. A file of values has lines like: image = \"cosplay:latest\"")
	}
	for _, a := range attributes {
		v := l.variables[a.Name]
		if v != nil {
			v.given = append(v.given, given{Input: in, at: a.Expr.Range(), expr: a.Expr})
			continue
		}
		l.cover(in.From, a.Expr.Range().Start.Byte, a.Expr.Range().End.Byte) // it may be a secret
		l.report(warning(a.NameRange, fmt.Sprintf("unknown variable %q", a.Name),
			"It gets a value here, and no block declares it.%s Remove the line, or add: variable %q {}", l.variableMeant(a.Name), a.Name))
	}
}

// coverLines hides the values in a file of values that has a syntax error, because one may be sensitive. It leaves
// the lines of variables that are not sensitive.
func (l *loader) coverLines(name string) {
	start := 0
	for line := range bytes.Lines(l.files[name].Bytes) {
		if !l.mayShow(string(line)) {
			behind := bytes.IndexAny(line, "=:") + 1
			l.cover(name, start+behind, start+len(line))
		}
		start += len(line)
	}
}

// mayShow reports whether a line of a file of values belongs to a variable that is not sensitive.
func (l *loader) mayShow(line string) bool {
	start, _, _ := strings.Cut(strings.TrimSpace(line), "=")
	about := l.variables[strings.TrimSpace(start)]
	for _, v := range l.variables {
		if v.Sensitive && strings.Contains(line, v.Name) {
			return false
		}
	}
	return about != nil || strings.TrimSpace(line) == ""
}

// cover hides a part of a file from diagnostics.
func (r *reporter) cover(name string, from, to int) {
	shown := *r.files[name]
	shown.Bytes = bytes.Clone(shown.Bytes)
	for i := from; i < to; i++ {
		if c := shown.Bytes[i]; c != '\n' && c != '\r' {
			shown.Bytes[i] = '*'
		}
	}
	r.files[name] = &shown
}

// raw returns a given value before conversion to its variable's type.
func (l *loader) raw(v *variable, g given) (cty.Value, bool) {
	asGiven := g
	switch {
	case g.Value != nil:
		return *g.Value, true
	case g.typed() && v.literal:
		return cty.StringVal(g.Text), true
	case g.typed():
		expr, diags := parseExpression(g.Text, g.at.Filename)
		if diags.HasErrors() {
			l.show(v, asGiven)
			l.complain(v.subject(*inOrder(diags[0].Subject)), fmt.Sprintf("the value of variable %q cannot be read", v.Name),
				"%s. A value that is no single text or number is written as in a file, like: %s", v.explain(errors.New(diags[0].Detail)), `'["a", "b"]'`)
			return cty.DynamicVal, false
		}
		g.expr = expr
	}
	if mentions := g.expr.Variables(); len(mentions) > 0 {
		l.show(v, asGiven)
		l.complain(v.subject(mentions[0].SourceRange()), fmt.Sprintf("the value of variable %q cannot depend on anything", v.Name),
			"A value that is passed in cannot be an expression. Put text in quotes.")
		return cty.DynamicVal, false
	}
	result, diags := l.budget.within(g.expr, l.base)
	for _, d := range diags {
		l.show(v, asGiven)
		if v.Sensitive {
			d.Subject, d.Detail, d.Expression = &v.header, "Details are not shown, because the variable is sensitive.", nil
		}
		l.report(d)
	}
	return result, !diags.HasErrors()
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
