package ledger

import (
	"cmp"
	"slices"

	"cosplay/internal/resource"
)

// bin is a GPU that has room for slices.
type bin struct {
	gpu  resource.GPU
	held bool // by a project
	left int  // MiB, where MIG mode is off
	many int  // how many slices it has room for, where MIG mode is off
}

// mostSlices is how many slices a GPU can have.
const mostSlices = 7

// HasRoom reports whether slices with so many MiB each fit on some GPUs as they are now. It is an estimate that needs no
// plan: it limits how long a project that waits may leave that room unused.
func HasRoom(gpus []resource.GPU, pages []resource.Page, wanted []int) bool {
	var bins []*bin
	for _, g := range gpus {
		held := slices.ContainsFunc(pages, func(p resource.Page) bool { return p.UUID == g.UUID && len(p.Holders) > 0 })
		bins = append(bins, &bin{g, held, g.Model.MemoryMiB, mostSlices})
	}
	wanted = slices.Clone(wanted)
	slices.SortFunc(wanted, func(a, b int) int { return cmp.Compare(b, a) })
	for _, mib := range wanted {
		if !slices.ContainsFunc(bins, func(b *bin) bool { return b.take(mib) }) {
			return false
		}
	}
	return true
}

// take takes room of a size, if the GPU has it.
func (b *bin) take(mib int) bool {
	if !b.gpu.MIG {
		free := !b.held && len(b.gpu.Processes) == 0 && b.many > 0 && b.left >= mib
		if free {
			b.left, b.many = b.left-mib, b.many-1
		}
		return free
	}
	best := resource.Slice{}
	for _, p := range b.gpu.Model.Profiles {
		if p.MemoryMiB < mib || best.Size > 0 && best.Size <= p.MemorySlices {
			continue
		}
		for _, start := range slices.Backward(p.Starts) {
			s := resource.Slice{Start: start, Size: p.MemorySlices}
			if !slices.ContainsFunc(b.gpu.Slices, func(o resource.LiveSlice) bool {
				return s.Start < o.Start+o.Size && o.Start < s.Start+s.Size
			}) {
				best = s
				break
			}
		}
	}
	if best.Size > 0 {
		b.gpu.Slices = append(slices.Clone(b.gpu.Slices), resource.LiveSlice{Slice: best})
	}
	return best.Size > 0
}
