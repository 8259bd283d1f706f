package place

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// A family is classes that may have the same profiles at the same clocks on every GPU, so that a plan may exchange
// their sessions. Sessions of many slightly different targets form fewer families.
type family struct {
	members []*class
	rows    map[*gpuModel][]uint32 // by clock: the profiles, one bit each
	wanted  int                    // sessions
}

// kin has everything else in which the classes of a family are equal.
type kin struct {
	host, gpu, model string
	sharing          resource.Sharing
	acceptsError     bool
	devices          int
	single           bool
}

func (c *class) kin() kin {
	return kin{c.place(), c.gpu, c.model, c.sharing, c.acceptsError(), c.devices, c.single}
}

// families returns the classes with demand in families. No class may share slices.
func (p *packer) families(demand []int) (all []*family) {
	for i, c := range p.fleet.classes {
		if demand[i] == 0 {
			continue
		}
		f := &family{members: []*class{c}, rows: map[*gpuModel][]uint32{}, wanted: demand[i]}
		for _, k := range p.kinds {
			f.rows[k.model] = p.rowsOf(k.model, c)
		}
		same := slices.IndexFunc(all, func(o *family) bool { return o.members[0].kin() == c.kin() && o.equals(f) })
		if same < 0 {
			all = append(all, f)
			continue
		}
		all[same].members, all[same].wanted = append(all[same].members, c), all[same].wanted+f.wanted
	}
	return all
}

func (f *family) equals(o *family) bool {
	for m, rows := range f.rows {
		if !slices.Equal(rows, o.rows[m]) {
			return false
		}
	}
	return true
}

// of returns a packer for families in place of classes, with the same kinds and no list of loads.
func (p *packer) of(all []*family) *packer {
	f := *p.fleet
	f.classes = nil
	q := &packer{fleet: &f, slack: p.slack, rows: map[*gpuModel]map[*class][]uint32{}, full: make([][]load, len(p.kinds))}
	for i, one := range all {
		c := *one.members[0]
		c.id, c.waiting = i, make([]int, one.wanted)
		f.classes = append(f.classes, &c)
		for m, rows := range one.rows {
			if q.rows[m] == nil {
				q.rows[m] = map[*class][]uint32{}
			}
			q.rows[m][&c] = rows
		}
	}
	for _, k := range p.kinds {
		fresh := *k
		fresh.classes, fresh.stacked, fresh.fits, fresh.arranged = f.classes, map[string][]load{}, map[string]bool{}, map[string]arrangement{}
		q.kinds = append(q.kinds, &fresh)
	}
	return q
}

// divide gives the places of families to the sessions of their classes. Sessions that prefer a higher clock come first
// in each family, so that sessions on a GPU prefer similar clocks.
func (c *cover) divide(q *packer, all []*family, merged []use, demand []int) (plan []use, so cost) {
	queues := make([][]int, len(all)) // of classes
	for i, f := range all {
		members := slices.Clone(f.members)
		slices.SortFunc(members, func(a, b *class) int {
			return cmp.Or(cmp.Compare(b.alone.ClockMHz, a.alone.ClockMHz), cmp.Compare(a.id, b.id))
		})
		for _, m := range members {
			queues[i] = append(queues[i], slices.Repeat([]int{m.id}, demand[m.id])...)
		}
	}
	for _, u := range merged {
		k := c.kinds[slices.Index(q.kinds, u.kind)]
		for range u.times {
			l := make(load, len(demand))
			for i, n := range u.load {
				for _, id := range queues[i][:n] {
					l[id]++
				}
				queues[i] = queues[i][n:]
			}
			plan, so = append(plan, use{k, l, 1}), so.plus(c.price(k, l))
		}
	}
	return plan, so
}
