// Package verdict interprets the memory use of a session: which GPU would have been large enough, and which would
// not. It is a pure function of values.
package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Verdict is the result for one session. Its JSON names GPUs by their catalog keys.
type Verdict struct {
	resource.Use
	Own        resource.Target  // the session's target
	Fits       *resource.Target // a smallest GPU with room for the peak; nil if memory ran out
	FitsAlike  *resource.Target // the same of the GPUs for the use of the target; nil if they have none as small
	DoesNotFit *resource.Target // a largest GPU that is too small; nil if none is, or it is not known
	Less       bool             // a GPU without room for the peak may be large enough
	NextLarger *resource.Target // if memory ran out: a smallest GPU with what is known to be needed; nil if there is none
}

// Of returns the verdict on the use of a session with target own. all are the GPUs to choose from; of equally
// suitable ones, Of chooses the one that is most similar to own. A session that used no memory has no verdict.
func Of(use resource.Use, own resource.Target, all []resource.Target) (v Verdict, used bool) {
	if use.IsZero() {
		return Verdict{}, false
	}
	v = Verdict{Use: use, Own: own}
	if use.RanOut() > 0 {
		v.DoesNotFit = &own
		v.NextLarger = nearest(own, smallest(all, func(t resource.Target) bool { return size(t) > size(own) && t.MemoryMiB >= use.NeedMiB }))
		return v, true
	}
	candidates := slices.Clone(all)
	if own.Fraction == 0 { // a part of a GPU is none to choose
		candidates = append(candidates, own)
	}
	room := func(t resource.Target) bool { return t.MemoryMiB >= use.PeakMiB }
	v.Fits = nearest(own, smallest(candidates, room))
	if v.Fits == nil { // the target was larger when the peak was reached
		v.DoesNotFit = &own
		return v, true
	}
	if forGames(*v.Fits) != forGames(own) {
		v.FitsAlike = nearest(own, smallest(alike(own, candidates), room))
	}
	below := func(mib int) *resource.Target {
		return nearest(own, largest(all, func(t resource.Target) bool { return t.MemoryMiB < mib && size(t) < size(*v.Fits) }))
	}
	if use.OutOfMemory > 0 { // it may get over such an error on a smaller GPU, too
		v.Less = true
		return v, true
	}
	v.DoesNotFit = below(use.PeakMiB - use.CacheMiB)
	next := below(use.PeakMiB)
	v.Less = next != nil && (v.DoesNotFit == nil || size(*next) > size(*v.DoesNotFit))
	return v, true
}

// size returns a target's memory in GiB, rounded as in product names: 8188 MiB are 8.
func size(t resource.Target) int { return int(math.Round(float64(t.MemoryMiB) / 1024)) }

// alike returns the gaming GPUs if own is one, otherwise the others.
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

// ofOneSize returns the first wanted GPU and all others of its size.
func ofOneSize(all []resource.Target, which func(resource.Target) bool, order func(a, b resource.Target) int) []resource.Target {
	all = slices.DeleteFunc(slices.Clone(all), func(t resource.Target) bool { return !which(t) })
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, order)
	return slices.DeleteFunc(all, func(t resource.Target) bool { return size(t) != size(first) })
}

// nearest returns own if it is among the GPUs, otherwise one for the same use, if there is any, with the most similar
// speed and age; nil if there are none.
func nearest(own resource.Target, all []resource.Target) *resource.Target {
	if len(all) == 0 {
		return nil
	}
	if slices.ContainsFunc(all, func(t resource.Target) bool { return t.Key == own.Key && t.Fraction == own.Fraction }) {
		return &own
	}
	if same := alike(own, all); len(same) > 0 {
		all = same
	}
	found := slices.MinFunc(all, func(a, b resource.Target) int {
		return cmp.Or(cmp.Compare(distance(own, a), distance(own, b)), cmp.Compare(a.Key, b.Key))
	})
	return &found
}

// distance weighs ten years of age like a factor of 2.7 in speed.
func distance(a, b resource.Target) float64 {
	return math.Abs(math.Log(a.FP32TFLOPS/b.FP32TFLOPS)) + math.Abs(float64(a.Year-b.Year))/10
}

// String formats the verdict, to follow the session's name.
func (v Verdict) String() string {
	if v.RanOut() > 0 {
		return v.ranOut()
	}
	peaked := fmt.Sprintf("peaked at %d of %d MiB", v.PeakMiB, v.Own.MemoryMiB)
	if v.OutOfMemory > 0 {
		peaked += fmt.Sprintf(" (out of memory %s, and got over it)", times(v.OutOfMemory))
	}
	if v.Fits == nil {
		return peaked + "; no GPU of the catalog has that much"
	}
	words := peaked + "; would fit " + v.orLarger(*v.Fits)
	if v.Fits.Key != v.Own.Key && v.Fits.MemoryMiB <= v.Own.MemoryMiB {
		words = peaked + "; would fit " + named(*v.Fits) + " too"
	}
	if v.DoesNotFit != nil {
		words += ", not " + named(*v.DoesNotFit)
	}
	if v.FitsAlike != nil {
		words += "; of the " + use(v.Own) + " GPUs, " + v.orLarger(*v.FitsAlike)
	}
	if v.Less {
		words += "; cosplay fits -- COMMAND finds out whether less is enough"
	}
	return words
}

// orLarger names a GPU and those with more memory. The target needs no number.
func (v Verdict) orLarger(t resource.Target) string {
	if t.Key == v.Own.Key {
		return resource.WithArticle(t.ShortName()) + " or larger"
	}
	return named(t) + " or larger"
}

func use(t resource.Target) string {
	if forGames(t) {
		return "gaming"
	}
	return "professional"
}

// ranOut does not name a GPU: what the programs would have requested next is unknown.
func (v Verdict) ranOut() string {
	words, more := fmt.Sprintf("ran out of memory %s: %d MiB are not enough", times(v.RanOut()), v.Own.MemoryMiB), "more"
	if v.NeedMiB > v.Own.MemoryMiB {
		words, more = fmt.Sprintf("%s, at least %d MiB are needed", words, v.NeedMiB), "that much"
	}
	switch {
	case v.Own.Fraction > 0 && v.Own.Fraction < 1:
		return words + "; a larger fraction has more"
	case v.NextLarger == nil:
		return words + ", and no GPU of the catalog has " + more
	}
	return words + "; cosplay fits -- COMMAND finds the card"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// named returns a target's name with its memory, because several share a name.
func named(t resource.Target) string {
	return fmt.Sprintf("%s (%d MiB)", resource.WithArticle(t.ShortName()), t.MemoryMiB)
}
