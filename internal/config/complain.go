package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
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

// isToldEnough reports whether a place has been complained about enough; it is asked
// before anything is looked up for another complaint. An index is wrong for each
// instance in other words.
func (l *loader) isToldEnough(d *hcl.Diagnostic) bool {
	told := l.told[*inOrder(d.Subject)]
	wrongAgain := func(other *hcl.Diagnostic) bool {
		return d.Summary == invalidIndex && other.Summary == lower(invalidIndex)
	}
	return len(told) == maxAtOnePlace || slices.ContainsFunc(told, wrongAgain)
}

// report adds a diagnostic, of ours or of the HCL library, unless its place
// has been complained about enough.
func (l *loader) report(d *hcl.Diagnostic) {
	if l.isToldEnough(d) {
		return
	}
	d = l.inOurWords(d)
	d.Subject, d.Context = inOrder(d.Subject), inOrder(d.Context)
	told := l.told[*d.Subject]
	same := func(other *hcl.Diagnostic) bool { return other.Summary == d.Summary && other.Detail == d.Detail }
	if slices.ContainsFunc(told, same) {
		return
	}
	l.told[*d.Subject] = append(told, d)
	l.diags = append(l.diags, d)
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
		if d := slips(strings.ToLower(typed), strings.ToLower(c)); d < distance && (d == 0 || d == 1 && len(c)+len(typed) > 2 || d == 2 && len(c) > 3) {
			best, distance = c, d
		}
	}
	return best
}

// slips is how many slips of the finger make one word of another; two letters that
// changed places are one.
func slips(a, b string) int {
	d := levenshtein.Distance(a, b, nil)
	if d == 2 && sameLetters(a, b) {
		return 1
	}
	return d
}

func sameLetters(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values([]rune(a))), slices.Sorted(slices.Values([]rune(b))))
}

// meant is the sentence that suggests what should have been typed. It starts with
// a space.
func meant(suggestion string) string { return fmt.Sprintf(" Did you mean %q?", suggestion) }

// maxListed is how many names a sentence can list.
const maxListed = 8

// lower is a text as it goes on within a sentence; GPU stays as it is.
func lower(s string) string {
	if len(s) > 1 && s[1] >= 'A' && s[1] <= 'Z' {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

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
	return summary, prose.Sentence(err.Error())
}
