package capacity

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
// if a larger one does not, and otherwise by the peak. Where the program failed for another reason, the trials of its class decide.
func (s *Search) Verdicts() []Verdict {
	all := make([]Verdict, len(s.Cards))
	_, reference, tried := s.Reference()
	for i, card := range s.Cards {
		t := s.trials[i]
		v := Verdict{Card: card, Trial: t, Tried: t.Result != Untried && t.Result != Absent, NeedMiB: t.PeakMiB}
		if at, proved := s.Proof(card); !v.Tried && proved {
			v.Trial, v.NeedMiB = s.trials[at], s.trials[at].PeakMiB
		} else if !v.Tried && tried {
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
		case t.Result == Failed && c.Class == own.Class && i > card:
			return Failed, 0
		case t.Result == TooSmall && c.Generation == own.Generation && c.MemoryMiB >= own.MemoryMiB:
			return TooSmall, t.PeakMiB
		case t.Result == Fits && c.Generation == own.Generation:
			need = t.PeakMiB
		case t.Result == Squeezed && (i < card || c.Generation == own.Generation && c.MemoryMiB == own.MemoryMiB):
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

// Proof is the card on which the program was seen to run, which proves that it runs on another one: itself, or one of an older class with the
// same memory and generation; false if there is none.
func (s *Search) Proof(of Card) (card int, proved bool) {
	for i, c := range s.Cards {
		if c.MemoryMiB == of.MemoryMiB && c.Generation == of.Generation && order(c.Class) <= order(of.Class) && s.trials[i].Result.Runs() {
			card, proved = i, true
		}
	}
	return card, proved
}

// Smallest is the verdict on the smallest card that runs the program, of those with the same memory and generation the newest; nil if none
// does.
func Smallest(all []Verdict) (smallest *Verdict) {
	for i, v := range all {
		if v.Result.Runs() && (smallest == nil || v.Card.MemoryMiB == smallest.Card.MemoryMiB && v.Card.Generation == smallest.Card.Generation) {
			smallest = &all[i]
		}
	}
	return smallest
}
