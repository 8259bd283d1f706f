package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Variable is a variable block with its final value.
type Variable struct {
	Name        string
	Description string
	Sensitive   bool
	Given       bool      // otherwise the value is the block's default
	Value       cty.Value // without the sensitive mark
}

// variable is one variable block being read.
type variable struct {
	Variable   // without its value
	header     hcl.Range
	constraint cty.Type
	literal    bool               // text that the user types is the value itself, not an expression
	defaults   *typeexpr.Defaults // of optional attributes; nil without any
	standard   *cty.Value         // the block's default; nil if it has none
	nullable   bool
	given      []given // later values override earlier ones
	rules      []rule
	sound      bool // if false, what is wrong with the block has been reported
}

// readVariable registers a variable block, without its value.
func (l *loader) readVariable(b *hcl.Block) {
	name, named := l.declare(b)
	mistakes := len(l.diags)
	said := l.read(b, &variableSchema)
	if !named {
		return
	}
	v := &variable{Variable: Variable{Name: name}, header: b.DefRange, constraint: cty.DynamicPseudoType, literal: true, nullable: true}
	v.sound = mistakes == len(l.diags)
	typed := true
	for i := range said.attributes {
		a := &said.attributes[i]
		ok := l.readVariableAttribute(v, a)
		v.sound = v.sound && ok
		typed = typed && (ok || a.path != "type")
	}
	v.rules = rulesOf(said, "validation")
	if a := said.find("default"); a != nil && typed {
		l.setStandard(v, a)
	}
	l.variables[name] = v
	l.nodes["var."+name] = &node{name: "var." + name, at: b.DefRange, work: func() (cty.Value, bool) { return l.valueOf(v) }}
}

func (l *loader) readVariableAttribute(v *variable, a *attribute) bool {
	switch a.path {
	case "type":
		if quoted, diags := a.expr.Value(nil); !diags.HasErrors() && quoted.Type() == cty.String && native(a.expr) {
			l.complain(a.expr.Range(), "a type has no quotes", "Write: type = %s", quoted.AsString())
			return false
		}
		constraint, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.expr)
		for _, d := range diags {
			l.report(l.aboutType(d))
		}
		v.constraint, v.defaults, v.literal = constraint, defaults, constraint.IsPrimitiveType()
		return !diags.HasErrors()
	case "description":
		text, ok := constant(l, a, value.text)
		v.Description = text
		return ok
	case "sensitive":
		on, ok := constant(l, a, value.flag)
		v.Sensitive = on || !ok // in doubt, the value is hidden
		return ok
	case "nullable":
		on, ok := constant(l, a, value.flag)
		v.nullable = on || !ok
		return ok
	}
	return true
}

var typeKeywords = []string{"string", "number", "bool", "list", "set", "map", "object", "tuple", "any", "optional"}

// otherTypes are the types of other languages, each with the one that it means here.
var otherTypes = map[string]string{"int": "number", "integer": "number", "float": "number", "double": "number", "int64": "number",
	"str": "string", "text": "string", "boolean": "bool", "array": "list(string)", "dict": "map(string)", "hash": "map(string)"}

// aboutType adds a fix to a diagnostic about a type.
func (r *reporter) aboutType(d *hcl.Diagnostic) *hcl.Diagnostic {
	if d.Summary != "Invalid type specification" {
		d.Detail += " Write another default, or another type."
		return d
	}
	word := string(d.Subject.SliceBytes(r.files[d.Subject.Filename].Bytes))
	d.Detail += " Write one of string, number, bool, list(...), set(...), map(...), object({ ... }), tuple([...]) and any."
	if means := otherTypes[strings.ToLower(word)]; means != "" {
		d.Detail = fmt.Sprintf("There is no type %q. Write: %s", word, means)
	} else if !slices.Contains(typeKeywords, word) {
		d.Detail += didYouMean(word, typeKeywords)
	}
	return d
}

// native reports whether an expression is in HCL's native syntax: JSON quotes all expressions.
func native(e hcl.Expression) bool {
	return hcl.UnwrapExpressionUntil(e, func(e hcl.Expression) bool {
		_, is := e.(hclsyntax.Expression)
		return is
	}) != nil
}

// constant reads an attribute that cannot depend on other values; nil if the block leaves it out.
func constant[T any](l *loader, a *attribute, read func(value) (T, bool)) (T, bool) {
	v, ok := l.fixed(a)
	if !ok {
		var none T
		return none, false
	}
	return read(v)
}

// fixed evaluates an expression that must be a literal.
func (l *loader) fixed(a *attribute) (value, bool) {
	if a == nil {
		return value{}, false
	}
	if mentions := a.expr.Variables(); len(mentions) > 0 {
		l.complain(mentions[0].SourceRange(), fmt.Sprintf("%q cannot depend on anything", a.path),
			"It has to be known before anything else. Write the value itself.")
		return value{}, false
	}
	return l.evaluate(*a, l.base)
}

func (l *loader) setStandard(v *variable, a *attribute) {
	read, ok := l.fixed(a)
	if !ok {
		v.sound = false
		return
	}
	if read.IsNull() && !v.nullable {
		read.wrong(fmt.Sprintf("the default of variable %q is null", v.Name), "nullable = false forbids that. Write a value, or leave default out to make the variable required.")
		v.sound = false
		return
	}
	standard, err := v.fit(read.Value)
	if err != nil {
		l.complainIn(v.subject(read.expr.Range()), v.header, fmt.Sprintf("the default of variable %q does not fit its type", v.Name),
			"%s. It has to be %s. Write another default, or another type.", v.explain(err), typeexpr.TypeString(v.constraint))
		v.sound = false
		return
	}
	v.standard = &standard
}

func (v *variable) fit(raw cty.Value) (cty.Value, error) {
	if v.defaults != nil && !raw.IsNull() {
		raw = v.defaults.Apply(raw)
	}
	return convert.Convert(raw, v.constraint)
}

// explain describes what is wrong with a value, without showing a sensitive one.
func (v *variable) explain(err error) string {
	if v.Sensitive {
		return "It cannot be shown what is wrong, since the variable is sensitive"
	}
	text := strings.TrimRight(err.Error(), ". ")
	if path, ok := err.(cty.PathError); ok && len(path.Path) > 0 { //nolint:errorlint // convert returns it as it is
		return pathText(path.Path) + ": " + text // the path in HCL's syntax
	}
	return prose.Capital(text)
}

// subject returns the range for a diagnostic about a variable's value: the value itself, unless it must not be shown.
func (v *variable) subject(at hcl.Range) hcl.Range {
	if v.Sensitive {
		return v.header
	}
	return at
}

func pathText(path cty.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			b.WriteString("." + step.Name)
		case cty.IndexStep:
			if step.Key.Type() == cty.String {
				fmt.Fprintf(&b, "[%q]", step.Key.AsString())
			} else {
				fmt.Fprintf(&b, "[%s]", step.Key.AsBigFloat().Text('f', -1))
			}
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// valueOf returns the value of a variable: the last given one, otherwise its default.
func (l *loader) valueOf(v *variable) (cty.Value, bool) {
	if !v.sound {
		return cty.DynamicVal, false
	}
	result, ok := l.chosen(v)
	if ok && v.Sensitive {
		result = result.Mark(sensitive)
	}
	return result, ok
}

func (l *loader) chosen(v *variable) (cty.Value, bool) {
	if len(v.given) == 0 {
		switch {
		case v.standard != nil:
			return *v.standard, true
		case l.MayMiss:
			l.missed = append(l.missed, v)
			return cty.UnknownVal(v.constraint.WithoutOptionalAttributesDeep()).Mark(reported), true
		case !bytes.Contains(l.notRead, []byte(v.Name)): // otherwise the value may be in an input that was reported as wrong
			l.missing(v)
		}
		return cty.DynamicVal, false
	}
	last := v.given[len(v.given)-1]
	raw, ok := l.raw(v, last)
	if !ok {
		return cty.DynamicVal, false
	}
	fitting, err := v.fit(raw)
	switch {
	case err != nil:
		l.show(v, last)
		l.complain(v.subject(last.at), fmt.Sprintf("variable %q cannot have this value", v.Name),
			"%s. Give it another than that of %s, one of the type %s.", v.explain(err), last.From, typeexpr.TypeString(v.constraint))
		return cty.DynamicVal, false
	case last.From == savedPlan && l.contradicts(v, fitting):
		return cty.DynamicVal, false
	case fitting.IsNull() && !v.nullable && v.standard != nil:
		return *v.standard, true
	case fitting.IsNull() && !v.nullable:
		l.show(v, last)
		l.complain(v.subject(last.at), fmt.Sprintf("variable %q cannot be null", v.Name),
			"It comes from %s, and nullable = false forbids it. Give a value.", last.From)
		return cty.DynamicVal, false
	}
	return fitting, true
}

// contradicts reports a flag that sets a variable to another value than the saved plan has. Values of the environment
// and of files that are read without a flag are those of the next plan.
func (l *loader) contradicts(v *variable, saved cty.Value) bool {
	for _, g := range slices.Backward(v.given) {
		if !g.Flag {
			continue
		}
		raw, ok := l.raw(v, g)
		if !ok {
			return true // it is reported
		}
		if wanted, err := v.fit(raw); err == nil && wanted.RawEquals(saved) {
			return false
		}
		l.show(v, g)
		l.complain(v.subject(g.at), fmt.Sprintf("variable %q has another value in the saved plan", v.Name),
			"apply uses the values with which the plan was made. Leave the flag out, or make another plan with it: cosplay plan --out FILE")
		return true
	}
	return false
}

func (l *loader) missing(v *variable) {
	d := mistake(v.header, fmt.Sprintf("variable %q has no value", v.Name),
		"Nothing gives it one, and it has no default. Give it %s; or add a default to its block.%s", waysFor(v.Name), l.unusedInput(v.Name))
	d.Extra = Missing{Name: v.Name, Description: v.Description, Sensitive: v.Sensitive}
	l.report(d)
}

// waysFor are the ways to give a variable a value.
func waysFor(name string) string {
	return fmt.Sprintf("with --var '%s=...', in a file with --var-file FILE, in cosplay.hclvars, or as %s%s in the environment", name, EnvPrefix, name)
}

// GiveAgain is what a command needs that goes on from a plan which does not contain the values of these variables.
func GiveAgain(names []string) string {
	way := "NAME"
	if len(names) == 1 {
		way = names[0]
	}
	return fmt.Sprintf("the same value of %s again, %s", prose.And(prose.Each(names, func(name string) string { return "var." + name })), waysFor(way))
}

// unusedInput suggests an environment variable with a similar name, or an input that only Terraform reads. It starts
// with a space.
func (l *loader) unusedInput(name string) string {
	if similar := nearest(EnvPrefix+name, l.unmatched); similar != "" {
		return fmt.Sprintf(" %s is in the environment, and nothing is called so. Rename it, if that is what it is for.", similar)
	}
	for _, in := range l.unread {
		if in.Name == "" || in.Name == name {
			return fmt.Sprintf(" %s is there and is not read. %s", in.From, in.Text)
		}
	}
	return ""
}

// Missing is the extra of a diagnostic about a variable without a value. A caller with a terminal can ask the user
// for the value.
type Missing struct {
	Name, Description string
	Sensitive         bool
}

func (l *loader) values() []Variable {
	all := make([]Variable, 0, len(l.variables))
	for _, name := range sortedKeys(l.variables) {
		v := l.variables[name].Variable
		v.Given = len(l.variables[name].given) > 0
		v.Value, _ = l.nodes["var."+name].value.UnmarkDeep()
		all = append(all, v)
	}
	return all
}

func (l *loader) missedNames() []string {
	return sortedTexts(l.missed, func(v *variable) string { return v.Name })
}
