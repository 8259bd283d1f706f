package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/resource"
)

// program is one whose needs are known: it runs where the memory is at least least, undisturbed where it is at least peak. A program of
// wide tensors needs that times as much before Ampere.
type program struct {
	least, peak int
	older       float64
	class       string // it fails for another reason below that one
}

func (p program) on(c Card) Trial {
	need, peak := p.least, p.peak
	if c.Generation == "7" && p.older > 0 {
		need, peak = int(p.older*float64(need)), int(p.older*float64(peak))
	}
	switch {
	case order(c.Class) < order(p.class):
		return Trial{Result: Failed, PeakMiB: 100}
	case c.MemoryMiB >= peak:
		return Trial{Result: Fits, PeakMiB: peak}
	case c.MemoryMiB >= need:
		return Trial{Result: Squeezed, PeakMiB: c.MemoryMiB - 1, Rescued: 1}
	}
	return Trial{Result: TooSmall, PeakMiB: c.MemoryMiB}
}

// search tries a program until all is decided, and returns the number of runs.
func search(t *testing.T, s *Search, p program) (trials int) {
	t.Helper()
	for next := s.Next(); len(next) > 0; next = s.Next() {
		for _, card := range next {
			if s.Trial(card).Result != Untried {
				t.Fatalf("%v: card %d is tried twice", p, card)
			}
			s.Ended(card, p.on(s.Cards[card]))
			trials++
		}
	}
	return trials
}

// TestSmallest compares the search with a run on every card.
func TestSmallest(t *testing.T) {
	cards := Cards(catalog.Targets())
	random := rand.New(rand.NewPCG(1, 2))
	most := 0
	for range 3000 {
		peak := 400 + random.IntN(200000)
		p := program{least: peak - random.IntN(peak/2), peak: peak}
		if random.IntN(2) == 0 {
			p.least = peak
		}
		if random.IntN(3) == 0 {
			p.older = 1 + random.Float64()/3
		}
		if random.IntN(3) == 0 {
			p.class = []string{"7", "8", "8.9", "9"}[random.IntN(4)]
		}
		want := 0
		for _, c := range cards {
			if p.on(c).Result.Runs() {
				want = c.MemoryMiB
				break
			}
		}
		s := &Search{Cards: cards, First: -1}
		for s.First < 0 || order(cards[s.First].Class) < order("9") {
			s.First = random.IntN(len(cards)/4) + len(cards)*3/4
		}
		trials := search(t, s, p)
		most = max(most, trials)
		got := 0
		if v := Smallest(s.Verdicts()); v != nil {
			got = v.Card.MemoryMiB
			if _, proved := s.Proof(v.Card); !proved {
				t.Errorf("%+v: %s was not tried", p, v.Card.Target().Key)
			}
		}
		if got != want {
			t.Fatalf("%+v: found %d MiB, a run on every card finds %d MiB", p, got, want)
		}
		for _, v := range s.Verdicts() {
			if truth := p.on(v.Card).Result; truth.Runs() != v.Result.Runs() || v.Result == Fits && truth != Fits && p.older == 0 {
				t.Fatalf("%+v: the verdict on %d MiB is %v, the truth %v", p, v.Card.MemoryMiB, v.Result, truth)
			}
		}
	}
	if most > 24 {
		t.Errorf("a search took %d trials", most)
	}
}

// TestFewTrials: a program that fits undisturbed or not at all is tried on the largest card, on two sizes, and of other generations on one card each.
func TestFewTrials(t *testing.T) {
	s := &Search{Cards: Cards(catalog.Targets()), First: len(Cards(catalog.Targets())) - 1}
	trials := search(t, s, program{least: 5500, peak: 5500})
	if v := Smallest(s.Verdicts()); trials > 5 || v.Card.MemoryMiB != 6138 {
		t.Errorf("%d trials; the smallest is %d MiB", trials, v.Card.MemoryMiB)
	}
}

// TestWanted: the wanted cards are tried in any case.
func TestWanted(t *testing.T) {
	s := &Search{Cards: Cards(catalog.Targets()), First: len(Cards(catalog.Targets())) - 1}
	s.Wanted = []int{0}
	search(t, s, program{least: 5500, peak: 5500})
	if got := s.Trial(0).Result; got != TooSmall {
		t.Error(got)
	}
}

// TestBroken: a program that fails for another reason is not tried again, and nothing is concluded.
func TestBroken(t *testing.T) {
	s := &Search{Cards: Cards(catalog.Targets()), First: len(Cards(catalog.Targets())) - 1}
	s.Ended(s.Next()[0], Trial{Result: Failed, PeakMiB: 500})
	if next := s.Next(); len(next) > 0 {
		t.Error(next)
	}
	if v := Smallest(s.Verdicts()); v != nil {
		t.Error(v)
	}
}

// TestAbsent: where the host has no room for the largest cards, the next one is the reference.
func TestAbsent(t *testing.T) {
	s := &Search{Cards: Cards([]resource.Target{{Key: "a", MemoryMiB: 8192, ComputeCapability: "7.5"}, {Key: "b", MemoryMiB: 16384, ComputeCapability: "8.6"}}), First: 1}
	s.Ended(s.Next()[0], Trial{Result: Absent})
	s.Ended(s.Next()[0], Trial{Result: Fits, PeakMiB: 4000})
	if v := Smallest(s.Verdicts()); len(s.Next()) > 0 || v == nil || v.Card.Target().Key != "a" {
		t.Error(s.Next(), fmt.Sprint(v))
	}
}
