// Package capacity finds the smallest GPU that runs a program: it decides on which GPUs the program is tried, and what that proves of the
// others. It is a pure function of values.
package capacity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/resource"
)

// Card is a kind of GPU in which all of the same memory and class are alike.
type Card struct {
	MemoryMiB  int
	Generation string            // in which an allocator works the same: "8" is compute capability 8.0 to 8.9
	Class      string            // of which programs need the same: "8.9" is apart from "8", since it computes in FP8
	Targets    []resource.Target // the newest first, which stands for all
}

// Target is the GPU that stands for the card.
func (c Card) Target() resource.Target { return c.Targets[0] }

// Has reports whether a GPU of the catalog is one of the card's.
func (c Card) Has(key string) bool {
	return slices.ContainsFunc(c.Targets, func(t resource.Target) bool { return t.Key == key })
}

// Cards groups GPUs, smallest memory first.
func Cards(all []resource.Target) []Card {
	var cards []Card
	for _, t := range all {
		class := class(t)
		at := slices.IndexFunc(cards, func(c Card) bool { return c.MemoryMiB == t.MemoryMiB && c.Class == class })
		if at < 0 {
			cards = append(cards, Card{MemoryMiB: t.MemoryMiB, Generation: generation(class), Class: class})
			at = len(cards) - 1
		}
		cards[at].Targets = append(cards[at].Targets, t)
	}
	for _, c := range cards {
		slices.SortFunc(c.Targets, func(a, b resource.Target) int {
			return cmp.Or(cmp.Compare(b.Year, a.Year), cmp.Compare(b.TensorFP16TFLOPS, a.TensorFP16TFLOPS), cmp.Compare(a.FP32TFLOPS, b.FP32TFLOPS), cmp.Compare(a.Key, b.Key))
		})
	}
	slices.SortFunc(cards, func(a, b Card) int {
		return cmp.Or(a.MemoryMiB-b.MemoryMiB, order(a.Class)-order(b.Class))
	})
	return cards
}

// class is the major compute capability, with those before 7, which have no tensor cores, in one, and 8.9 apart.
func class(t resource.Target) string {
	major, _, _ := strings.Cut(t.ComputeCapability, ".")
	switch {
	case order(major) < order("7"):
		return "6"
	case t.ComputeCapability == "8.9":
		return t.ComputeCapability
	}
	return major
}

// generation is that of a class. PyTorch's kernels are alike below 8, since those of attention that need little memory begin there.
func generation(class string) string {
	major, _, _ := strings.Cut(class, ".")
	if order(major) < order("8") {
		return "7"
	}
	return major
}

// order sorts generations and classes: "9" is before "10".
func order(class string) int {
	n, _ := strconv.ParseFloat(class, 64)
	return int(10 * n)
}

// Result is how a program ended on a card.
type Result int

// The results. Squeezed is one that ended well only because the allocator returned its cache, or because the program caught an error.
const (
	Untried Result = iota
	Fits
	Squeezed
	TooSmall
	Failed // for another reason than memory
	Absent // there is no such session: the host has no room for the card
)

// Runs reports whether the program ended well.
func (r Result) Runs() bool { return r == Fits || r == Squeezed }

// Trial is a run of the program on a card.
type Trial struct {
	Result  Result
	PeakMiB int     // of one GPU, with contexts
	Caught  int     // errors of memory that the program caught
	Seconds float64 // that it took
	Rescued int     // requests that were served only after the allocator had returned its cache
}

// Search is the state of a search.
type Search struct {
	Cards  []Card
	Wanted []int // cards to try in any case
	First  int   // the card to try first, with memory for most programs
	trials map[int]Trial
}

// Ended records a trial.
func (s *Search) Ended(card int, t Trial) {
	if s.trials == nil {
		s.trials = map[int]Trial{}
	}
	s.trials[card] = t
}

// Trial is that of a card; its result is Untried without one.
func (s *Search) Trial(card int) Trial { return s.trials[card] }

// Reference is the trial on the largest card that was tried, which tells the peak that no limit changes, of those that did not fail for
// another reason if there is one; false before it.
func (s *Search) Reference() (card int, t Trial, tried bool) {
	card = -1
	for i := range s.Cards {
		if r := s.trials[i].Result; r != Untried && r != Absent && (r != Failed || t.Result == Untried || t.Result == Failed) {
			card, t, tried = i, s.trials[i], true
		}
	}
	return card, t, tried
}

// first is the card to try to find the peak: First, and if its memory limits the program or there is no session of it, the largest; -1 if none is
// left.
func (s *Search) first() int {
	if s.trials[s.First].Result == Untried {
		return s.First
	}
	for card := len(s.Cards) - 1; card >= 0; card-- {
		if s.trials[card].Result == Untried {
			return card
		}
	}
	return -1
}

// Next are the cards to try next, together; none if all is decided. First comes a large card, whose peak tells near which size the program
// begins to fit. Then come that size, and of each generation the next smaller card; then, of each generation, cards between the largest one
// on which the program does not run and the smallest of all on which it does; then those that are in doubt; last, those of classes that it
// may not support.
func (s *Search) Next() []int {
	reference, t, tried := s.Reference()
	if card := s.first(); card >= 0 && (!tried || card > reference && (t.Result == TooSmall || t.Result == Squeezed)) {
		return []int{card}
	}
	if !tried || !t.Result.Runs() {
		return nil
	}
	next := slices.DeleteFunc(slices.Clone(s.Wanted), func(card int) bool { return s.trials[card].Result != Untried })
	smallest := slices.IndexFunc(s.Cards, func(c Card) bool { return c.MemoryMiB >= t.PeakMiB })
	if smallest < reference && s.trials[smallest].Result == Untried {
		next = append(next, s.oldest(s.Cards[smallest].MemoryMiB)...)
	} else {
		smallest = slices.IndexFunc(s.Cards, func(c Card) bool { return s.trialOf(c).Result.Runs() })
	}
	for _, generation := range s.generations() {
		if newer := s.newer(generation, reference, t.PeakMiB); newer != nil {
			next = append(next, newer...)
		} else {
			next = append(next, s.between(generation, smallest)...)
		}
	}
	if len(next) == 0 {
		next = s.doubtful(t)
	}
	if len(next) == 0 {
		next = s.unsupported(t)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// doubtful are, of each generation, the smallest card that is only thought to run the program: another generation can need more. A card with
// plenty of memory is not in doubt.
func (s *Search) doubtful(reference Trial) (cards []int) {
	for _, generation := range s.generations() {
		fails, unfit := 0, s.unfit(generation)
	smallest:
		for i, c := range s.Cards {
			if c.Generation != generation || order(c.Class) <= unfit {
				continue
			}
			r, _ := s.conclude(i, reference)
			switch tried := s.trials[i].Result; {
			case tried == TooSmall:
				fails = c.MemoryMiB
				continue
			case tried == Untried && !r.Runs() || tried == Absent || tried == Failed:
				continue
			case tried == Untried && float64(c.MemoryMiB) < coarse*float64(fails) && fails >= reference.PeakMiB:
				continue // near one that is larger than the reference's peak, and too small
			case tried == Untried && c.MemoryMiB < plenty*reference.PeakMiB:
				cards = append(cards, i)
			}
			break smallest
		}
	}
	return cards
}

const (
	plenty = 2    // times the peak
	coarse = 1.06 // between sizes that are tried one after the other where one end is not known
	surely = 1.5  // a card with that much less memory than one on which the program does not run is not tried
)

// between is the card of a generation to try next, below the smallest one on which the program runs; none if there is nothing left to try.
func (s *Search) between(generation string, smallest int) []int {
	top, fails, unfit := float64(s.Cards[smallest].MemoryMiB), 0.0, s.unfit(generation)
	for i, c := range s.Cards[:smallest] {
		switch r := s.trials[i].Result; {
		case r == Untried || r == Failed || r.Runs():
		case c.Generation == generation:
			fails = float64(c.MemoryMiB)
		default:
			fails = max(fails, float64(c.MemoryMiB)/surely)
		}
	}
	left := s.where(func(c Card) bool {
		return c.Generation == generation && order(c.Class) > unfit && float64(c.MemoryMiB) < top && float64(c.MemoryMiB) > fails
	})
	if len(left) == 0 {
		return nil
	}
	at := len(left) - 1
	switch reference, _, _ := s.Reference(); {
	case fails > 0 && smallest == reference:
		at = max(0, slices.IndexFunc(left, func(card int) bool { return float64(s.Cards[card].MemoryMiB) >= coarse*fails }))
	case fails > 0:
		at = len(left) / 2
	case s.trials[smallest].Result == Squeezed:
		for at > 0 && coarse*float64(s.Cards[left[at]].MemoryMiB) > top {
			at--
		}
	}
	return left[at : at+1]
}

// oldest are the untried cards with so much memory, of each generation the oldest class: what runs there runs on the others.
func (s *Search) oldest(memoryMiB int) (cards []int) {
	of := map[string]bool{}
	for i, c := range s.Cards {
		if c.MemoryMiB == memoryMiB && s.trials[i].Result == Untried && !of[c.Generation] {
			of[c.Generation], cards = true, append(cards, i)
		}
	}
	return cards
}

// where are the untried cards of a kind.
func (s *Search) where(which func(Card) bool) (cards []int) {
	for i, c := range s.Cards {
		if s.trials[i].Result == Untried && which(c) {
			cards = append(cards, i)
		}
	}
	return cards
}

func (s *Search) trialOf(c Card) Trial {
	return s.trials[slices.IndexFunc(s.Cards, func(o Card) bool { return o.MemoryMiB == c.MemoryMiB && o.Class == c.Class })]
}

func (s *Search) generations() []string {
	return s.all(func(c Card) string { return c.Generation })
}

// all are the different values of something that cards have.
func (s *Search) all(of func(Card) string) (all []string) {
	for _, c := range s.Cards {
		if !slices.Contains(all, of(c)) {
			all = append(all, of(c))
		}
	}
	return all
}
