package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// power returns the limit in mW: the sum of the targets' board power, not below what the clock needs, within the
// card's range and never above its default.
func (c *card) power() (limitMW int, why resource.Reason) {
	asked, sum := c.askedPower()
	needed := c.neededPower()
	least, most := c.Model.PowerMinMW, c.Model.PowerDefaultMW
	because := func(kind resource.ReasonKind, mw int) (int, resource.Reason) {
		return mw, resource.Reason{Kind: kind, Power: asked, MW: mw}
	}
	switch {
	case sum > most:
		return because(resource.AboveDefault, most)
	case max(sum, needed) < least:
		return because(resource.BelowLeast, least)
	case sum < needed:
		return because(resource.ClockNeeds, needed)
	case len(c.occupants) == 1:
		return sum, resource.Reason{Kind: resource.OneTarget, Targets: c.targets()}
	}
	return because(resource.SumOfTargets, sum)
}

// askedPower returns the sum of the targets' board power. Of sessions that run by turns, the largest counts.
func (c *card) askedPower() (boards []resource.TargetPower, sumMW int) {
	for i, s := range c.occupants {
		w := s.class.target.PowerW
		counts := true
		for j, o := range c.occupants {
			counts = counts && (i == j || !s.byTurns(o) || cmp.Or(w-o.class.target.PowerW, j-i) > 0)
		}
		if !counts {
			continue
		}
		sumMW += 1000 * w
		i := slices.IndexFunc(boards, func(b resource.TargetPower) bool { return b.W == w })
		if i < 0 {
			i, boards = len(boards), append(boards, resource.TargetPower{W: w})
		}
		boards[i].Count++
	}
	return boards, sumMW
}

// A card draws this part of its default power limit when idle, and the rest grows with SMs in use and clock. An assumption, which no
// measurement confirms.
const idlePower = 0.1

// neededPower estimates what the SMs in use draw at the clock, in mW and rounded to whole W.
func (c *card) neededPower() int {
	share := c.partInUse()
	if top := c.Model.MaxClockMHz(); top > 0 {
		share *= min(1, float64(c.clockMHz)/float64(top))
	}
	needed := float64(c.Model.PowerDefaultMW) * (idlePower + (1-idlePower)*share)
	return min(1000*int(math.Ceil(needed/1000)), c.Model.PowerDefaultMW)
}

// underpowered reports whether the card needs more than its power limit, which may not be changed.
func (c *card) underpowered() bool {
	return c.Fixed[resource.PowerLimit] && c.PowerMW > 0 && c.PowerMW < c.neededPower()
}

func (c *card) lackingPower() string {
	return fmt.Sprintf("since the power limit stays at %d W and all that runs there needs about %d W", c.PowerMW/1000, c.neededPower()/1000)
}

// starved takes new sessions off the cards whose max_error does not permit what a power limit leaves them, the last ones first: each leaves
// more for the others.
func (f *fleet) starved(cards []*card) (all []Refusal) {
	of := map[*class]int{} // in all
	for {
		c, s := f.mostStarved(cards)
		if c == nil {
			for _, r := range all {
				slices.Reverse(r.Addresses)
			}
			return all
		}
		i, known := of[s.class]
		if !known {
			i, of[s.class], all = len(all), len(all), append(all, Refusal{Advice: c.starves(s)})
		}
		address := f.requests[s.request].Address
		all[i].Addresses = append(all[i].Addresses, address)
		for _, other := range cards {
			other.occupants = slices.DeleteFunc(other.occupants, func(o occupant) bool { return f.requests[o.request].Address == address })
		}
	}
}

// mostStarved finds the last new session whose max_error does not permit what it gets; no card if there is none.
func (f *fleet) mostStarved(cards []*card) (on *card, last occupant) {
	for _, c := range cards {
		for _, s := range c.occupants {
			first, _ := s.class.errors(c.fit(s))
			if f.requests[s.request].Kept == nil && c.underpowered() && first > s.class.maxError() && (on == nil || s.request > last.request) {
				on, last = c, s
			}
		}
	}
	return on, last
}

// starves says what a session gets, and why that is too little.
func (c *card) starves(s occupant) prose.Advice {
	first, _ := s.class.errors(c.fit(s))
	return prose.Advice{What: fmt.Sprintf("%s on %s would be off by %s, %s; fit.max_error is %d %%", s.class.target.ShortName(), c.label(), deviation(c.fit(s), s.class.options.Prefer),
		c.lackingPower(), percentUp(s.class.maxError())),
		Fix: fmt.Sprintf("fit.max_error = \"%d%%\", fewer sessions, or another GPU", percentUp(first))}
}

// fit is what a session gets at the card's clock, or at the one that the power limit permits while all are busy.
func (c *card) fit(s occupant) resource.Fit {
	clock := c.clockMHz
	if c.underpowered() {
		part := (float64(c.PowerMW)/float64(c.Model.PowerDefaultMW) - idlePower) / (1 - idlePower) / c.partInUse()
		clock = min(clock, max(c.Model.ClocksMHz[0], int(part*float64(c.Model.MaxClockMHz()))))
	}
	f := c.model.at(s.class, s.slice, clock)
	f.ClockMHz = c.clockMHz
	return f
}

// partInUse is the part of the SMs that are in use, also by foreign slices.
func (c *card) partInUse() float64 {
	sms := 0
	for _, s := range c.taken() {
		p, _ := c.Model.Profile(s.Profile)
		switch {
		case s.Percent > 0:
			sms += fit.PartSMs(c.Model.SMs, s.Percent)
		case s.Whole():
			sms = c.Model.SMs
		default:
			sms += p.SMs
		}
	}
	return float64(min(sms, c.Model.SMs)) / float64(c.Model.SMs)
}
