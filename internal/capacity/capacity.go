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

// Card is a kind of GPU in which all of the same memory and generation are alike: an allocator works the same in them.
type Card struct {
	MemoryMiB  int
	Generation string            // by what PyTorch's kernels distinguish: "8" is compute capability 8.0 to 8.9
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
		at := slices.IndexFunc(cards, func(c Card) bool { return c.MemoryMiB == t.MemoryMiB && c.Generation == generation(t) })
		if at < 0 {
			cards = append(cards, Card{MemoryMiB: t.MemoryMiB, Generation: generation(t)})
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
		return cmp.Or(a.MemoryMiB-b.MemoryMiB, order(a.Generation)-order(b.Generation))
	})
	return cards
}

// generation is the major compute capability. PyTorch's kernels are alike below 8, since those of attention that need little memory begin there.
func generation(t resource.Target) string {
	major, _, _ := strings.Cut(t.ComputeCapability, ".")
	if order(major) < order("8") {
		return "7"
	}
	return major
}

// order sorts generations: "9" is before "10".
func order(generation string) int {
	n, _ := strconv.Atoi(generation)
	return n
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

// Reference is the trial on the largest card that was tried, which tells the peak that no limit changes; false before it.
func (s *Search) Reference() (card int, t Trial, tried bool) {
	for card = len(s.Cards) - 1; card >= 0; card-- {
		if t = s.trials[card]; t.Result != Untried && t.Result != Absent {
			return card, t, true
		}
	}
	return -1, t, false
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
// on which the program does not run and the smallest of all on which it does; last, those that are in doubt.
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
		next = append(next, s.where(func(c Card) bool { return c.MemoryMiB == s.Cards[smallest].MemoryMiB })...)
	} else {
		smallest = slices.IndexFunc(s.Cards, func(c Card) bool { return s.trialOf(c).Result.Runs() })
	}
	for _, generation := range s.generations() {
		next = append(next, s.between(generation, smallest)...)
	}
	if len(next) == 0 {
		next = s.doubtful(t)
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// doubtful are, of each generation, the smallest card that is only thought to run the program: another generation can need more. A card with
// plenty of memory is not in doubt.
func (s *Search) doubtful(reference Trial) (cards []int) {
	for _, generation := range s.generations() {
		fails := 0
	smallest:
		for i, c := range s.Cards {
			if c.Generation != generation {
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
	top, fails := float64(s.Cards[smallest].MemoryMiB), 0.0
	for _, c := range s.Cards[:smallest] {
		if r := s.trialOf(c).Result; r != Untried && !r.Runs() {
			if c.Generation == generation {
				fails = float64(c.MemoryMiB)
			}
			fails = max(fails, float64(c.MemoryMiB)/surely)
		}
	}
	left := s.where(func(c Card) bool {
		return c.Generation == generation && float64(c.MemoryMiB) < top && float64(c.MemoryMiB) > fails
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
	return s.trials[slices.IndexFunc(s.Cards, func(o Card) bool { return o.MemoryMiB == c.MemoryMiB && o.Generation == c.Generation })]
}

func (s *Search) generations() (all []string) {
	for _, c := range s.Cards {
		if !slices.Contains(all, c.Generation) {
			all = append(all, c.Generation)
		}
	}
	return all
}

// Verdict is what is known of a card.
type Verdict struct {
	Card    Card
	Trial   // on it; of an untried card only the result, as concluded
	Tried   bool
	NeedMiB int // the memory that it needs, as far as known: the peak of the trial that decides
}

// HeadroomMiB is what the program leaves free; 0 if it does not run.
func (v Verdict) HeadroomMiB() int {
	if !v.Result.Runs() {
		return 0
	}
	return max(0, v.Card.MemoryMiB-v.NeedMiB)
}

// Verdicts are those on all cards. An untried card is decided by the trials of its generation: it runs the program if a smaller one does, not
// if a larger one does not, and otherwise by the peak.
func (s *Search) Verdicts() []Verdict {
	all := make([]Verdict, len(s.Cards))
	_, reference, tried := s.Reference()
	for i, card := range s.Cards {
		t := s.trials[i]
		v := Verdict{Card: card, Trial: t, Tried: t.Result != Untried && t.Result != Absent, NeedMiB: t.PeakMiB}
		if !v.Tried && tried {
			v.Result, v.NeedMiB = s.conclude(i, reference)
		}
		all[i] = v
	}
	return all
}

func (s *Search) conclude(card int, reference Trial) (Result, int) {
	if reference.Result == Failed {
		return Untried, 0
	}
	own := s.Cards[card]
	need, smaller := reference.PeakMiB, false
	for i, c := range s.Cards {
		t := s.trials[i]
		switch {
		case t.Result == TooSmall && c.Generation == own.Generation && i > card:
			return TooSmall, t.PeakMiB
		case t.Result == Fits && c.Generation == own.Generation:
			need = t.PeakMiB
		case t.Result == Squeezed && i < card:
			smaller = true
		}
	}
	switch {
	case reference.Result == TooSmall:
		return TooSmall, need
	case need <= own.MemoryMiB:
		return Fits, need
	case smaller:
		return Squeezed, own.MemoryMiB
	}
	return TooSmall, need
}

// Smallest is the verdict on the smallest card that runs the program; false if none does.
func (s *Search) Smallest() (Verdict, bool) {
	all := s.Verdicts()
	if at := slices.IndexFunc(all, func(v Verdict) bool { return v.Result.Runs() }); at >= 0 {
		return all[at], true
	}
	return Verdict{}, false
}
