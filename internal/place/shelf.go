package place

import (
	"slices"

	"cosplay/internal/resource"
)

// A shelf is a slice or a GPU instance that sessions share, with what they leave of it.
type shelf struct {
	row, start int
	left       space
}

// space is what a slice or a GPU instance has for sessions that share it, or what one of them takes.
type space struct {
	memoryMiB int
	percent   int // of the SMs, by MPS
	seats     int
}

func (s space) minus(o space, n int) space {
	return space{s.memoryMiB - n*o.memoryMiB, s.percent - n*o.percent, s.seats - n*o.seats}
}

// holds is how many sessions have room that take this space each.
func (s space) holds(each space) int {
	n := min(s.seats/each.seats, s.memoryMiB/max(1, each.memoryMiB))
	if each.percent > 0 {
		n = min(n, s.percent/each.percent)
	}
	return n
}

// takes is the space of one session of a class in a profile at a clock.
func (k *kind) takes(class, row, clock int) space {
	c := k.classes[class]
	return space{c.target.MemoryMiB, k.model.percent(c, row, clock), 1}
}

// empty is the space of a new slice of a profile, or of its GPU instance.
func (b *gpuModel) empty(row int) space {
	return space{b.profiles[row].MemoryMiB, 100, b.seats(row)}
}

// shelves returns the slices and the GPU instances of a card that sessions share already.
func (c *card) shelves() (all []shelf) {
	var seen []resource.Slice
	for _, s := range c.occupants {
		row, instance := c.model.row(s.slice), s.slice.Instance()
		if row < 0 || !s.slice.Shared() || slices.Contains(seen, instance) {
			continue
		}
		seen = append(seen, instance)
		at := shelf{row, s.slice.Start, space{c.freeMiB(s.slice), c.freePercent(s.slice), maxLoad}}
		if s.slice.Divides() {
			foreign := slices.ContainsFunc(c.Foreign, func(l resource.LiveSlice) bool { return within(instance)(l.Slice) })
			if c.NoSlices || foreign { // how much memory the latter uses is not known
				continue
			}
			at.left.seats = len(c.freeStarts(s.slice))
		}
		all = append(all, at)
	}
	return all
}

// shelvesOf returns the open shelves of a profile.
func (k *kind) shelvesOf(row int) []shelf {
	return slices.DeleteFunc(slices.Clone(k.shelves), func(s shelf) bool { return s.row != row })
}

// newSlices is the smallest number of slices of a profile that have to be created for sessions that share them at
// a clock.
func (k *kind) newSlices(row, clock int, l load) int {
	return max(0, len(k.stack(row, clock, l))-len(k.shelvesOf(row)))
}

// stack divides sessions among slices of a profile that they share: first the open shelves, then as few new slices as
// possible.
func (k *kind) stack(row, clock int, l load) (best []load) {
	if row < k.model.divided {
		clock = 0 // no session takes more of such a slice at another clock
	}
	key := string(append(slices.Clone(l), uint8(row), uint8(clock), uint8(clock>>8)))
	if known, ok := k.stacked[key]; ok {
		return known
	}
	open, size, found := k.shelvesOf(row), k.model.empty(row), false
	var add func(rest load, fills []load)
	add = func(rest load, fills []load) {
		var needed space
		for class, n := range rest {
			if n > 0 {
				needed = needed.minus(k.takes(class, row, clock), -int(n))
			}
		}
		least := len(fills) + max((needed.memoryMiB+size.memoryMiB-1)/size.memoryMiB, (needed.percent+99)/100, (needed.seats+size.seats-1)/size.seats)
		if found && max(least, len(open)) >= max(len(best), len(open)) {
			return
		}
		if needed.seats == 0 {
			best, found = slices.Clone(fills), true
			return
		}
		at, first := size, slices.IndexFunc(rest, func(n uint8) bool { return n > 0 })
		if len(fills) < len(open) {
			at, first = open[len(fills)].left, len(rest) // any class may be left out
		}
		k.fills(row, clock, rest, at, first, func(fill load) {
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
func (k *kind) fills(row, clock int, rest load, at space, first int, yield func(load)) {
	fill := make(load, len(rest))
	var choose func(class int, free space)
	choose = func(class int, free space) {
		if class == len(rest) {
			for i := range rest {
				if rest[i] > fill[i] && free.holds(k.takes(i, row, clock)) > 0 {
					return
				}
			}
			yield(slices.Clone(fill))
			return
		}
		if rest[class] == 0 {
			choose(class+1, free)
			return
		}
		each, least := k.takes(class, row, clock), 0
		if class == first {
			least = 1
		}
		for n := min(int(rest[class]), free.holds(each)); n >= least; n-- {
			fill[class] = uint8(n)
			choose(class+1, free.minus(each, n))
		}
		fill[class] = 0
	}
	choose(0, at)
}

// A filling is a set of slices that a search gives to sessions at a clock. It has the sessions that share slices, by
// profile.
type filling struct {
	kind   *kind
	clock  int
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
		before := f.kind.newSlices(row, f.clock, f.shared[row])
		f.shared[row][c.id]++
		next = t
		if f.kind.newSlices(row, f.clock, f.shared[row]) > before {
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
