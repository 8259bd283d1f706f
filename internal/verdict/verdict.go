// Package verdict says what a session's use of memory means: which GPU would
// have been enough for it, and which would not. Pure.
package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Verdict is about one session. GPUs are named by the catalog's keys in its JSON.
type Verdict struct {
	resource.Use
	Own        resource.Target  // what the session passed for
	Fits       *resource.Target // a smallest one that has room for the peak; nil when memory ran out
	DoesNotFit *resource.Target // a largest one that has not; nil where even the smallest would do
	NextLarger *resource.Target // with memory that ran out: a smallest one with more; nil where there is none
}

// Of judges what a session used that passed for own. all are the GPUs to choose
// from: of those that differ in nothing else, the one that is most like own. A
// session that used nothing has no verdict.
func Of(use resource.Use, own resource.Target, all []resource.Target) (v Verdict, used bool) {
	if use == (resource.Use{}) {
		return Verdict{}, false
	}
	v = Verdict{Use: use, Own: own}
	all = alike(own, all)
	if use.RanOut() > 0 {
		v.DoesNotFit = &own
		v.NextLarger = nearest(own, smallest(all, func(t resource.Target) bool { return size(t) > size(own) }))
		return v, true
	}
	fitting := smallest(append(all, own), func(t resource.Target) bool { return t.MemoryMiB >= use.PeakMiB })
	v.Fits = nearest(own, fitting)
	if v.Fits == nil { // the peak was reached before the session became smaller
		v.DoesNotFit = &own
		return v, true
	}
	v.DoesNotFit = nearest(own, largest(all, func(t resource.Target) bool { return t.MemoryMiB < use.PeakMiB && size(t) < size(*v.Fits) }))
	return v, true
}

// size is a target's memory in GiB, as one speaks of it: 8188 MiB are 8.
func size(t resource.Target) int { return int(math.Round(float64(t.MemoryMiB) / 1024)) }

// alike are the cards for games, or the others, whichever own is among.
func alike(own resource.Target, all []resource.Target) []resource.Target {
	return slices.DeleteFunc(slices.Clone(all), func(t resource.Target) bool { return forGames(t) != forGames(own) })
}

func forGames(t resource.Target) bool {
	return strings.Contains(t.Name, "GeForce") || strings.Contains(t.Name, "TITAN")
}

func smallest(all []resource.Target, which func(resource.Target) bool) []resource.Target {
	return ofOneSize(all, which, func(a, b resource.Target) int { return size(a) - size(b) })
}

func largest(all []resource.Target, which func(resource.Target) bool) []resource.Target {
	return ofOneSize(all, which, func(a, b resource.Target) int { return size(b) - size(a) })
}

// ofOneSize are the first of those that are wanted, and all of their size.
func ofOneSize(all []resource.Target, which func(resource.Target) bool, order func(a, b resource.Target) int) []resource.Target {
	all = slices.DeleteFunc(slices.Clone(all), func(t resource.Target) bool { return !which(t) })
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, order)
	return slices.DeleteFunc(all, func(t resource.Target) bool { return size(t) != size(first) })
}

// nearest is own, or the one most like it in speed and age; nil of none.
func nearest(own resource.Target, all []resource.Target) *resource.Target {
	if len(all) == 0 {
		return nil
	}
	if slices.ContainsFunc(all, func(t resource.Target) bool { return t.Key == own.Key }) {
		return &own
	}
	found := slices.MinFunc(all, func(a, b resource.Target) int {
		return cmp.Or(cmp.Compare(distance(own, a), distance(own, b)), cmp.Compare(a.Key, b.Key))
	})
	return &found
}

// distance counts ten years as much as being 2.7 times as fast.
func distance(a, b resource.Target) float64 {
	return math.Abs(math.Log(a.FP32TFLOPS/b.FP32TFLOPS)) + math.Abs(float64(a.Year-b.Year))/10
}

// String is the verdict in words that follow the session's name.
func (v Verdict) String() string {
	if v.RanOut() > 0 {
		return v.ranOut()
	}
	peaked := fmt.Sprintf("peaked at %d of %d MiB", v.PeakMiB, v.Own.MemoryMiB)
	if v.Overcome > 0 {
		peaked += fmt.Sprintf(" (out of memory %s, and got over it)", times(v.Overcome))
	}
	peaked += "; "
	not := ""
	if v.DoesNotFit != nil {
		not = ", not " + named(*v.DoesNotFit)
	}
	switch {
	case v.Fits == nil:
		return peaked + "no GPU of its kind has that much"
	case v.Fits.Key == v.Own.Key:
		return peaked + "would fit " + resource.WithArticle(v.Own.ShortName()) + " or larger" + not
	case v.Fits.MemoryMiB > v.Own.MemoryMiB:
		return peaked + "would fit " + named(*v.Fits) + " or larger" + not
	}
	return peaked + "would fit " + named(*v.Fits) + " too" + not
}

func (v Verdict) ranOut() string {
	words := fmt.Sprintf("ran out of memory %s: %d MiB are not enough", times(v.RanOut()), v.Own.MemoryMiB)
	if v.NextLarger == nil {
		return words + ", and no GPU of its kind has more"
	}
	return words + "; " + named(*v.NextLarger) + " is the next larger"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// named is a target with its memory, for there are several of one name.
func named(t resource.Target) string {
	return fmt.Sprintf("%s (%d MiB)", resource.WithArticle(t.ShortName()), t.MemoryMiB)
}
