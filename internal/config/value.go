package config

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// value is an evaluated attribute, or one of its elements, with everything that a diagnostic about it needs. Its
// methods that read it report the reason if they fail.
type value struct {
	cty.Value
	l         *loader
	attribute attribute
	expr      hcl.Expression // of the element, if its range is known
	scope     *hcl.EvalContext
}

// name returns the value's name in diagnostics.
func (v value) name() string { return strconv.Quote(v.attribute.path) }

// kind returns the usual name of the value's type.
func (v value) kind() string {
	switch t := v.Type(); {
	case t == cty.String:
		return "a text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case isList(t):
		return "a list"
	case isMap(t):
		return "a map"
	}
	return "a " + v.Type().FriendlyName()
}

func isList(t cty.Type) bool { return t.IsTupleType() || t.IsListType() || t.IsSetType() }

func isMap(t cty.Type) bool { return t.IsObjectType() || t.IsMapType() }

// maxExponent bounds numbers, as a power of two. Writing the digits of a larger number takes minutes.
const maxExponent = 1024

// isOpen reports whether a value is unknown, because of a mistake that has been reported or because a variable has no
// value.
func (v value) isOpen() bool {
	return v.HasMark(reported) || !v.IsKnown() && (v.l.MayMiss || v.l.diags.HasErrors())
}

// typed checks that a value exists and has a suitable type. Of an unknown value it checks the type only.
func (v value) typed(fits bool, summary, detail string, args ...any) bool {
	open := v.isOpen()
	switch {
	case !open && !v.given():
		return false
	case !fits && v.Type() != cty.DynamicPseudoType:
		v.wrong(summary, detail, args...)
		return false
	}
	return !open
}

// leftOut reports whether an optional value is null. As in Terraform, null counts as left out.
func (v value) leftOut() bool {
	s := v.attribute.schema
	return s != nil && !s.Required && v.Value.IsNull() && !v.IsMarked()
}

func isOneOf(t cty.Type, types ...cty.Type) bool { return slices.Contains(types, t) }

// given checks that a value exists and can be serialized.
func (v value) given() bool {
	switch {
	case v.isOpen():
	case v.IsMarked():
		v.wrong(v.name()+" would show a sensitive value", "Plans and the state show it. A sensitive value can be used in env, where it is kept hidden; or wrap it in nonsensitive(...) if it may be shown.")
	case v.IsNull() && v.attribute.schema != nil && v.attribute.schema.Required:
		v.wrong(v.name()+" is null", "It cannot be left out. Write a value, like %s.", v.attribute.schema.Example)
	case v.IsNull():
		v.wrong(v.name()+" is null", "There is no value here. Write one, or leave it out.")
	case !v.IsKnown():
		v.wrong(v.name()+" is not known", "The value is needed before anything is made. Write one that does not depend on what is made later.")
	case v.Type() == cty.Number && isExtreme(v.AsBigFloat()):
		v.wrong(v.name()+" is beyond all measure", "The number is infinite, or has hundreds of digits. Write one that can be counted with.")
	default:
		return true
	}
	return false
}

func isExtreme(n *big.Float) bool {
	exponent := n.MantExp(nil)
	return n.IsInf() || exponent > maxExponent || exponent < -maxExponent
}

// text reads a string; a number counts as its digits.
func (v value) text() (string, bool) {
	if !v.typed(isOneOf(v.Type(), cty.String, cty.Number), v.name()+" must be a text", "This is %s. Write a text in quotes.", v.kind()) {
		return "", false
	}
	return v.clean()
}

// word reads a string, number or boolean as the text that a program gets.
func (v value) word() (string, bool) {
	if !v.typed(v.Type().IsPrimitiveType(), fmt.Sprintf("each value in %s must be a text", v.name()), "This is %s. Write a text in quotes, a number, true or false.", v.kind()) {
		return "", false
	}
	return v.clean()
}

func (v value) clean() (string, bool) {
	if n, ok := smallNumber(v); ok {
		return strconv.FormatInt(n, 10), true
	}
	converted, _ := convert.Convert(v.Value, cty.String) // every text, number and boolean is a text as well
	s := converted.AsString()
	if strings.ContainsRune(s, 0) {
		v.wrong(v.name()+" contains a NUL character", "No path, name or argument of a program can hold the character \\u0000. Remove it.")
		return "", false
	}
	return s, true
}

// smallNumber returns an integer of ordinary size without the expensive conversion of big numbers.
func smallNumber(v value) (int64, bool) {
	if v.Type() != cty.Number {
		return 0, false
	}
	n, accuracy := v.AsBigFloat().Int64()
	return n, accuracy == big.Exact
}

func (v value) flag() (bool, bool) {
	summary, detail := v.name()+" must be true or false", fmt.Sprintf("This is %s. Write true or false, without quotes.", v.kind())
	if !v.typed(isOneOf(v.Type(), cty.Bool, cty.String), summary, "%s", detail) {
		return false, false
	}
	converted, err := convert.Convert(v.Value, cty.Bool)
	if err != nil {
		v.wrong(summary, "%s", detail)
		return false, false
	}
	return converted.True(), true
}

// whole reads an integer between two bounds; what describes it.
func (v value) whole(low, high int, what string) (int, bool) {
	summary := v.name() + " must be a whole number"
	advice := fmt.Sprintf("Write %s from %d to %d.", what, low, high)
	n, ok := v.number(summary, advice)
	if ok && !n.IsInt() {
		v.wrong(summary, "%s is not one. %s", n.Text('g', 10), advice)
		return 0, false
	}
	if !ok || !v.isBetween(n, float64(low), float64(high), advice) {
		return 0, false
	}
	i, _ := n.Int64()
	return int(i), true
}

// between reads a number between two bounds.
func (v value) between(low, high float64, advice string) (float64, bool) {
	n, ok := v.number(v.name()+" must be a number", advice)
	if !ok || !v.isBetween(n, low, high, advice) {
		return 0, false
	}
	f, _ := n.Float64()
	return f, true
}

func (v value) number(summary, advice string) (*big.Float, bool) {
	if !v.typed(isOneOf(v.Type(), cty.Number, cty.String), summary, "This is %s. %s", v.kind(), advice) {
		return nil, false
	}
	converted, err := convert.Convert(v.Value, cty.Number)
	if err != nil {
		v.wrong(summary, "This is %s. %s", v.kind(), advice)
		return nil, false
	}
	if v.Value = converted; !v.given() {
		return nil, false
	}
	return converted.AsBigFloat(), true
}

func (v value) isBetween(n *big.Float, low, high float64, advice string) bool {
	switch {
	case n.Cmp(big.NewFloat(low)) < 0:
		v.wrong(v.name()+" is too small", "%s is below %s. %s", n.Text('g', 10), plain(low), advice)
	case n.Cmp(big.NewFloat(high)) > 0:
		v.wrong(v.name()+" is too large", "%s is above %s. %s", n.Text('g', 10), plain(high), advice)
	default:
		return true
	}
	return false
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

var percentage = pattern.Of(`^([+-]?\d+(?:\.\d+)?)\s*%$`)

// share reads an error or a tolerance.
func (v value) share() (float64, bool) {
	share, ok := v.part()
	if ok && share < 0 {
		v.wrong(v.name()+" is below zero", "An error is never below zero. Write 0 or more, like \"10%%\".")
		return 0, false
	}
	return share, ok
}

// part reads "10%" or 0.1. It refuses a number above 1, which is usually a forgotten percent sign.
func (v value) part() (float64, bool) {
	summary := v.name() + " is not a percentage"
	if !v.typed(isOneOf(v.Type(), cty.Number, cty.String), summary, "This is %s. Write it like \"10%%\" or 0.1.", v.kind()) {
		return 0, false
	}
	bad := func(detail string, args ...any) (float64, bool) {
		v.wrong(summary, detail, args...)
		return 0, false
	}
	if v.Type() == cty.Number {
		share, _ := v.AsBigFloat().Float64()
		if typed := v.AsBigFloat().Text('g', 10); share > 1 {
			return bad("As a plain number 1 is 100%%, so %s would be more. Did you mean \"%s%%\"?", typed, typed)
		}
		return share, true
	}
	typed := v.AsString()
	m := percentage().FindStringSubmatch(typed)
	if m == nil {
		return bad("%q has no percent sign at its end, or no number before it. Write it like \"10%%\" or 0.1.", typed)
	}
	percent, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return bad("%q is out of all proportion. Write it like \"10%%\" or 0.1.", typed)
	}
	return percent / 100, true
}

func (v value) elements(sample string) ([]value, bool) {
	if !v.typed(isList(v.Type()), v.name()+" must be a list", "This is %s. Write a list, like %s.", v.kind(), sample) {
		return nil, false
	}
	written, _ := hcl.ExprList(v.expr)
	all := make([]value, 0, v.LengthInt())
	for _, one := range v.Elements() {
		element := v
		element.Value = one
		if len(written) == v.LengthInt() {
			element.expr = written[len(all)]
		}
		all = append(all, element)
	}
	return all, true
}

// oneOf reads one of the valid words of an attribute.
func oneOf[T ~string](v value) (T, bool) {
	words := v.attribute.schema.words()
	typed, ok := v.text()
	if !ok {
		return "", false
	}
	if slices.Contains(words, typed) {
		return T(typed), true
	}
	v.wrong(fmt.Sprintf("%s cannot be %q", v.name(), typed), "Write %s.%s", prose.Or(prose.Quoted(words)), didYouMean(typed, words))
	return "", false
}

// sharing reads a kind of sharing; auto is the zero one.
func (v value) sharing() (resource.Sharing, bool) {
	kind, ok := oneOf[resource.Sharing](v)
	if kind == "auto" {
		kind = resource.SharingAuto
	}
	return kind, ok
}

// profileForm is that of the profiles of MIG slices, with or without a slot: 1g.18gb, 1g.18gb+me, 1c.2g.35gb, 1g.18gb@4.
var profileForm = pattern.Of(`^([1-9]c\.)?[1-9]g\.[1-9][0-9]*gb([+-][a-z.+-]+)?(@(0|[1-9][0-9]?))?$`)

// profile reads the profile of a MIG slice and its slot. Whether a GPU has them is known only where the GPU is.
func (v value) profile() (string, bool) {
	typed, ok := v.text()
	if !ok {
		return "", false
	}
	name := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(typed), "MIG "))
	if !profileForm().MatchString(name) {
		v.wrong(fmt.Sprintf("%s cannot be %q", v.name(), typed), "Write the name of a profile, like \"1g.18gb\" or \"1c.2g.35gb\", or one with a slot, like \"1g.18gb@4\". nvidia-smi mig -lgip, -lcip and -lgipp list them.")
		return "", false
	}
	return name, true
}

// fraction reads a part of a GPU.
func (v value) fraction() (float64, bool) {
	part, ok := v.part()
	if ok && (part <= 0 || part > 1) {
		v.wrong(fmt.Sprintf("%s cannot be %g", v.name(), part), "Write a part of the GPU, like 0.33 or \"33%%\".")
		return 0, false
	}
	return part, ok
}

// pair is one entry of a map: both sides as values, so that diagnostics can be about either.
type pair struct{ key, value value }

// pairs reads a map, sorted by key; sample is an example for the diagnostic.
func (v value) pairs(sample string) ([]pair, bool) {
	if !v.typed(isMap(v.Type()), v.name()+" must be a map", "This is %s. Write a map, like %s.", v.kind(), sample) {
		return nil, false
	}
	written := writtenPairs(v)
	all := make([]pair, 0, v.LengthInt())
	for key, element := range v.Elements() {
		p := pair{key: v, value: v}
		p.key.Value, p.value.Value = key, element
		at := written[p.key.AsString()]
		if len(at) > 0 {
			last := at[len(at)-1] // the last one counts
			p.key.expr, p.value.expr = last.Key, last.Value
		}
		if len(at) > 1 {
			p.key.wrong(fmt.Sprintf("%s sets %q twice", v.name(), p.key.AsString()),
				"It is set at line %d as well. Keep one of the two.", at[0].Key.Range().Start.Line)
		}
		all = append(all, p)
	}
	return all, true
}

// writtenPairs returns the source ranges of a map's entries, by key; nil if the map is not a literal.
func writtenPairs(v value) map[string][]hcl.KeyValuePair {
	written, _ := hcl.ExprMap(v.expr)
	at := make(map[string][]hcl.KeyValuePair, len(written))
	for _, p := range written {
		key, diags := p.Key.Value(v.scope)
		key, _ = key.UnmarkDeep()
		if diags.HasErrors() || !key.IsWhollyKnown() || key.IsNull() {
			continue
		}
		if text, err := convert.Convert(key, cty.String); err == nil {
			at[text.AsString()] = append(at[text.AsString()], p)
		}
	}
	return at
}
