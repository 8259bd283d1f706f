package place

import (
	"cmp"
	"math"
	"slices"
)

// A relaxed packing may divide GPUs. Its loads are generated: the loads that improve it are found by the value that each
// session has in the packing so far, in each layout at each clock. So it needs no list of loads, and is a lower bound
// for any number of classes. Its classes stand for families of equal rows.
type relaxed struct {
	*packer
	fresh   []int // kinds of GPUs that are not in use
	loads   []load
	kindOf  []int // by load
	known   map[string]bool
	crowded map[*kind][]tally // the layouts to which no slice can be added
}

const (
	maxRounds = 60
	coarse    = 1e-6 // rounding of a sum of many values
	unbounded = 1e9  // more GPUs than there are
)

// relaxes reports whether a relaxed packing helps: for more sessions than the search compares by all costs, none of
// which share slices. While sessions are being refused, too many demands are tried.
func (c *cover) relaxes(demand []int) bool {
	return !c.careful && !(c.complete && c.refusing) && !slices.ContainsFunc(c.fleet.classes, func(o *class) bool { return demand[o.id] > 0 && o.shares() })
}

// relax packs by a relaxed packing, and keeps that plan if it is better. It returns a lower bound on the new GPUs.
func (c *cover) relax(demand, free []int) (least int64) {
	all := c.families(demand)
	x := c.newRelaxed(all)
	rest, left := make([]int, len(all)), slices.Clone(free)
	for i, f := range all {
		rest[i] = f.wanted
	}
	wanted := slices.Clone(rest)
	var plan []use
	if len(x.fresh) < len(x.kinds) { // first the GPUs that are already in use
		plan, _ = x.newCover(rest).greedy(rest, left, true)
	}
	p := x.solve(rest, left)
	least = x.bound(wanted, free, p.prices[:len(all)])
	more, ok := x.plan(rest, left, p)
	if !ok {
		return least
	}
	if divided, so := c.divide(x.packer, all, append(plan, more...), demand); !c.found || so.compare(c.cost) < 0 {
		c.best, c.cost, c.found = divided, so, true
	}
	return least
}

func (p *packer) newRelaxed(all []*family) *relaxed {
	x := &relaxed{packer: p.of(all), known: map[string]bool{}, crowded: map[*kind][]tally{}}
	for i, k := range x.kinds {
		if k.price > 0 {
			x.fresh = append(x.fresh, i)
		}
		for t := range k.layouts {
			isFull := true
			for row := range k.model.inst {
				_, more := k.layouts[t.plus(row)]
				isFull = isFull && !more
			}
			if isFull {
				x.crowded[k] = append(x.crowded[k], t)
			}
		}
		slices.Sort(x.crowded[k])
	}
	return x
}

// offer calls a function with the most valuable load of a kind in each layout and at each clock, of what is demanded.
func (x *relaxed) offer(k *kind, demand []int, values []float64, yield func(value float64, fill func() load)) {
	classes := x.fleet.classes
	wants := x.wants(k, slices.Repeat(load{1}, len(classes)))
	order := descending(values)
	order = slices.DeleteFunc(order, func(i int) bool { return demand[i] == 0 || values[i] <= 0 })
	var before []uint32
	for clock, ok := range k.clockOK {
		rows := rowsAt(wants, clock)
		if !ok || slices.Equal(rows, before) {
			continue
		}
		before = rows
		picks := make([][]int, k.model.inst) // by profile: the most valuable sessions
		for _, i := range order {
			for row, parent := range k.model.parents {
				if last := len(picks[parent]) - 1; last >= 0 && picks[parent][last] == i {
					continue // it has another row of this profile
				}
				for n := demand[i]; n > 0 && rows[i]>>row&1 == 1 && len(picks[parent]) < k.model.spec.ComputeSlices; n-- {
					picks[parent] = append(picks[parent], i)
				}
			}
			if rows[i]>>k.model.whole()&1 == 1 && k.whole && !k.sharing.Shares() && (!k.beside || classes[i].acceptsError()) {
				yield(values[i], func() load { return make(load, len(classes)).plus(i) })
			}
		}
		for _, t := range x.crowded[k] {
			sum := 0.0
			x.each(t, picks, func(i int) { sum += values[i] })
			yield(sum, func() load {
				l := make(load, len(classes))
				x.each(t, picks, func(i int) { l.plus(i) })
				return l.cut(demand)
			})
		}
	}
}

// each calls a function with the sessions in a layout.
func (x *relaxed) each(t tally, picks [][]int, yield func(class int)) {
	for row, all := range picks {
		for _, i := range all[:min(len(all), t.count(row))] {
			yield(i)
		}
	}
}

// descending returns the indexes of a list, the largest number first.
func descending(list []float64) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(list[j], list[i]) })
	return order
}

// plus adds a session of a class to a load.
func (l load) plus(class int) load { l[class]++; return l }

// add makes a load of a kind a column, unless it is one.
func (x *relaxed) add(kind int, l load) bool {
	key := string(append(slices.Clone(l), uint8(kind), uint8(kind>>8)))
	if x.known[key] || total(l) == 0 {
		return false
	}
	x.known[key], x.loads, x.kindOf = true, append(x.loads, l), append(x.kindOf, kind)
	return true
}

// column is a load of a kind, of what is demanded.
func (x *relaxed) column(i int, demand []int) column {
	c := column{cost: 1}.holding(x.loads[i], demand)
	c.rows, c.shares = append(c.rows, len(demand)+slices.Index(x.fresh, x.kindOf[i])), append(c.shares, 1)
	return c
}

// solve packs a demand on the GPUs that are not in use, with the loads that it generates.
func (x *relaxed) solve(demand, free []int) *program {
	supply := make([]int, 0, len(x.fresh))
	for _, k := range x.fresh {
		supply = append(supply, free[k])
	}
	p := newProgram(demand, supply)
	for range maxRounds {
		for i := len(p.columns); i < len(x.loads); i++ {
			p.columns = append(p.columns, x.column(i, demand))
		}
		if !p.solve() {
			break
		}
		more := false
		for i, k := range x.fresh {
			x.offer(x.kinds[k], demand, p.prices[:len(demand)], func(value float64, fill func() load) {
				if value+p.prices[len(demand)+i] > 1+coarse {
					more = x.add(k, fill()) || more
				}
			})
		}
		if !more {
			break
		}
	}
	return p
}

// bound returns a number of new GPUs that a demand needs at least. It holds for any values of sessions that are not
// negative: the values of all sessions, less what the GPUs hold beyond their price, or with values so low that no new
// GPU holds more than 1.
func (x *relaxed) bound(demand, free []int, prices []float64) int64 {
	values := make([]float64, len(prices))
	for i := range prices {
		values[i] = max(0, prices[i])
	}
	most, heaviest := make([]float64, len(x.kinds)), 1.0
	for i, k := range x.kinds {
		x.offer(k, demand, values, func(value float64, _ func() load) { most[i] = max(most[i], value) })
		if k.price > 0 {
			heaviest = max(heaviest, most[i])
		}
	}
	best := 0.0
	for _, scale := range []float64{1, heaviest} {
		sum := 0.0
		for i, n := range demand {
			sum += float64(n) * values[i] / scale
		}
		for i, k := range x.kinds {
			sum -= float64(free[i]) * max(0, most[i]/scale-float64(k.price))
		}
		best = max(best, sum)
	}
	return int64(math.Ceil(min(best, unbounded) - coarse))
}

// plan rounds a relaxed packing: it takes the whole GPUs of it, or else the one that is nearest to a whole one, and
// relaxes the rest again. It returns false if some sessions have no room.
func (x *relaxed) plan(rest, free []int, p *program) (plan []use, ok bool) {
	for total(rest) > 0 {
		uses, met := p.uses()
		if !met {
			return nil, false
		}
		before := len(plan)
		grab := func(i int) {
			l, k := x.loads[i].cut(rest), x.kindOf[i]
			if total(l) > 0 && free[k] > 0 {
				take(rest, l, 1)
				free[k]--
				plan = append(plan, use{x.kinds[k], l, 1})
			}
		}
		for i, n := range uses {
			for range int(n + coarse) {
				if noneExceeds(x.loads[i], rest) {
					grab(i)
				}
			}
		}
		if order := descending(uses); len(plan) == before && len(order) > 0 {
			grab(order[0])
		}
		if len(plan) == before {
			return nil, false
		}
		p = x.solve(rest, free)
	}
	return plan, true
}
