package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"
)

// maxAtOnePlace limits the diagnostics for one place of a file: an expression that is wrong in each of 10,000
// instances is one mistake.
const maxAtOnePlace = 3

// reporter collects what is wrong with the files.
type reporter struct {
	files     map[string]*hcl.File
	sources   int                          // bytes of all files so far
	functions map[string]function.Function // those that expressions can call
	diags     hcl.Diagnostics
	reported  map[hcl.Range]hcl.Diagnostics // by subject
	suggested int                           // how often suggest looked for a name
	partial   bool                          // hosts may be missing because of a mistake that has been reported
}

// complain reports a mistake at the exact word that is wrong.
func (r *reporter) complain(at hcl.Range, summary, detail string, args ...any) {
	r.report(mistake(at, summary, detail, args...))
}

// complainIn reports a mistake that is one only because of what is around the wrong word.
func (r *reporter) complainIn(at, context hcl.Range, summary, detail string, args ...any) {
	d := mistake(at, summary, detail, args...)
	d.Context = &context
	r.report(d)
}

func mistake(at hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: &at}
}

func warning(at hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	d := mistake(at, summary, detail, args...)
	d.Severity = hcl.DiagWarning
	return d
}

// wrong reports a value that its attribute does not accept.
func (v value) wrong(summary, detail string, args ...any) {
	d := mistake(v.expr.Range(), summary, detail, args...)
	d.Context, d.Expression, d.EvalContext = &v.attribute.whole, v.expr, v.scope
	v.l.report(d)
}

// place names a line of a file.
func place(r hcl.Range) string { return fmt.Sprintf("%s line %d", r.Filename, r.Start.Line) }

// inOrder corrects the range of a diagnostic for an unexpected end of file: the HCL library gives that range no end.
func inOrder(r *hcl.Range) *hcl.Range {
	if r == nil || r.End.Byte >= r.Start.Byte {
		return r
	}
	return &hcl.Range{Filename: r.Filename, Start: r.Start, End: r.Start}
}

// hasEnough reports whether a place already has enough diagnostics. Callers check it first, because the search for
// suggestions is expensive. The text cannot be compared instead: an invalid index produces a different text in each
// instance.
func (r *reporter) hasEnough(d *hcl.Diagnostic) bool {
	reported := r.reported[*inOrder(d.Subject)]
	wrongAgain := func(other *hcl.Diagnostic) bool {
		return d.Summary == invalidIndex && other.Summary == lower(invalidIndex)
	}
	return len(reported) == maxAtOnePlace || slices.ContainsFunc(reported, wrongAgain)
}

// report adds a diagnostic, from cosplay or the HCL library, unless its place has enough of them.
func (r *reporter) report(d *hcl.Diagnostic) {
	if r.hasEnough(d) {
		return
	}
	d = r.inOurWords(d)
	d.Detail = example().ReplaceAllString(d.Detail, "$1:\n    $2")
	d.Subject, d.Context = inOrder(d.Subject), inOrder(d.Context)
	reported := r.reported[*d.Subject]
	same := func(other *hcl.Diagnostic) bool { return other.Summary == d.Summary && other.Detail == d.Detail }
	if slices.ContainsFunc(reported, same) {
		return
	}
	r.reported[*d.Subject] = append(reported, d)
	r.diags = append(r.diags, d)
}

// example matches what a user can copy, at the end of a text. It gets a line for itself, which no terminal wraps; a single
// word is not wrapped anyway.
var example = pattern.Of(`\b((?:Write|[Aa]dd|Declare|like)\b[a-z ]*): (\S+ .*)$`)

// didYouMean returns a sentence with the candidate closest to what the user typed, or "" if none is close. It starts
// with a space.
func didYouMean(typed string, candidates []string) string {
	if best := nearest(typed, candidates); best != "" {
		return meant(best)
	}
	return ""
}

// suggest is didYouMean for names that the files declare. There can be as many mistakes as names, and each mistake costs a
// look at all names, so that the first mistakes alone get a suggestion: more than are shown.
func (r *reporter) suggest(typed string, candidates func() []string) string {
	if r.suggested == 3*maxMistakes {
		return ""
	}
	r.suggested++
	return didYouMean(typed, candidates())
}

func (l *loader) sessionNames() []string { return sortedKeys(l.blocks) }

// nearest returns the candidate closest to what the user typed; "" if none is close.
func nearest(typed string, candidates []string) string {
	best, distance := "", 3
	for _, c := range candidates {
		if d := slips(strings.ToLower(typed), strings.ToLower(c)); d < distance && (d == 0 || d == 1 && len(c)+len(typed) > 2 || d == 2 && len(c) > 3) {
			best, distance = c, d
		}
	}
	return best
}

// slips returns the number of typing errors between two words. Two swapped letters count as one error.
func slips(a, b string) int {
	letters := func(s string) []rune { return slices.Sorted(slices.Values([]rune(s))) }
	d := levenshtein.Distance(a, b, nil)
	if d == 2 && slices.Equal(letters(a), letters(b)) {
		return 1
	}
	return d
}

// meant returns the sentence that suggests the correct word. It starts with a space.
func meant(suggestion string) string { return fmt.Sprintf(" Did you mean %q?", suggestion) }

func sortedTexts[T any](list []T, text func(T) string) []string {
	return slices.Sorted(slices.Values(prose.Each(list, text)))
}

// maxListed is how many names a sentence can list.
const maxListed = 8

// ringOf draws a ring of names, and of a long one both ends.
func ringOf(names []string) string {
	if len(names) > maxListed {
		names = slices.Concat(names[:maxListed/2], []string{"..."}, names[len(names)-maxListed/2:])
	}
	return strings.Join(names, " -> ")
}

// lower turns a text into the continuation of a sentence; GPU keeps its capitals.
func lower(s string) string {
	if len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// explain splits an error from outside this package into what is wrong and what to do about it. An error that does
// not have both parts gets the given summary.
func explain(err error, summary string) (string, string) {
	var e interface {
		Summary() string
		Detail() string
	}
	if errors.As(err, &e) {
		return e.Summary(), e.Detail()
	}
	return summary, prose.Sentence(err.Error())
}
