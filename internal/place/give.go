package place

import (
	"cmp"
	"math"
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// give assigns slices to the newcomers, lower addresses on lower GPUs, and a clock to every GPU.
func (f *fleet) give(p *packer, loads map[*card]load) {
	queues := make([][]int, len(f.classes))
	for i, c := range f.classes {
		queues[i] = c.waiting[:c.accepted]
	}
	kinds := map[*card]*kind{}
	for _, k := range p.kinds {
		for _, c := range k.cards {
			kinds[c] = k
		}
	}
	for _, c := range f.cards {
		l, ok := loads[c]
		if !ok {
			c.clockMHz = c.restingClock()
			continue
		}
		s := p.arrange(kinds[c], l)
		c.clockMHz = c.model.clocks[s.clock]
		f.fill(c, kinds[c], s, queues)
	}
}

// newcomer is a session that has a profile but no slice yet.
type newcomer struct {
	request int
	choice
}

// fill assigns to each newcomer on a card the first free slot for its profile.
func (f *fleet) fill(c *card, k *kind, s arrangement, queues [][]int) {
	var all []newcomer
	for _, choice := range s.choices {
		queue := &queues[choice.class.id]
		all = append(all, newcomer{(*queue)[0], choice})
		*queue = (*queue)[1:]
	}
	starts := cloneAll(k.layouts[s.tally])
	seats := c.seats(k, s, starts)
	slices.SortFunc(all, func(a, b newcomer) int { return cmp.Compare(a.request, b.request) })
	for _, n := range all {
		slice := resource.Slice{Host: c.Host, GPU: c.UUID}
		if n.row == c.model.whole() && n.class.shares() {
			slice.Sharing, slice.Percent, slice.Oversubscribed = n.class.sharing, c.model.percent(n.class, n.row, s.clock), n.class.over
		}
		if n.row < c.model.whole() {
			p, parent := c.model.profiles[n.row], c.model.parents[n.row]
			slice.Profile, slice.Size = p.Name, p.MemorySlices
			if c.model.sharesIn(n.class, n.row) {
				sit(seats, n, &slice)
				slice.Sharing, slice.Percent = n.class.sharing, c.model.percent(n.class, n.row, s.clock)
			} else {
				slice.Start, starts[parent] = starts[parent][0], starts[parent][1:]
			}
		}
		c.occupants = append(c.occupants, occupant{request: n.request, class: n.class, slice: slice})
	}
	if f.squeeze.sms {
		c.loosen(c.occupants[len(c.occupants)-len(all):], s.clock)
	}
}

// loosen gives newcomers by MPS, which have the smallest parts of the SMs within their tolerance, more of what is left,
// by turns, until each has the part that comes closest to its target.
func (c *card) loosen(newcomers []occupant, clock int) {
	type share struct {
		class *class
		row   int
	}
	closest := map[share]int{}
	for grown := true; grown; {
		grown = false
		for i := range newcomers {
			n := &newcomers[i]
			if n.slice.Percent == 0 {
				continue
			}
			of := share{n.class, c.model.whole()}
			if !n.slice.Whole() {
				of.row = c.model.row(n.slice)
			}
			if closest[of] == 0 {
				closest[of] = c.model.percentAt(of.class, of.row, clock, fit.Parts(c.model.spec, of.class.target, c.model.profileName(of.row)), false)
			}
			next := n.slice.Percent + 1
			for next < closest[of] && c.model.partSMs(of.row, next) == c.model.partSMs(of.row, n.slice.Percent) {
				next++
			}
			if next <= closest[of] && next-n.slice.Percent <= c.freePercent(n.slice) {
				n.slice.Percent, grown = next, true
			}
		}
	}
}

// restingClock returns the clock of a GPU without packed newcomers: its present clock if nothing is new on it, otherwise
// the best one for the sessions on it; 0 if none keeps them within their fit blocks' limits.
func (c *card) restingClock() int {
	clock, known := c.clockNow()
	if known && !c.pinned || len(c.occupants) == 0 {
		return clock
	}
	may := c.suitable()
	if !c.pinned {
		may = c.clocksWithin(func(s occupant) int64 { return s.class.maxError() })
	}
	if best := c.bestClock(may); best >= 0 {
		return c.model.clocks[best]
	}
	return 0
}

// bestClock returns the index of the clock, among those that may be chosen, at which the largest error over what a session
// accepts is the smallest; -1 if none may be.
func (c *card) bestClock(may []bool) int {
	costs, best, least := c.occupantCosts(), -1, int64(math.MaxInt64)
	for i := range costs {
		over := int64(0)
		for _, s := range c.occupants {
			first, _ := c.errorsOf(s)
			over = max(over, first[i]-s.class.limit(0))
		}
		if may[i] && (best < 0 || over < least || over == least && costs[i].compare(costs[best]) < 0) {
			best, least = i, over
		}
	}
	return best
}

// suitable reports for each clock whether it keeps the errors of all sessions on the card within their limits.
func (c *card) suitable() []bool {
	return c.clocksWithin(func(s occupant) int64 { return s.limit })
}

func (c *card) clocksWithin(limit func(occupant) int64) []bool {
	ok := slices.Repeat([]bool{true}, len(c.model.clocks))
	for _, s := range c.occupants {
		first, _ := c.errorsOf(s)
		for clock := range ok {
			ok[clock] = ok[clock] && first[clock] <= limit(s)
		}
	}
	return ok
}
