package render

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"cosplay/internal/diff"
)

// times writes a tensor ratio: "x4.0"; nothing where the target has none.
func times(ratio float64) string {
	if ratio == 0 || math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "-"
	}
	return fmt.Sprintf("x%.1f", ratio)
}

func mib(n int) string { return strconv.Itoa(n) + " MiB" }

// number writes a figure with no more decimals than it has.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// seconds writes a duration as people tell it.
func seconds(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// signs of the actions; the sign stands also without colour.
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

// sign is set to the right in three columns, so that all signs end alike.
func sign(a diff.Action) line {
	s := signs[a]
	return inked(s.ink, fmt.Sprintf("%3s", s.sign))
}

// group is a run of things that read alike.
type group[T any] struct {
	shown  []T
	hidden []T
}

// alike gathers things with the same key, in the order of the first of each. Of four and more two are shown. With
// verbose they all are, as they come.
func alike[T any](all []T, key func(T) string, verbose bool) []group[T] {
	if verbose {
		return []group[T]{{shown: all}}
	}
	var (
		order []string
		found = map[string][]T{}
	)
	for _, one := range all {
		k := key(one)
		if found[k] == nil {
			order = append(order, k)
		}
		found[k] = append(found[k], one)
	}
	var groups []group[T]
	for _, k := range order {
		g := group[T]{shown: found[k]}
		if len(g.shown) >= 4 {
			g.shown, g.hidden = g.shown[:2], g.shown[2:]
		}
		groups = append(groups, g)
	}
	return groups
}

// more tells how many are not shown.
func (s Style) more(n int) line {
	return inked(dim, fmt.Sprintf("%s %d more like it (--verbose shows all)", s.dots(), n))
}
