package place

import (
	"cmp"
	"slices"
)

// A packer decides which GPU takes how many of which class. Everything in it
// holds for one slack, the error that sharing may cost beyond tolerances.
type packer struct {
	fleet *fleet
	kinds []*kind
	slack int64
	rows  map[*board]map[*class][]uint32
}

// slacks are tried in order until everybody has a place.
var slacks = []int64{0, one / 20, one / 10, one / 5, one / 3, one / 2, one, 2 * one, 4 * one, impossible}

// A use is a number of GPUs of one kind that take the same load.
type use struct {
	kind  *kind
	load  load
	times int
}

// pack decides the load of every card. Sessions that do not fit even if sharing
// may cost anything are left out, the last of each class first.
func (f *fleet) pack() (*packer, map[*card]load) {
	demand := make([]int, len(f.classes))
	for i, c := range f.classes {
		demand[i] = len(c.waiting)
	}
	kinds := f.kinds()
	strict := f.newPacker(kinds, slacks[0])
	plan, ok := strict.cover(demand)
	for i := 1; !ok; i++ {
		if i == 1 {
			demand = f.newPacker(kinds, impossible).most(demand)
		}
		strict = f.newPacker(kinds, slacks[i])
		plan, ok = strict.cover(demand)
	}
	for i, c := range f.classes {
		c.accepted = demand[i]
	}
	return strict, assign(plan)
}

func (f *fleet) newPacker(kinds []*kind, slack int64) *packer {
	p := &packer{fleet: f, slack: slack, rows: map[*board]map[*class][]uint32{}}
	for _, k := range kinds {
		fresh := *k
		fresh.fits, fresh.seated = map[string]bool{}, map[string]seating{}
		if slices.ContainsFunc(f.classes, func(c *class) bool { return len(c.waiting) > 0 && p.takesOne(&fresh, c) }) {
			p.kinds = append(p.kinds, &fresh)
		}
	}
	return p
}

func (p *packer) takesOne(k *kind, c *class) bool {
	single := make(load, len(p.fleet.classes))
	single[c.id] = 1
	return c.mayUse(k.cards[0]) && p.fit(k, single)
}

// most cuts demand down to what can be placed: class by class as many as fit
// beside the classes before.
func (p *packer) most(demand []int) []int {
	if _, ok := p.cover(demand); ok {
		return demand
	}
	placed := make([]int, len(demand))
	for i := range demand {
		low, high := 0, demand[i]
		for low < high {
			placed[i] = (low + high + 1) / 2
			if _, ok := p.cover(placed); ok {
				low = placed[i]
			} else {
				high = placed[i] - 1
			}
		}
		placed[i] = low
	}
	return placed
}

// wants spells out a load.
func (p *packer) wants(k *kind, l load) []want {
	var wants []want
	for i, count := range l {
		if count == 0 {
			continue
		}
		c := p.fleet.classes[i]
		w := want{class: c, count: int(count), rows: p.rowsOf(k.board, c)}
		if !c.mayUse(k.cards[0]) {
			w.rows = make([]uint32, len(k.board.clocks))
		}
		wants = append(wants, w)
	}
	return wants
}

// rowsOf gives, by clock, the profiles in which a class stays within its limit.
func (p *packer) rowsOf(b *board, c *class) []uint32 {
	if known, ok := p.rows[b][c]; ok {
		return known
	}
	rows := make([]uint32, len(b.clocks))
	for row, errors := range b.chart(c).first {
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

// assign hands loads to cards: in each kind the fullest first.
func assign(plan []use) map[*card]load {
	loads, next := map[*card]load{}, map[*kind]int{}
	slices.SortStableFunc(plan, func(a, b use) int {
		return cmp.Or(cmp.Compare(b.load.sum(), a.load.sum()), slices.Compare(b.load, a.load))
	})
	for _, u := range plan {
		for range u.times {
			loads[u.kind.cards[next[u.kind]]] = u.load
			next[u.kind]++
		}
	}
	return loads
}
