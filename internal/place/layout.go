package place

import (
	"math/bits"
	"slices"

	"cosplay/internal/resource"
)

// A tally counts new slices by profile, with four bits for each.
type tally uint64

func (t tally) plus(profile int) tally { return t + 1<<(4*profile) }
func (t tally) count(profile int) int  { return int(t >> (4 * profile) & 15) }
func (t tally) full(profile int) bool  { return t.count(profile) == 15 }

// room is the free capacity of a GPU.
type room struct {
	slots   uint64  // memory slices, one bit each, set if occupied
	compute int     // free compute slices
	left    [16]int // instances that the driver still allows, by profile
}

// layouts is every set of new slices that a GPU can hold. Each has the first slots of its slices by profile, chosen
// so that the most room remains.
type layouts map[tally][][]int

// room returns the free capacity of a card, after the sessions and the foreign slices on it.
func (c *card) room() room { return c.roomBeside(c.taken()) }

// roomBeside returns the capacity that slices on a card leave.
func (c *card) roomBeside(taken []resource.Slice) room {
	free := room{compute: c.Model.ComputeSlices}
	for i, p := range c.model.instances() {
		free.left[i] = p.MaxInstances
	}
	for _, s := range instances(taken) {
		free.slots |= slotMask(s.Start, s.Size)
		p, ok := c.Model.Profile(s.Profile)
		if !ok {
			p.ComputeSlices = min(s.Size, c.Model.ComputeSlices)
		}
		free.compute -= p.ComputeSlices
		for i, p := range c.model.instances() {
			if p.Name == s.Profile {
				free.left[i]--
			}
		}
	}
	return free
}

// own returns the project's slices on a card. One that sessions share is in it once.
func (c *card) own() []resource.Slice {
	all := make([]resource.Slice, 0, len(c.occupants)+len(c.Foreign)) // with room for taken
	for _, s := range c.occupants {
		switch {
		case s.slice.Whole():
			all = append(all, s.slice)
		case !slices.Contains(all, s.slice.Place()):
			all = append(all, s.slice.Place())
		}
	}
	return all
}

// taken returns all slices on a card, the project's and foreign ones, each once.
func (c *card) taken() []resource.Slice {
	all := c.own()
	for _, s := range c.Foreign {
		if !slices.Contains(all, s.Slice) {
			all = append(all, s.Slice)
		}
	}
	return all
}

func slotMask(start, size int) uint64 { return (1<<size - 1) << start }

// takes reports whether a slice of a profile may start at a slot of the room.
func (r room) takes(p resource.Profile, index, start int) bool {
	return r.left[index] > 0 && r.compute >= p.ComputeSlices && r.slots&slotMask(start, p.MemorySlices) == 0
}

// with returns the room that remains beside a new slice.
func (r room) with(p resource.Profile, index, start int) room {
	r.slots |= slotMask(start, p.MemorySlices)
	r.compute -= p.ComputeSlices
	r.left[index]--
	return r
}

// openness measures the remaining capacity of a room: the number of possible starts for each profile, the largest
// profile first, then the free slots. A larger value is better.
type openness [17]int

func (r room) openness(profiles []resource.Profile) openness {
	var o openness
	for i, p := range profiles {
		for _, start := range p.Starts {
			if r.takes(p, i, start) {
				o[i]++
			}
		}
	}
	o[16] = -bits.OnesCount64(r.slots)
	return o
}

// allLayouts enumerates every legal set of new slices in a room. It adds profiles and starts in ascending order, so
// that each set occurs once, and keeps the first of equally open sets.
func allLayouts(profiles []resource.Profile, empty room) layouts {
	found, best := layouts{}, map[tally]openness{}
	starts := make([][]int, len(profiles))
	var visit func(r room, t tally, profile, next int)
	visit = func(r room, t tally, profile, next int) {
		o := r.openness(profiles)
		if old, ok := best[t]; !ok || slices.Compare(o[:], old[:]) > 0 {
			best[t], found[t] = o, cloneAll(starts)
		}
		for i := profile; i < len(profiles); i++ {
			p := profiles[i]
			for _, start := range p.Starts {
				if i == profile && start < next || t.full(i) || !r.takes(p, i, start) {
					continue
				}
				starts[i] = append(starts[i], start)
				visit(r.with(p, i, start), t.plus(i), i, start+1)
				starts[i] = starts[i][:len(starts[i])-1]
			}
		}
	}
	visit(empty, 0, 0, 0)
	return found
}

func cloneAll(lists [][]int) [][]int {
	out := make([][]int, len(lists))
	for i := range lists {
		out[i] = slices.Clone(lists[i])
	}
	return out
}
