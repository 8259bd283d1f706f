package place

import (
	"slices"

	"cosplay/internal/resource"
)

// A shelf is a slice that sessions share, with the memory in MiB that they leave to others.
type shelf struct{ row, start, freeMiB int }

// shelves returns the slices of a card that sessions share already.
func (c *card) shelves() (all []shelf) {
	for _, s := range c.own() {
		row := slices.IndexFunc(c.model.profiles, func(p resource.Profile) bool { return p.Name == s.Profile })
		shared := slices.ContainsFunc(c.occupants, func(o occupant) bool { return o.slice.Shared() && o.slice.Place() == s })
		if shared && row >= 0 {
			all = append(all, shelf{row, s.Start, c.freeMiB(s)})
		}
	}
	return all
}

// shelvesOf returns the open shelves of a profile.
func (k *kind) shelvesOf(row int) []shelf {
	return slices.DeleteFunc(slices.Clone(k.shelves), func(s shelf) bool { return s.row != row })
}

// newSlices is the smallest number of slices of a profile that have to be created for sessions that share them.
func (k *kind) newSlices(row int, l load) int {
	return max(0, len(k.stack(row, l))-len(k.shelvesOf(row)))
}

// stack divides sessions among slices of a profile that they share: first the open shelves, then as few new slices as
// possible.
func (k *kind) stack(row int, l load) (best []load) {
	key := string(append(slices.Clone(l), uint8(row)))
	if known, ok := k.stacked[key]; ok {
		return known
	}
	open, size, found := k.shelvesOf(row), k.model.profiles[row].MemoryMiB, false
	var add func(rest load, fills []load)
	add = func(rest load, fills []load) {
		needed := 0
		for class, n := range rest {
			needed += int(n) * k.classes[class].target.MemoryMiB
		}
		least := len(fills) + (needed+size-1)/size
		if found && max(least, len(open)) >= max(len(best), len(open)) {
			return
		}
		if needed == 0 {
			best, found = slices.Clone(fills), true
			return
		}
		free, first := size, slices.IndexFunc(rest, func(n uint8) bool { return n > 0 })
		if len(fills) < len(open) {
			free, first = open[len(fills)].freeMiB, len(rest) // any class may be left out
		}
		k.fills(rest, free, first, func(fill load) {
			left := slices.Clone(rest)
			for class, n := range fill {
				left[class] -= n
			}
			add(left, append(slices.Clone(fills), fill))
		})
	}
	add(l, nil)
	k.stacked[key] = best
	return best
}

// fills calls a function with each choice of sessions that fits into free MiB, to which none of the rest can be added. At
// least one is of the class `first`, if there is such a class.
func (k *kind) fills(rest load, free, first int, yield func(load)) {
	fill := make(load, len(rest))
	var choose func(class, free int)
	choose = func(class, free int) {
		if class == len(rest) {
			addable := func(i int) bool { return rest[i] > fill[i] && k.classes[i].target.MemoryMiB <= free }
			for i := range rest {
				if addable(i) {
					return
				}
			}
			yield(slices.Clone(fill))
			return
		}
		size, least := k.classes[class].target.MemoryMiB, 0
		if class == first {
			least = 1
		}
		for n := min(int(rest[class]), free/max(1, size)); n >= least; n-- {
			fill[class] = uint8(n)
			choose(class+1, free-n*size)
		}
		fill[class] = 0
	}
	choose(0, free)
}

// A filling is a set of slices that a search gives to sessions. It has the sessions that share slices, by profile.
type filling struct {
	kind   *kind
	wants  []want
	shared []load
}

func newFilling(k *kind, wants []want) filling {
	f := filling{kind: k, wants: wants}
	for range k.model.profiles {
		f.shared = append(f.shared, make(load, len(k.classes)))
	}
	return f
}

// put adds a session in a slice of a profile to a tally, and reports whether the GPU can hold that.
func (f filling) put(c *class, row int, t tally) (next tally, legal bool) {
	if !c.shares() {
		next = t.plus(row)
	} else {
		before := f.kind.newSlices(row, f.shared[row])
		f.shared[row][c.id]++
		next = t
		if f.kind.newSlices(row, f.shared[row]) > before {
			next = t.plus(row)
		}
	}
	_, legal = f.kind.layouts[next]
	return next, legal
}

// remove takes back what put has added.
func (f filling) remove(c *class, row int) {
	if c.shares() {
		f.shared[row][c.id]--
	}
}

// packs reports whether slices exist for the remaining wants. The tally already has `placed` sessions of want i, in
// profiles up to `row`.
func (f filling) packs(rows []uint32, i, placed, row int, t tally) bool {
	if i == len(f.wants) {
		return true
	}
	if placed == f.wants[i].count {
		return f.packs(rows, i+1, 0, 0, t)
	}
	for ; row < f.kind.model.whole(); row++ {
		if rows[i]>>row&1 == 0 {
			continue
		}
		next, legal := f.put(f.wants[i].class, row, t)
		done := legal && f.packs(rows, i, placed+1, row, next)
		f.remove(f.wants[i].class, row)
		if done {
			return true
		}
	}
	return false
}

// A seat is a slice that newcomers share, with the number of sessions of each class that get it.
type seat struct {
	row, start int
	room       load
}

// seats returns the slices that the newcomers of an arrangement share. It takes the starts of new ones.
func (k *kind) seats(s arrangement, starts [][]int) (all []seat) {
	for row, fills := range s.stacks {
		open := k.shelvesOf(row)
		for i, fill := range fills {
			at := seat{row: row, room: slices.Clone(fill)}
			if i < len(open) {
				at.start = open[i].start
			} else {
				at.start, starts[row] = starts[row][0], starts[row][1:]
			}
			all = append(all, at)
		}
	}
	return all
}

// startOf returns the first slot of the slice that a newcomer shares.
func startOf(seats []seat, n newcomer) int {
	for _, at := range seats {
		if at.row == n.row && at.room[n.class.id] > 0 {
			at.room[n.class.id]--
			return at.start
		}
	}
	panic("no seat for " + n.class.target.Name) // the arrangement has one for each
}
