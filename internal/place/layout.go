package place

import (
	"math/bits"
	"slices"

	"cosplay/internal/resource"
)

// A tally counts new slices by profile, four bits each.
type tally uint64

func (t tally) plus(profile int) tally { return t + 1<<(4*profile) }
func (t tally) count(profile int) int  { return int(t >> (4 * profile) & 15) }
func (t tally) full(profile int) bool  { return t.count(profile) == 15 }

// room is what is free on a GPU.
type room struct {
	slots   uint64  // memory slices, a bit each, set where taken
	compute int     // compute slices left
	left    [16]int // instances left by profile
}

// layouts are all sets of new slices that a GPU can take, each with the first
// slots of its slices by profile where they leave the most behind.
type layouts map[tally][][]int

// room is what is free on a card beside those who sit there and others' slices.
func (c *card) room() room {
	free := room{compute: c.Model.ComputeSlices}
	for i, p := range c.model.profiles {
		free.left[i] = p.MaxInstances
	}
	take := func(s resource.Slice) {
		free.slots |= slotMask(s.Start, s.Size)
		p, ok := c.Model.Profile(s.Profile)
		if !ok {
			p.ComputeSlices = min(s.Size, c.Model.ComputeSlices)
		}
		free.compute -= p.ComputeSlices
		for i := range c.model.profiles {
			if c.model.profiles[i].Name == s.Profile {
				free.left[i]--
			}
		}
	}
	for _, s := range c.taken() {
		take(s)
	}
	return free
}

// taken gives all slices on a card, ours and those of others, each once.
func (c *card) taken() []resource.Slice {
	var all []resource.Slice
	for _, s := range c.occupants {
		all = append(all, s.slice)
	}
	for _, s := range c.Foreign {
		if !slices.Contains(all, s.Slice) {
			all = append(all, s.Slice)
		}
	}
	return all
}

func slotMask(start, size int) uint64 { return (1<<size - 1) << start }

// takes reports whether a profile may start at a slot of the room.
func (r room) takes(p resource.Profile, index, start int) bool {
	return r.left[index] > 0 && r.compute >= p.ComputeSlices && r.slots&slotMask(start, p.MemorySlices) == 0
}

// with is the room that a slice leaves.
func (r room) with(p resource.Profile, index, start int) room {
	r.slots |= slotMask(start, p.MemorySlices)
	r.compute -= p.ComputeSlices
	r.left[index]--
	return r
}

// openness tells how much a room still takes: the number of places for each
// profile, the largest profile first, then the free slots. Larger is better.
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

// allLayouts goes through every legal set of new slices in a room. Sets are
// built with profiles and starts in order, so each is met once, and of equally
// open ones the first stays.
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
