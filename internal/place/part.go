package place

import (
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// A part is a compute instance that is smaller than its GPU instance. Its row in a chart comes after those of all GPU
// instances. It takes the place of its GPU instance, and others of its class may be in that. After the parts, each GPU
// instance has a second row, for sessions among which MPS divides its SMs.

// addParts adds the rows after those of the GPU instances that sessions of these classes may have.
func (b *gpuModel) addParts(classes []*class) {
	b.inst = len(b.profiles)
	for row, p := range b.instances() {
		b.parents = append(b.parents, row)
		for _, part := range b.spec.Divisions(p) {
			if slices.ContainsFunc(classes, func(c *class) bool { return b.offersPart(c, part.Name) }) {
				b.profiles = append(b.profiles, part)
			}
		}
	}
	for _, part := range b.profiles[b.inst:] {
		instance := resource.Slice{Profile: part.Name}.Instance().Profile
		b.parents = append(b.parents, slices.IndexFunc(b.instances(), func(p resource.Profile) bool { return p.Name == instance }))
	}
	b.divided = len(b.profiles)
	if slices.ContainsFunc(classes, func(c *class) bool { return c.sharing == resource.SharingMPS }) {
		for row, p := range b.instances() {
			b.profiles, b.parents = append(b.profiles, p), append(b.parents, row)
		}
	}
}

// row is that of a slice that is not the whole GPU; -1 for a profile that is not to be chosen.
func (b *gpuModel) row(s resource.Slice) int {
	from := 0
	if s.Sharing == resource.SharingMPS {
		from = b.divided
	}
	i := slices.IndexFunc(b.profiles[from:], func(p resource.Profile) bool { return p.Name == s.Profile })
	if i < 0 {
		return i
	}
	return from + i
}

// instances returns the profiles of GPU instances.
func (b *gpuModel) instances() []resource.Profile { return b.profiles[:b.inst] }

// offers reports whether sessions of a class may have a profile.
func (b *gpuModel) offers(c *class, row int) bool {
	switch {
	case row == b.whole():
		return c.mayHave(true)
	case row >= b.inst && row < b.divided:
		return b.offersPart(c, b.profiles[row].Name)
	}
	name := b.profiles[row].Name
	return (c.sharing == resource.SharingMPS) == (row >= b.divided) && c.mayHave(false) && (c.slice == name || c.slice == "" && !resource.Variant(name))
}

func (b *gpuModel) offersPart(c *class, name string) bool {
	switch {
	case !c.mayHave(false), b.noParts:
		return false
	case c.slice != "":
		return c.slice == name
	case resource.Variant(name):
		return false
	case c.sharing == resource.SharingCompute:
		return true
	case c.sharing == resource.SharingAuto, c.sharing == resource.SharingMIG:
		closer := fit.Closer(b.spec, c.target, c.options, b.clocks)
		return slices.ContainsFunc(closer, func(p resource.Profile) bool { return p.Name == name })
	}
	return false
}

// sharesIn reports whether sessions of a class share slices of a profile with others: by time slices, by MPS,
// or as parts of one GPU instance.
func (b *gpuModel) sharesIn(c *class, row int) bool {
	if row >= b.inst && row < b.divided {
		return c.sharing == resource.SharingCompute
	}
	return c.sharing == resource.SharingTime || c.sharing == resource.SharingMPS
}

// seats is the number of sessions that a new slice of a profile, or its GPU instance, has room for.
func (b *gpuModel) seats(row int) int {
	if row < b.inst || row >= b.divided {
		return maxLoad
	}
	return len(b.spec.ComputeStarts(b.profiles[row].Name))
}

// freeStarts lists the compute slices at which a part can begin in a GPU instance of a card.
func (c *card) freeStarts(at resource.Slice) []int {
	return slices.DeleteFunc(c.Model.ComputeStarts(at.Profile), func(start int) bool {
		at.ComputeStart = start
		return slices.ContainsFunc(c.taken(), at.Crosses)
	})
}

// within reports whether a slice is a part of a GPU instance.
func within(instance resource.Slice) func(resource.Slice) bool {
	return func(s resource.Slice) bool { return !s.Whole() && s.Instance() == instance }
}

// instances returns the GPU instances of slices on a card, each once.
func instances(taken []resource.Slice) []resource.Slice {
	all := make([]resource.Slice, 0, len(taken))
	for _, s := range taken {
		if !slices.Contains(all, s.Instance()) {
			all = append(all, s.Instance())
		}
	}
	return all
}
