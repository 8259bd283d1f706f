package place

import (
	"slices"

	"cosplay/internal/resource"
)

// A shelf is a slice or a GPU instance that sessions share, with the memory in MiB and the number of sessions for which
// they leave room.
type shelf struct{ row, start, freeMiB, seats int }

// shelves returns the slices and the GPU instances of a card that sessions share already.
func (c *card) shelves() (all []shelf) {
	var seen []resource.Slice
	for _, s := range c.occupants {
		row := slices.IndexFunc(c.model.profiles, func(p resource.Profile) bool { return p.Name == s.slice.Profile })
		instance := s.slice.Instance()
		if row < 0 || !s.slice.Shared() || slices.Contains(seen, instance) {
			continue
		}
		seen = append(seen, instance)
		at := shelf{row, s.slice.Start, c.freeMiB(s.slice), maxLoad}
		if s.slice.Divides() {
			foreign := slices.ContainsFunc(c.Foreign, func(l resource.LiveSlice) bool { return within(instance)(l.Slice) })
			if c.NoSlices || foreign { // how much memory the latter uses is not known
				continue
			}
			at.seats = len(c.freeStarts(s.slice))
		}
		all = append(all, at)
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
	open, size, most, found := k.shelvesOf(row), k.model.profiles[row].MemoryMiB, k.model.seats(row), false
	var add func(rest load, fills []load)
	add = func(rest load, fills []load) {
		needed := 0
		for class, n := range rest {
			needed += int(n) * k.classes[class].target.MemoryMiB
		}
		least := len(fills) + max((needed+size-1)/size, (total(rest)+most-1)/most)
		if found && max(least, len(open)) >= max(len(best), len(open)) {
			return
		}
		if needed == 0 {
			best, found = slices.Clone(fills), true
			return
		}
		at, first := shelf{freeMiB: size, seats: most}, slices.IndexFunc(rest, func(n uint8) bool { return n > 0 })
		if len(fills) < len(open) {
			at, first = open[len(fills)], len(rest) // any class may be left out
		}
		k.fills(rest, at, first, func(fill load) {
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

// fills calls a function with each choice of sessions that fits, to which none of the rest can be added. At least one is
// of the class `first`, if there is such a class.
func (k *kind) fills(rest load, at shelf, first int, yield func(load)) {
	fill := make(load, len(rest))
	var choose func(class, free, seats int)
	choose = func(class, free, seats int) {
		if class == len(rest) {
			addable := func(i int) bool {
				return rest[i] > fill[i] && k.classes[i].target.MemoryMiB <= free && seats > 0
			}
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
		for n := min(int(rest[class]), free/max(1, size), seats); n >= least; n-- {
			fill[class] = uint8(n)
			choose(class+1, free-n*size, seats-n)
		}
		fill[class] = 0
	}
	choose(0, at.freeMiB, at.seats)
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
	if !f.kind.model.sharesIn(c, row) {
		next = t.plus(f.kind.model.parents[row])
	} else {
		before := f.kind.newSlices(row, f.shared[row])
		f.shared[row][c.id]++
		next = t
		if f.kind.newSlices(row, f.shared[row]) > before {
			next = t.plus(f.kind.model.parents[row])
		}
	}
	_, legal = f.kind.layouts[next]
	return next, legal
}

// remove takes back what put has added.
func (f filling) remove(c *class, row int) {
	if f.kind.model.sharesIn(c, row) {
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

// A seat is a slice or a GPU instance that newcomers share, with the number of sessions of each class that get it.
type seat struct {
	row, start int
	room       load
	compute    []int // where parts can begin
}

// seats returns what the newcomers of an arrangement share. It takes the starts of new slices.
func (c *card) seats(k *kind, s arrangement, starts [][]int) (all []seat) {
	for row, fills := range s.stacks {
		open, parent := k.shelvesOf(row), k.model.parents[row]
		for i, fill := range fills {
			at := seat{row: row, room: slices.Clone(fill)}
			if i < len(open) {
				at.start = open[i].start
			} else {
				at.start, starts[parent] = starts[parent][0], starts[parent][1:]
			}
			p := k.model.profiles[row]
			at.compute = c.freeStarts(resource.Slice{Host: c.Host, GPU: c.UUID, Profile: p.Name, Start: at.start, Size: p.MemorySlices})
			all = append(all, at)
		}
	}
	return all
}

// sit puts a newcomer into a slice or a GPU instance that it shares.
func sit(seats []seat, n newcomer, slice *resource.Slice) {
	for i := range seats {
		at := &seats[i]
		if at.row != n.row || at.room[n.class.id] == 0 {
			continue
		}
		at.room[n.class.id]--
		if slice.Start = at.start; slice.Divides() {
			slice.ComputeStart, at.compute = at.compute[0], at.compute[1:]
		}
		return
	}
	panic("no seat for " + n.class.target.Name) // the arrangement has one for each
}
