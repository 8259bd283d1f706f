// Package prose builds the sentences that cosplay prints: capitals and full stops, counts and lists. Pure.
package prose

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Capital begins a sentence: it turns the first letter of a text into a capital.
func Capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// Stop ends a text with a full stop, unless it ends like a sentence already.
func Stop(s string) string {
	if s = strings.TrimSpace(s); s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// Sentence is a text with a capital at its beginning and a full stop at its end.
func Sentence(s string) string { return Capital(Stop(s)) }

// Count writes "1 GPU", "7 GPUs".
func Count(n int, thing string) string {
	many := thing + "s"
	if strings.HasSuffix(thing, "s") {
		many = thing + "es"
	}
	return Plural(n, thing, many)
}

// Plural writes a number with the words that follow it: "1 session stays", "2 sessions stay".
func Plural(n int, one, many string) string { return fmt.Sprintf("%d %s", n, Choose(n, one, many)) }

// Choose is one for the number 1 and many for any other.
func Choose(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// And lists words: "a, b and c".
func And(words []string) string { return list(words, " and ") }

// Or lists words: "a, b or c".
func Or(words []string) string { return list(words, " or ") }

func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + last + words[end]
}

// Few are the first words of a list, with the number of the others: "a", "b", "3 more".
func Few(words []string, most int) []string {
	if len(words) <= most {
		return words
	}
	return append(slices.Clone(words[:most]), fmt.Sprintf("%d more", len(words)-most))
}

// Numbered are the different words of a list, each with how often it occurs: "2 x H200".
func Numbered(words []string) []string {
	var groups Groups[string]
	for _, word := range words {
		groups.Add(word, word)
	}
	return Each(groups.Texts, func(word string) string { return fmt.Sprintf("%d x %s", len(groups.Of[word]), word) })
}

// Quoted puts each word in quotes.
func Quoted(words []string) []string { return Each(words, strconv.Quote) }

// Each returns the result of a function for each element of a list.
func Each[T, R any](list []T, of func(T) R) []R {
	var all []R
	for _, element := range list {
		all = append(all, of(element))
	}
	return all
}

// Only returns the elements of a list that a function accepts.
func Only[T any](list []T, accepts func(T) bool) []T {
	var all []T
	for _, element := range list {
		if accepts(element) {
			all = append(all, element)
		}
	}
	return all
}

// Groups collects values by text, in the order in which the texts first occur.
type Groups[T any] struct {
	Texts []string
	Of    map[string][]T
}

// Add adds a value to the group of a text.
func (g *Groups[T]) Add(text string, value T) {
	if g.Of == nil {
		g.Of = map[string][]T{}
	}
	if g.Of[text] == nil {
		g.Texts = append(g.Texts, text)
	}
	g.Of[text] = append(g.Of[text], value)
}

// Advice is an error in two parts: what happened, and what the user can do about it.
type Advice struct {
	What  string `json:"what,omitempty"`
	Fix   string `json:"fix,omitempty"` // an imperative without a full stop; "" if nothing helps
	Cause error  `json:"-"`
}

// Error is "WHAT. Fix: FIX".
func (a Advice) Error() string {
	if a.Fix == "" {
		return a.What
	}
	return strings.TrimSpace(Stop(a.What) + " Fix: " + a.Fix)
}

// Unwrap returns the cause; nil if it is not known.
func (a Advice) Unwrap() error { return a.Cause }

// AdviceOf parts the text of an error that ends with advice, after whatever was put before it. All of another error's
// text is what happened.
func AdviceOf(err error) Advice {
	a := Advice{What: err.Error(), Cause: err}
	if known, is := errors.AsType[Advice](err); is && known.Fix != "" {
		if what, ends := strings.CutSuffix(strings.TrimSuffix(a.What, "."), "Fix: "+known.Fix); ends {
			a.What, a.Fix = strings.TrimSpace(what), known.Fix
		}
	}
	return a
}
