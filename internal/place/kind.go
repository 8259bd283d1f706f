package place

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// A load is the number of newcomers of each class on one GPU.
type load []uint8

// A kind is a group of GPUs that are interchangeable for placement: same model, same sessions and slices, same
// permissions.
type kind struct {
	cards     []*card // in a fixed order
	rank      int     // of the first card
	model     *gpuModel
	classes   []*class
	occupants []occupant
	slices    bool             // may have slices
	shelves   []shelf          // slices that sessions share
	whole     bool             // may have newcomers on the whole GPU
	sharing   resource.Sharing // how its sessions share it, if they do
	over      bool             // and whether their memory together may exceed it
	freeMiB   int              // of the whole GPU, for sessions that share it
	freePart  int              // percent of the SMs, for sessions that share it by MPS
	beside    bool             // but beside foreign processes, which a session has to accept
	price     int              // 0 if it already has sessions of the project

	clockOK       []bool // by clock: whether it suits all sessions on the GPU
	occupantCosts []cost // by clock: the cost of the sessions on the GPU
	layouts       layouts
	stacked       map[string][]load
	fits          map[string]bool
	arranged      map[string]arrangement
}

// An arrangement is the best way for a GPU to hold a load.
type arrangement struct {
	clock   int
	choices []choice // by class
	tally   tally
	stacks  [][]load // by profile: the sessions in each slice that they share
	cost    cost
}

// A choice is the profile of one newcomer.
type choice struct {
	class *class
	row   int
}

// kinds groups the cards. A card to which a class is pinned forms its own kind.
func (f *fleet) kinds() []*kind {
	pinned := map[string]bool{}
	for _, c := range f.classes {
		if c.gpu != "" {
			pinned[c.gpu] = true
		}
	}
	known := map[string]*kind{}
	var all []*kind
	for rank, c := range f.cards {
		mark := f.mark(c, pinned[c.UUID])
		if known[mark] == nil {
			known[mark] = newKind(c, rank, f.classes)
			all = append(all, known[mark])
		}
		known[mark].cards = append(known[mark].cards, c)
	}
	return all
}

// mark returns a text that is equal for interchangeable cards.
func (f *fleet) mark(c *card, pinned bool) string {
	mark := fmt.Appendf(nil, "%q %d %t %t %t %t %t", c.Host, slices.Index(f.models, c.model), c.canTakeSlices(), c.canBeWhole(), c.shared(), c.Hindered, c.ForeignMPS != nil)
	for _, s := range c.occupants {
		mark = fmt.Appendf(mark, " %d:%s@%d.%d*%d<%d", s.class.id, s.slice.Profile, s.slice.Start, s.slice.ComputeStart, s.slice.Percent, s.limit)
	}
	for _, s := range c.Foreign {
		mark = fmt.Appendf(mark, " %s@%d.%d+%d", s.Profile, s.Start, s.ComputeStart, s.Size)
	}
	if pinned {
		mark = append(mark, c.UUID...)
	}
	return string(mark)
}

func newKind(c *card, rank int, classes []*class) *kind {
	k := &kind{
		rank: rank, model: c.model, classes: classes, occupants: c.occupants, shelves: c.shelves(), stacked: map[string][]load{},
		slices: c.canTakeSlices(), whole: c.canBeWhole() && (len(c.occupants) == 0 || c.isShared()), freeMiB: c.freeMiB(resource.Slice{}), freePart: c.freePercent(resource.Slice{}), beside: c.Hindered, price: 1,
		fits: map[string]bool{}, arranged: map[string]arrangement{},
	}
	if len(c.occupants) > 0 {
		k.price = 0
	}
	if c.isWhole() {
		k.sharing, k.over = c.occupants[0].slice.Sharing, c.occupants[0].slice.Oversubscribed
	}
	k.layouts = layouts{0: make([][]int, c.model.inst)}
	if k.slices {
		k.layouts = c.model.layouts(c.room())
	}
	k.occupantCosts, k.clockOK = c.occupantCosts(), c.suitable()
	return k
}

// A want is the sessions of one class in a load, with the profiles that the class may have at each clock: one bit for
// each row of its chart.
type want struct {
	class *class
	count int
	rows  []uint32
}

// fit reports whether a GPU of the kind can hold a load within all limits.
func (p *packer) fit(k *kind, l load) bool {
	key := string(l)
	if known, ok := k.fits[key]; ok {
		return known
	}
	answer := p.tryFit(k, p.wants(k, l))
	k.fits[key] = answer
	return answer
}

func (p *packer) tryFit(k *kind, wants []want) bool {
	var tried []uint32
	filling := newFilling(k, wants)
	divides := slices.ContainsFunc(wants, func(w want) bool { return w.class.sharing == resource.SharingMPS })
	for clock, ok := range k.clockOK {
		if !ok {
			continue
		}
		rows := rowsAt(wants, clock)
		if slices.Equal(rows, tried) && !divides {
			continue
		}
		tried, filling.clock = rows, clock
		if k.takesWhole(wants, rows, clock) {
			return true
		}
		if filling.packs(rows, 0, 0, 0, 0) {
			return true
		}
	}
	return false
}

// takesWhole reports whether the whole GPU can hold what is wanted, with these profiles at a clock: one session, or
// several that share it and its memory in the same way.
func (k *kind) takesWhole(wants []want, rows []uint32, clock int) bool {
	if !k.whole {
		return false
	}
	free, part, sharing, over := k.freeMiB, k.freePart, k.sharing, k.over
	for i, w := range wants {
		free -= w.count * w.class.memoryMiB()
		part -= w.count * k.model.percent(w.class, k.model.whole(), clock)
		alone := len(wants) == 1 && w.count == 1 && !sharing.Shares()
		beside := w.class.shares() && (sharing == "" || sharing == w.class.sharing && over == w.class.over)
		if rows[i]>>k.model.whole()&1 == 0 || w.count > w.class.most() || k.beside && !w.class.acceptsError() || !beside && !alone {
			return false
		}
		sharing, over = w.class.sharing, w.class.over
	}
	return free >= 0 && part >= 0
}

func rowsAt(wants []want, clock int) []uint32 {
	rows := make([]uint32, len(wants))
	for i, w := range wants {
		rows[i] = w.rows[clock]
	}
	return rows
}

// arrange returns the clock and the profiles that hold a load at the lowest cost. The load must fit.
func (p *packer) arrange(k *kind, l load) arrangement {
	key := string(l)
	if known, ok := k.arranged[key]; ok {
		return known
	}
	wants := p.wants(k, l)
	s := seeker{filling: newFilling(k, wants), floor: p.floor}
	for clock, ok := range k.clockOK {
		if ok {
			s.try(clock)
		}
	}
	s.best.cost[gpusUsed] = int64(k.price)
	s.best.cost[sumRank] = int64(k.rank)
	k.arranged[key] = s.best
	return s.best
}

// A seeker searches for the cheapest arrangement.
type seeker struct {
	filling
	floor cost
	least []cost // by want: a lower bound on the cost of a session
	rest  []cost // by want: of the sessions of all later wants
	now   []choice
	found bool
	best  arrangement
}

// try searches one clock, unless the sum of each session's cheapest slice is already too expensive.
func (s *seeker) try(clock int) {
	s.clock = clock
	start := s.kind.occupantCosts[clock].plus(s.floor)
	bound := start
	s.least, s.rest = make([]cost, len(s.wants)), make([]cost, len(s.wants))
	var later cost
	for i, w := range slices.Backward(s.wants) {
		cheapest, ok := s.cheapest(w)
		if !ok {
			return
		}
		s.least[i], s.rest[i] = cheapest, later
		later = later.plus(cheapest.times(w.count))
	}
	bound = bound.plus(later)
	if s.found && bound.compare(s.best.cost) >= 0 {
		return
	}
	if whole := s.kind.model.whole(); s.kind.takesWhole(s.wants, rowsAt(s.wants, clock), clock) {
		var all []choice
		for _, w := range s.wants {
			all = append(all, slices.Repeat([]choice{{w.class, whole}}, w.count)...)
			for range w.count {
				start = start.plus(s.kind.model.cost(w.class, whole, clock))
			}
		}
		s.keep(all, 0, start)
		start = s.kind.occupantCosts[clock].plus(s.floor)
	}
	s.descend(0, 0, 0, 0, start)
}

// cheapest returns a lower bound on the cost of a session of a class at this clock.
func (s *seeker) cheapest(w want) (lowest cost, ok bool) {
	for row := range s.kind.model.whole() + 1 {
		if w.rows[s.clock]>>row&1 == 0 {
			continue
		}
		c := s.kind.model.cost(w.class, row, s.clock)
		if w.class.shares() && row < s.kind.model.whole() {
			c[sumSize] = 0 // in the slice of others
		}
		if ok {
			c = c.atMost(lowest)
		}
		lowest, ok = c, true
	}
	return lowest, ok
}

func (s *seeker) descend(i, placed, row int, t tally, so cost) {
	if i == len(s.wants) {
		s.keep(s.now, t, so)
		return
	}
	w := s.wants[i]
	if bound := so.plus(s.least[i].times(w.count - placed)).plus(s.rest[i]); s.found && bound.compare(s.best.cost) >= 0 {
		return
	}
	if placed == w.count {
		s.descend(i+1, 0, 0, t, so)
		return
	}
	for ; row < s.kind.model.whole(); row++ {
		if w.rows[s.clock]>>row&1 == 0 {
			continue
		}
		if next, legal := s.put(w.class, row, t); legal {
			s.now = append(s.now, choice{w.class, row})
			more := s.kind.model.cost(w.class, row, s.clock)
			if next == t { // it joins others in their slice
				more[sumSize] = 0
			}
			s.descend(i, placed+1, row, next, so.plus(more))
			s.now = s.now[:len(s.now)-1]
		}
		s.remove(w.class, row)
	}
}

func (s *seeker) keep(choices []choice, t tally, c cost) {
	if s.found && c.compare(s.best.cost) >= 0 {
		return
	}
	s.found = true
	s.best = arrangement{clock: s.clock, choices: slices.Clone(choices), tally: t, cost: c}
	for row, l := range s.shared {
		s.best.stacks = append(s.best.stacks, s.kind.stack(row, s.clock, l))
	}
}
