package place

import (
	"cmp"
	"math"
	"slices"
)

const (
	maxLoads  = 3000   // loads of one kind beyond which they are no longer all listed
	maxVisits = 20_000 // partial plans that the exact search looks at
	few       = 40     // sessions up to which a plan is also searched for its errors
)

// A cover is the search for the fewest GPUs that take a demand.
type cover struct {
	*packer
	full     [][]load // by kind: the loads to which nothing can be added
	complete bool     // full holds all of them
	weights  []weights

	best   []use
	cost   cost
	found  bool
	visits int
	seen   map[string]cost
}

// cover finds GPUs for the whole demand, by class; false if there are too few.
func (p *packer) cover(demand []int) ([]use, bool) {
	if total(demand) == 0 {
		return nil, true
	}
	c := &cover{packer: p, complete: true, seen: map[string]cost{}}
	for _, k := range p.kinds {
		loads, all := p.loads(k, demand)
		c.full = append(c.full, loads)
		c.complete = c.complete && all
	}
	c.weigh(demand)
	free := c.free()
	least, possible := c.least(demand, free)
	if !possible {
		return nil, false
	}
	c.greedy(demand, slices.Clone(free))
	if c.complete && (!c.found || c.cost[gpusUsed] > least || total(demand) <= few) {
		c.search(demand, free, nil, cost{})
	}
	return c.best, c.found
}

// free counts the GPUs of each kind.
func (c *cover) free() []int {
	free := make([]int, len(c.kinds))
	for i, k := range c.kinds {
		free[i] = len(k.cards)
	}
	return free
}

// loads lists the loads of a kind within demand to which nothing can be added,
// and whether these are all.
func (p *packer) loads(k *kind, demand []int) ([]load, bool) {
	var full []load
	tried, now := 0, make(load, len(demand))
	var grow func(from int)
	grow = func(from int) {
		tried++
		more := false
		for c := range demand {
			if int(now[c]) == demand[c] || tried > maxLoads {
				continue
			}
			now[c]++
			if p.fit(k, now) {
				more = true
				if c >= from {
					grow(c)
				}
			}
			now[c]--
		}
		if !more && now.sum() > 0 {
			full = append(full, slices.Clone(now))
		}
	}
	grow(0)
	return full, tried <= maxLoads
}

// greedy takes the load worth most, as often as it goes, until all is placed.
func (c *cover) greedy(demand, free []int) {
	rest := slices.Clone(demand)
	var plan []use
	var so cost
	for total(rest) > 0 {
		kind, best := c.worthMost(rest, free)
		if best == nil {
			return
		}
		times := free[kind]
		for i, n := range best {
			if n > 0 {
				times = min(times, rest[i]/int(n))
			}
		}
		for i, n := range best {
			rest[i] -= times * int(n)
		}
		free[kind] -= times
		plan = append(plan, use{c.kinds[kind], best, times})
		so[gpusUsed] += int64(times * c.kinds[kind].price)
	}
	c.best, c.cost, c.found = plan, so, true
	if total(demand) <= few {
		for _, u := range plan {
			for range u.times {
				c.cost = c.cost.plus(c.seat(u.kind, u.load).cost)
			}
		}
		c.cost[gpusUsed] = so[gpusUsed]
	}
}

// worthMost picks the next GPU and its load: GPUs in use first, then where the
// load is worth most.
func (c *cover) worthMost(rest, free []int) (kind int, best load) {
	worth := 0.0
	for k := range c.kinds {
		if free[k] == 0 || best != nil && c.kinds[kind].price == 0 {
			continue
		}
		for _, l := range c.within(k, rest, -1) {
			if w := c.weights[0].of(l); w > worth+tiny {
				kind, best, worth = k, l, w
			}
		}
	}
	return kind, best
}

// within cuts the full loads of a kind down to what is left to place, without
// those that another holds too. Where the full loads are not all known it fills
// one up, class by class. With a class, only loads that hold one of it count.
func (c *cover) within(k int, rest []int, class int) []load {
	var cut []load
	for _, l := range c.full[k] {
		l = slices.Clone(l)
		for i := range l {
			l[i] = uint8(min(int(l[i]), rest[i]))
		}
		if !c.complete {
			c.fill(c.kinds[k], l, rest)
		}
		if l.sum() == 0 || class >= 0 && l[class] == 0 {
			continue
		}
		if slices.ContainsFunc(cut, l.in) {
			continue
		}
		cut = append(slices.DeleteFunc(cut, func(o load) bool { return o.in(l) }), l)
	}
	return cut
}

// fill adds what is left to a load while it fits.
func (c *cover) fill(k *kind, l load, rest []int) {
	for i := range rest {
		for int(l[i]) < rest[i] {
			l[i]++
			if !c.fit(k, l) {
				l[i]--
				break
			}
		}
	}
}

// in reports whether the other load holds all of this one.
func (l load) in(o load) bool {
	for i := range l {
		if l[i] > o[i] {
			return false
		}
	}
	return true
}

// search goes through all plans, cheapest figures first, and keeps the best. The
// first class that is left has to sit somewhere, so each step settles the GPU
// of one of its sessions.
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
		slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(c.weights[0].of(b), c.weights[0].of(a)) })
		for _, l := range loads {
			take(rest, l, 1)
			free[k]--
			c.search(rest, free, append(plan, use{c.kinds[k], l, 1}), so.plus(c.seat(c.kinds[k], l).cost))
			free[k]++
			take(rest, l, -1)
		}
	}
}

// beenCheaper reports whether the search was at the same point before at no
// figure dearer, and notes it otherwise.
func (c *cover) beenCheaper(rest, free []int, so cost) bool {
	key := make([]byte, 0, 2*(len(rest)+len(free)))
	for _, n := range rest {
		key = append(key, byte(n), byte(n>>8))
	}
	for _, n := range free {
		key = append(key, byte(n), byte(n>>8))
	}
	if before, ok := c.seen[string(key)]; ok && before.nowhereDearer(so) {
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

func total(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

const tiny = 1e-9

// weights value a session of each class so that no new GPU takes more than 1:
// what is worth more than n needs more than n GPUs.
type weights []float64

func (w weights) of(l load) float64 {
	sum := 0.0
	for i, n := range l {
		sum += w[i] * float64(n)
	}
	return sum
}

// weigh makes weights for all classes together, then for each class alone.
// Where not all loads are known it bounds nothing.
func (c *cover) weigh(demand []int) {
	most := make([]float64, len(demand))
	for _, loads := range c.full {
		for _, l := range loads {
			for i, n := range l {
				most[i] = max(most[i], float64(n))
			}
		}
	}
	all := make(weights, len(demand))
	for i := range all {
		alone := make(weights, len(demand))
		if demand[i] > 0 && most[i] > 0 {
			all[i], alone[i] = 1/most[i], 1/most[i]
			c.weights = append(c.weights, alone)
		}
	}
	c.weights = append([]weights{all}, c.weights...)
	for _, w := range c.weights {
		heaviest := 0.0
		for k, loads := range c.full {
			for _, l := range loads {
				if c.kinds[k].price == 1 {
					heaviest = max(heaviest, w.of(l))
				}
			}
		}
		for i := range w {
			if heaviest > 0 {
				w[i] /= heaviest
			}
		}
	}
}

// least is a number of new GPUs below which the rest cannot be placed, and
// whether there are as many.
func (c *cover) least(rest, free []int) (gpus int64, possible bool) {
	spare := int64(0)
	for k := range c.kinds {
		spare += int64(free[k] * c.kinds[k].price)
	}
	if !c.complete {
		return 0, true
	}
	for _, w := range c.weights {
		open := 0.0
		for i, n := range rest {
			open += w[i] * float64(n)
		}
		for k := range c.kinds {
			if c.kinds[k].price == 0 && free[k] > 0 {
				open -= float64(free[k]) * c.heaviest(k, w)
			}
		}
		gpus = max(gpus, int64(math.Ceil(open-tiny)))
	}
	return gpus, gpus <= spare
}

// heaviest is the most that a GPU of a kind takes.
func (c *cover) heaviest(k int, w weights) float64 {
	most := 0.0
	for _, l := range c.full[k] {
		most = max(most, w.of(l))
	}
	return most
}
