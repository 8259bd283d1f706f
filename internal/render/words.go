package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// given is the text of a value; "" if it is zero.
func given[T comparable](value T, words string) string {
	if value == *new(T) {
		return ""
	}
	return words
}

// either is one of two values.
func either[T any](first bool, one, other T) T {
	if first {
		return one
	}
	return other
}

// present are the texts that are not empty.
func present(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// valueWords writes a value that names no GPU of a host.
func valueWords(v diff.Value) string { return words.Value(v, resource.Live{}) }

// times writes a tensor ratio: "x4.0"; nothing where the target has none.
func times(ratio float64) string {
	if ratio == 0 || math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "-"
	}
	return fmt.Sprintf("x%.1f", ratio)
}

// bytesMiB is a figure in whole MiB, rounded up.
func bytesMiB(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

func mib(n int) string { return strconv.Itoa(n) + " MiB" }

// number writes a figure with no more decimals than it has.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// seconds writes a duration with the units that fit its length.
func seconds(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// signs of the actions, which a screen without colour has too.
var signs = map[diff.Action]struct {
	sign string
	ink  ink
}{
	diff.NoOp:    {"", dim},
	diff.Create:  {"+", added},
	diff.Update:  {"~", changed},
	diff.Replace: {"-/+", replaced},
	diff.Delete:  {"-", removed},
	diff.Move:    {">", changed},
	diff.Import:  {"<", added},
	diff.Forget:  {".", replaced},
}

// sign is right-aligned in three columns, so that all signs end alike.
func sign(a diff.Action) line { return inked(signs[a].ink, fmt.Sprintf("%3s", signs[a].sign)) }

// count is the number of things for which is returns true.
func count[T any](all []T, is func(T) bool) int { return len(prose.Only(all, is)) }

// grouped gathers things with the same key, in the order of the first of each.
func grouped[T any](all []T, key func(T) string) [][]T {
	var groups prose.Groups[T]
	for _, one := range all {
		groups.Add(key(one), one)
	}
	return each(groups.Texts, func(text string) []T { return groups.Of[text] })
}

// group has things that read alike, and how many of them a screen shows.
type group[T any] struct {
	shown  []T
	hidden []T
}

// alike groups things that read alike. Of four and more it shows two; with verbose it shows all, in their order.
func alike[T any](all []T, key func(T) string, verbose bool) []group[T] {
	if verbose {
		return []group[T]{{shown: all}}
	}
	return each(grouped(all, key), func(g []T) group[T] {
		if len(g) >= 4 {
			return group[T]{shown: g[:2], hidden: g[2:]}
		}
		return group[T]{shown: g}
	})
}

// more states how many things are not shown.
func (s Style) more(n int) line {
	return inked(dim, fmt.Sprintf("%s %d more like it (--verbose shows all)", s.dots(), n))
}
