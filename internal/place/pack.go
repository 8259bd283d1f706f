package place

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/prose"
)

// A packer decides how many sessions of which class each GPU gets. All of its data is valid for one slack: the error
// that sharing may cause beyond tolerances.
type packer struct {
	fleet *fleet
	kinds []*kind
	slack int64
	floor cost // the largest errors that some GPU has anyway

	full     [][]load // by kind: the loads to which no session can be added
	complete bool     // full contains all such loads
	refusing bool     // some sessions do not fit

	used, needed int64 // new GPUs of the last plan, and a lower bound on them
	proven       bool  // no plan has fewer

	rows map[*gpuModel]map[*class][]uint32
}

const (
	maxLoad  = 15     // the largest count of a class on a GPU that a tally can hold
	maxTries = 20_000 // loads to visit before the complete list is given up
	rounded  = 2      // how much the sum of a limit and a slack may be off, as each is rounded
)

// steps are the slacks to try with many sessions.
var steps = []int64{0, one / 20, one / 10, one / 5, one / 3, one / 2, one, 2 * one, 4 * one}

// A use is a number of GPUs of one kind that hold the same load.
type use struct {
	kind  *kind
	load  load
	times int
}

// pack decides the load of every card. It leaves out sessions that do not fit with any slack, beginning with the last
// of each class.
func (f *fleet) pack() (*packer, map[*card]load) {
	demand := make([]int, len(f.classes))
	for i, c := range f.classes {
		demand[i] = len(c.waiting)
	}
	kinds := f.kinds()
	p := f.newPacker(kinds, 0)
	plan, ok := p.cover(demand)
	if !ok {
		p = f.newPacker(kinds, impossible)
		p.refusing = true
		plan, demand = p.most(demand)
		slacks := p.slacks(demand)
		for low, high := 0, len(slacks); low < high; {
			middle := (low + high) / 2
			tighter := f.newPacker(kinds, slacks[middle])
			if found, ok := tighter.cover(demand); ok {
				p, plan, high = tighter, found, middle
			} else {
				low = middle + 1
			}
		}
	}
	for i, c := range f.classes {
		c.accepted = demand[i]
	}
	plan = p.refine(plan, demand)
	p.warn(plan)
	return p, assign(plan)
}

// warn states how many GPUs a plan may exceed the fewest possible, unless that is none or no bound is known.
func (p *packer) warn(plan []use) {
	if len(plan) > 0 && !p.proven && !p.refusing && p.needed > 0 {
		p.fleet.warnings = append(p.fleet.warnings, Warning{Text: fmt.Sprintf("the new sessions take %s that had none; they need at least %d, and whether fewer than %d are enough is not known",
			prose.Count(int(p.used), "GPU"), p.needed, p.used)})
	}
}

// slacks returns the slacks to try, in ascending order; the smallest one with which all sessions fit is used. With few
// sessions they are all errors beyond the limits of the sessions, so that no plan has a smaller largest one.
func (p *packer) slacks(demand []int) []int64 {
	if total(demand) > few {
		return steps
	}
	all := []int64{0}
	for _, b := range p.fleet.models {
		for i, c := range p.fleet.classes {
			if demand[i] == 0 {
				continue
			}
			for _, errors := range b.chart(c).first {
				for _, e := range errors {
					if over := e - c.limit(0); over > 0 && e <= c.maxError() {
						all = append(all, over+rounded)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f *fleet) newPacker(kinds []*kind, slack int64) *packer {
	p := &packer{fleet: f, slack: slack, rows: map[*gpuModel]map[*class][]uint32{}}
	for _, k := range kinds {
		fresh := *k
		fresh.fits, fresh.arranged = map[string]bool{}, map[string]arrangement{}
		takesOne := func(c *class) bool {
			single := make(load, len(f.classes))
			single[c.id] = 1
			return len(c.waiting) > 0 && p.fit(&fresh, single)
		}
		if slices.ContainsFunc(f.classes, takesOne) {
			p.kinds = append(p.kinds, &fresh)
		}
	}
	p.listLoads()
	return p
}

// fill adds sessions of a class to a load, until there are as many as the limit or no more fit.
func (p *packer) fill(k *kind, l load, class, limit int) {
	for int(l[class]) < min(limit, maxLoad) {
		if l[class]++; !p.fit(k, l) {
			l[class]--
			return
		}
	}
}

// most reduces the demand to what fits: class by class, as many sessions as fit beside the classes before.
func (p *packer) most(demand []int) (plan []use, placed []int) {
	if plan, ok := p.cover(demand); ok {
		return plan, demand
	}
	if !p.complete {
		c := p.newCover(demand)
		rest := slices.Clone(demand)
		plan, _ := c.greedy(rest, c.free(), false)
		for i := range rest {
			rest[i] = demand[i] - rest[i]
		}
		return plan, rest
	}
	placed = make([]int, len(demand))
	for i := range demand {
		low, high := 0, demand[i]
		for low < high {
			placed[i] = (low + high + 1) / 2
			if found, ok := p.cover(placed); ok {
				low, plan = placed[i], found
			} else {
				high = placed[i] - 1
			}
		}
		placed[i] = low
	}
	return plan, placed
}

// listLoads lists, by kind, the loads to which no session can be added, unless there are too many.
func (p *packer) listLoads() {
	most, tried, now := make([]int, len(p.fleet.classes)), 0, make(load, len(p.fleet.classes))
	for i, c := range p.fleet.classes {
		most[i] = min(len(c.waiting), maxLoad)
	}
	for i, k := range p.kinds {
		p.full = append(p.full, nil)
		var grow func(from int)
		grow = func(from int) {
			isFull := true
			for c := range now {
				if tried++; int(now[c]) == most[c] || tried > maxTries {
					continue
				}
				now[c]++
				if p.fit(k, now) {
					isFull = false
					if c >= from {
						grow(c)
					}
				}
				now[c]--
			}
			if isFull && total(now) > 0 {
				p.full[i] = append(p.full[i], slices.Clone(now))
			}
		}
		grow(0)
	}
	p.complete = tried <= maxTries
}

// wants returns the sessions of a load with their possible profiles.
func (p *packer) wants(k *kind, l load) []want {
	var wants []want
	for i, count := range l {
		if count == 0 {
			continue
		}
		c := p.fleet.classes[i]
		w := want{class: c, count: int(count), rows: p.rowsOf(k.model, c)}
		if !c.mayUse(k.cards[0]) {
			w.rows = make([]uint32, len(k.model.clocks))
		}
		wants = append(wants, w)
	}
	return wants
}

// rowsOf returns, by clock, the profiles in which a class stays within its limit.
func (p *packer) rowsOf(b *gpuModel, c *class) []uint32 {
	if known, ok := p.rows[b][c]; ok {
		return known
	}
	rows := make([]uint32, len(b.clocks))
	for row, errors := range b.chart(c).first {
		if !b.offers(c, row) || c.slot >= 0 { // what has a slot is not packed
			continue
		}
		for clock, e := range errors {
			if e <= c.limit(p.slack) {
				rows[clock] |= 1 << row
			}
		}
	}
	if p.rows[b] == nil {
		p.rows[b] = map[*class][]uint32{}
	}
	p.rows[b][c] = rows
	return rows
}

// assign assigns loads to cards: within each kind, the fullest load first.
func assign(plan []use) map[*card]load {
	loads, next := map[*card]load{}, map[*kind]int{}
	slices.SortStableFunc(plan, func(a, b use) int {
		return cmp.Or(cmp.Compare(total(b.load), total(a.load)), slices.Compare(b.load, a.load))
	})
	for _, u := range plan {
		for range u.times {
			loads[u.kind.cards[next[u.kind]]] = u.load
			next[u.kind]++
		}
	}
	return loads
}
