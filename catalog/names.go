package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// UnknownError reports that the catalog has no GPU of that name.
type UnknownError struct {
	Kind       string   // "target" or "host"
	Typed      string   // the name that was looked up
	Candidates []string // keys with the same beginning, if there are several
	Suggestion string   // the key or alias that is closest to it; "" if none is close
	Keys       []string // all keys of the catalog
}

// manyCandidates is the number of candidates from which a list is too long to read.
const manyCandidates = 9

func (e *UnknownError) Error() string { return e.Summary() + ". " + e.Detail() }

// Summary describes the error in a few words, for the head of a diagnostic.
func (e *UnknownError) Summary() string {
	what := "unknown"
	if e.Candidates != nil {
		what = "ambiguous"
	}
	if e.Kind == "host" {
		return fmt.Sprintf("%s GPU to run on %q", what, e.Typed)
	}
	return fmt.Sprintf("%s %s %q", what, e.Kind, e.Typed)
}

// Detail states the fix.
func (e *UnknownError) Detail() string {
	if e.Candidates != nil {
		return "Say which one: " + strings.Join(e.Candidates, ", ") + "."
	}
	detail := "The catalog has no such GPU."
	if e.Suggestion != "" {
		detail += fmt.Sprintf(" Did you mean %q?", e.Suggestion)
	}
	if e.Kind == "host" {
		return detail + " It has " + strings.Join(e.Keys, ", ") + "."
	}
	return detail + fmt.Sprintf(" `cosplay ls` lists all %d.", len(e.Keys))
}

var makers = []string{"nvidia", "geforce", "tesla", "quadro", "rtx", "gtx"}

// plain reduces a name to the part that distinguishes GPUs: "RTX_2060 12 GB" and "rtx-2060-12g" both become
// "206012g". Every command reduces all names of the catalog, so it uses no regular expression.
func plain(name string) string {
	name = strings.Map(letterOrDigit, strings.ToLower(name))
	for i := 1; i < len(name); i++ {
		if name[i] != 'g' || name[i-1] < '0' || name[i-1] > '9' {
			continue
		}
		for _, bytes := range []string{"ib", "b"} {
			if rest, is := strings.CutPrefix(name[i+1:], bytes); is {
				name = name[:i+1] + rest
				break
			}
		}
	}
	for _, word := range makers {
		name = strings.TrimPrefix(name, word)
	}
	return name
}

func letterOrDigit(r rune) rune {
	if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
		return r
	}
	return -1
}

// unknown returns the error for a name that matches no entry.
func (t *table[T]) unknown(typed string) *UnknownError {
	err := &UnknownError{Kind: t.kind, Typed: typed}
	form := plain(typed)
	var begin []string
	for _, e := range t.entries {
		err.Keys = append(err.Keys, e.key)
		if form != "" && strings.HasPrefix(plain(e.key), form) {
			begin = append(begin, e.key)
		}
	}
	switch {
	case len(begin) == 1:
		err.Suggestion = begin[0]
	case len(begin) > 1 && len(begin) < manyCandidates:
		err.Candidates = begin
	default:
		err.Suggestion = t.nearest(form)
	}
	return err
}

// nearest finds the key or alias with the smallest edit distance, at most half of its letters. Among several it
// prefers one with the same letters: "2600" means "2060".
func (t *table[T]) nearest(form string) string {
	type candidate struct {
		name     string
		distance int
		letters  int
	}
	var near []candidate
	for _, e := range t.entries {
		for _, name := range append([]string{e.key}, e.aliases...) {
			other := plain(name)
			c := candidate{name: name, distance: levenshtein.Distance(form, other, nil)}
			if 2*c.distance > len(form) {
				continue
			}
			c.letters = levenshtein.Distance(sorted(form), sorted(other), nil)
			near = append(near, c)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return slices.MinFunc(near, func(a, b candidate) int {
		return cmp.Or(a.distance-b.distance, a.letters-b.letters, len(a.name)-len(b.name))
	}).name
}

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}
