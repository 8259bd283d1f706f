package capacity

import "slices"

// unsupported are cards of classes that the program may not support: of a class on which, and on older ones, it was not seen to run
// the smallest card; where it failed for another reason than memory the largest, and if that runs it, one in the middle of those of which
// nothing is known. Last comes the smallest card of all, if it is only thought to run the program.
func (s *Search) unsupported(reference Trial) (cards []int) {
	for _, class := range s.all(func(c Card) string { return c.Class }) {
		var unknown []int // above the largest card of the class on which it failed, below the smallest on which it runs
		failed, runs, covered := false, false, false
		for i, c := range s.Cards {
			r := s.trials[i].Result
			covered = covered || r.Runs() && order(c.Class) <= order(class)
			if c.Class != class || runs {
				continue
			}
			runs = r.Runs()
			if r == Failed {
				failed, unknown = true, nil
			} else if thought, _ := s.conclude(i, reference); r == Untried && thought.Runs() {
				unknown = append(unknown, i)
			}
		}
		switch {
		case len(unknown) == 0 || covered && !failed:
		case runs:
			cards = append(cards, unknown[len(unknown)/2])
		case failed:
			cards = append(cards, unknown[len(unknown)-1])
		default:
			cards = append(cards, unknown[0])
		}
	}
	if v := Smallest(s.Verdicts()); len(cards) == 0 && v != nil {
		if _, proved := s.Proof(v.Card); !proved {
			return s.oldest(v.Card.MemoryMiB)
		}
	}
	return cards
}

// newer is, once the program has failed for another reason than memory, the first card of a generation with the memory and of a newer class
// than that on which it failed, unless one of the generation runs it.
func (s *Search) newer(generation string, reference, peakMiB int) []int {
	unfit, first := s.unfit(generation), -1
	if !slices.ContainsFunc(s.generations(), func(g string) bool { return s.unfit(g) > 0 }) {
		return nil
	}
	for i, c := range s.Cards[:reference+1] {
		switch {
		case c.Generation != generation || order(c.Class) <= unfit:
		case s.trials[i].Result.Runs():
			return nil
		case first < 0 && c.MemoryMiB >= peakMiB && s.trials[i].Result == Untried:
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	return []int{first}
}

// unfit is the order of the newest class of a generation on which the program failed for another reason than memory; 0 if there is none.
func (s *Search) unfit(generation string) (newest int) {
	for i, c := range s.Cards {
		if c.Generation == generation && s.trials[i].Result == Failed {
			newest = max(newest, order(c.Class))
		}
	}
	return newest
}
