package place

import (
	"cmp"
	"slices"
)

const (
	maxVisits = 20_000 // partial plans that the exact search visits
	maxFills  = 40     // loads to generate if there are too many to list
	few       = 40     // with up to this many sessions, the search compares all costs of a plan
	veryFew   = 10     // with up to this many, also those of GPUs that could hold more
)

// A cover is the search for the smallest number of GPUs that hold a demand.
type cover struct {
	*packer
	weights  []weights
	holds    [][]float64 // by weights and kind: the largest value that a GPU can hold
	byWeight []int       // classes, highest weight first
	careful  bool        // whether there are few enough sessions to compare plans by all costs
	partial  bool        // whether there are few enough to try GPUs that could hold more

	best   []use
	cost   cost
	found  bool
	visits int
	seen   map[string]cost
}

// cover chooses GPUs for the whole demand, given by class. It returns false if there are too few GPUs.
func (p *packer) cover(demand []int) ([]use, bool) {
	if total(demand) == 0 {
		return nil, true
	}
	c := p.newCover(demand)
	free := c.free()
	least, possible := c.least(demand, free)
	if !possible {
		return nil, false
	}
	if !c.complete && c.relaxes(demand) {
		least = c.relax(demand, free)
	}
	if !c.found {
		rest := slices.Clone(demand)
		if plan, so := c.greedy(rest, slices.Clone(free), false); total(rest) == 0 {
			c.best, c.cost, c.found = plan, so, true
		}
	}
	if c.complete && (!c.found || c.cost[gpusUsed] > least) {
		c.round(demand, slices.Clone(free))
	}
	if c.complete && (!c.found || c.cost[gpusUsed] > least || c.careful) {
		c.search(demand, free, nil, cost{})
	}
	searched := 0 < c.visits && c.visits <= maxVisits
	if c.complete && !searched && (!c.found || c.cost[gpusUsed] > least) && c.relaxes(demand) {
		least = max(least, c.relax(demand, free))
	}
	p.used, p.needed, p.proven = c.cost[gpusUsed], least, searched || c.cost[gpusUsed] == least
	return c.best, c.found
}

// refine searches once more among plans whose largest errors are those of a plan. The search before keeps the largest
// error of each GPU as small as possible, also where that of another GPU is larger, which can make their sum larger.
func (p *packer) refine(plan []use, demand []int) []use {
	if !p.complete || total(demand) > few || len(plan) < 2 {
		return plan
	}
	for _, figure := range []int{worstExcess, worstError} {
		for _, u := range plan {
			p.floor[figure] = max(p.floor[figure], p.arrange(u.kind, u.load).cost[figure])
		}
		for _, k := range p.kinds {
			clear(k.arranged)
		}
		c := p.newCover(demand)
		c.best, c.found = plan, true
		for _, u := range plan {
			c.cost = c.cost.plus(c.price(u.kind, u.load).times(u.times))
		}
		c.search(demand, c.free(), nil, cost{})
		plan = c.best
	}
	return plan
}

func (p *packer) newCover(demand []int) *cover {
	c := &cover{packer: p, careful: total(demand) <= few, partial: total(demand) <= veryFew, seen: map[string]cost{}}
	c.weigh(demand)
	return c
}

func (c *cover) free() []int {
	free := make([]int, len(c.kinds))
	for i, k := range c.kinds {
		free[i] = len(k.cards)
	}
	return free
}

// greedy uses the most valuable load as often as possible, then the next, until nothing more fits, or until a GPU
// would be needed that is not in use yet.
func (c *cover) greedy(rest, free []int, onlyUsed bool) (plan []use, so cost) {
	for {
		k, best := c.worthMost(rest, free)
		if best == nil || onlyUsed && c.kinds[k].price > 0 {
			return plan, so
		}
		times := free[k]
		for i, n := range best {
			if n > 0 {
				times = min(times, rest[i]/int(n))
			}
		}
		for range times {
			take(rest, best, 1)
			so = so.plus(c.price(c.kinds[k], best))
		}
		free[k] -= times
		plan = append(plan, use{c.kinds[k], best, times})
	}
}

// price returns the cost of a load: all figures, or with many sessions only the GPU.
func (c *cover) price(k *kind, l load) cost {
	if c.careful {
		return c.arrange(k, l).cost
	}
	return cost{gpusUsed: int64(k.price)}
}

// round solves the demand as if GPUs could be divided, keeps the whole GPUs of that solution, and searches for the
// rest.
func (c *cover) round(demand, free []int) {
	var loads []load
	var kinds []int
	for k := range c.kinds {
		if c.kinds[k].price == 1 {
			loads, kinds = append(loads, c.full[k]...), append(kinds, slices.Repeat([]int{k}, len(c.full[k]))...)
		}
	}
	rest := slices.Clone(demand)
	plan, so := c.greedy(rest, free, true) // first the GPUs that are already in use
	_, uses := cheapest(loads, rest)
	for i, l := range loads {
		k := kinds[i]
		for n := min(free[k], int(uses[i]+unmet)); n > 0 && noneExceeds(l, rest); n-- {
			take(rest, l, 1)
			free[k]--
			plan = append(plan, use{c.kinds[k], l, 1})
			so = so.plus(c.price(c.kinds[k], l))
		}
	}
	c.search(rest, free, plan, so)
	c.visits, c.seen = 0, map[string]cost{}
}

// worthMost chooses the next GPU and its load: GPUs in use first, then the GPU whose load has the highest value.
func (c *cover) worthMost(rest, free []int) (kind int, best load) {
	worth := 0.0
	for k := range c.kinds {
		if free[k] == 0 {
			continue
		}
		if best != nil && c.kinds[kind].price == 0 {
			break
		}
		full := c.full[k]
		if !c.complete {
			full = c.fills(c.kinds[k], rest)
		}
		for _, l := range full {
			if w := c.weights[0].of(l, rest); w > worth+tiny {
				kind, best, worth = k, l, w
			}
		}
	}
	if best == nil {
		return 0, nil
	}
	return kind, best.cut(rest)
}

// fills generates some loads for the remaining demand, for cases with too many loads to list. Each begins with a
// different class and then adds the classes that fit beside it, the class with the fewest sessions per GPU first.
func (c *cover) fills(k *kind, rest []int) []load {
	var loads []load
	for _, first := range c.byWeight {
		if rest[first] == 0 {
			continue
		}
		l := make(load, len(rest))
		c.fill(k, l, first, rest[first])
		for _, i := range c.byWeight {
			c.fill(k, l, i, rest[i])
		}
		if loads = append(loads, l); len(loads) == maxFills {
			break
		}
	}
	return loads
}

// cut removes from a load the sessions for which there is no demand.
func (l load) cut(rest []int) load {
	l = slices.Clone(l)
	for i := range l {
		l[i] = uint8(min(int(l[i]), rest[i]))
	}
	return l
}

// within reduces the full loads of a kind to the remaining demand. It keeps loads that contain a session of one class
// and drops loads that another load contains.
func (c *cover) within(k int, rest []int, class int) []load {
	var cut []load
	for _, l := range c.full[k] {
		if l[class] == 0 {
			continue
		}
		l = l.cut(rest)
		if slices.ContainsFunc(cut, l.in) {
			continue
		}
		cut = append(slices.DeleteFunc(cut, func(o load) bool { return o.in(l) }), l)
	}
	if c.partial {
		return smaller(cut, class)
	}
	return cut
}

// smaller are loads and all smaller ones that contain a session of one class, each once.
func smaller(loads []load, class int) (all []load) {
	known := map[string]bool{}
	var shrink func(l load)
	shrink = func(l load) {
		if known[string(l)] {
			return
		}
		known[string(l)] = true
		all = append(all, l)
		for i := range l {
			if l[i] > 1 || l[i] == 1 && i != class {
				less := slices.Clone(l)
				less[i]--
				shrink(less)
			}
		}
	}
	for _, l := range loads {
		shrink(l)
	}
	return all
}

// in reports whether the other load contains all sessions of this one.
func (l load) in(o load) bool { return noneExceeds(l, o) }

// search visits all plans, the cheapest figures first, and keeps the best. Each step chooses the GPU of one session
// of the first remaining class.
func (c *cover) search(rest, free []int, plan []use, so cost) {
	if c.visits++; c.visits > maxVisits {
		return
	}
	class := slices.IndexFunc(rest, func(n int) bool { return n > 0 })
	if class < 0 {
		if !c.found || so.compare(c.cost) < 0 {
			c.best, c.cost, c.found = slices.Clone(plan), so, true
		}
		return
	}
	least, possible := c.least(rest, free)
	bound := so
	bound[gpusUsed] += least
	if !possible || c.found && bound.compare(c.cost) >= 0 || c.beenCheaper(rest, free, so) {
		return
	}
	for k := range c.kinds {
		if free[k] == 0 {
			continue
		}
		loads := c.within(k, rest, class)
		slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(c.weights[0].of(b, rest), c.weights[0].of(a, rest)) })
		for _, l := range loads {
			take(rest, l, 1)
			free[k]--
			c.search(rest, free, append(plan, use{c.kinds[k], l, 1}), so.plus(c.price(c.kinds[k], l)))
			free[k]++
			take(rest, l, -1)
		}
	}
}

// beenCheaper reports whether the search visited the same point before with no figure dearer, and otherwise records
// the visit. If no figure is dearer, that plan remains at least as good, whatever cost is added to both.
func (c *cover) beenCheaper(rest, free []int, so cost) bool {
	key := make([]byte, 0, 2*(len(rest)+len(free)))
	for _, n := range slices.Concat(rest, free) {
		key = append(key, byte(n), byte(n>>8))
	}
	if before, ok := c.seen[string(key)]; ok && noneExceeds(before[:], so[:]) {
		return true
	}
	c.seen[string(key)] = so
	return false
}

func take(rest []int, l load, sign int) {
	for i, n := range l {
		rest[i] -= sign * int(n)
	}
}

// total adds the counts of a demand or of a load.
func total[N ~int | ~uint8](counts []N) (sum int) {
	for _, n := range counts {
		sum += int(n)
	}
	return sum
}

// noneExceeds reports whether no number exceeds its counterpart in the other list.
func noneExceeds[A, B ~int | ~uint8 | ~int64](list []A, other []B) bool {
	for i := range list {
		if int64(list[i]) > int64(other[i]) {
			return false
		}
	}
	return true
}
