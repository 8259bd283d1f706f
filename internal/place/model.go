package place

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

const (
	one        = 1_000_000_000       // fixed-point unit of errors: |ln ratio| = 1
	impossible = math.MaxInt64 / one // larger than any error or limit, and small enough that sums do not overflow
	wholeSize  = 112                 // the size of a whole GPU: twice the common multiple of 7 and 8 slices
)

// A gpuModel is a model of GPU with the clocks that cosplay may set: all that errors depend on.
type gpuModel struct {
	spec     resource.Model
	clocks   []int              // MHz, in descending order: of equally good clocks, the highest is chosen
	profiles []resource.Profile // profiles to choose from, largest first: of GPU instances, of parts of them, of those that MPS divides
	parents  []int              // the row of the GPU instance, by row
	inst     int                // the number of profiles of GPU instances
	divided  int                // the first row of GPU instances that MPS divides
	noParts  bool               // the driver offers no parts of GPU instances
	charts   map[chartKey]*chart
	legal    map[room]layouts
}

// chartKey identifies a class in all fleets of one placement, whose charts are the same.
type chartKey struct {
	class int
	small bool // the parts of the SMs are
}

// A chart holds the errors of a class on a model by profile and clock. The
// row after the last profile is the whole GPU.
type chart struct {
	first  [][]int64 // errors of the figure that the class prefers; impossible if the session does not fit
	second [][]int64 // errors of the other figures

	percents [][]int // by profile and clock: of the SMs, by MPS; nil where SMs are not divided
}

func (f *fleet) modelOf(g GPU) *gpuModel {
	clocks := slices.Clone(g.Model.ClocksMHz)
	slices.Reverse(clocks)
	if g.FixedClockMHz != nil {
		clocks = []int{*g.FixedClockMHz}
	}
	noParts := g.Without(resource.FeatureParts)
	for _, b := range f.models {
		if b.noParts == noParts && slices.Equal(b.clocks, clocks) && reflect.DeepEqual(b.spec, g.Model) {
			return b
		}
	}
	b := &gpuModel{noParts: noParts, spec: g.Model, clocks: clocks, profiles: distinctProfiles(g.Model, f.classes), charts: map[chartKey]*chart{}, legal: map[room]layouts{}}
	b.addParts(f.classes)
	f.models = append(f.models, b)
	return b
}

// distinctProfiles drops the profiles that differ from another in media engines or graphics only, and that no class
// names. Their figures are the same, and the driver allows fewer of them.
func distinctProfiles(m resource.Model, classes []*class) []resource.Profile {
	var kept []resource.Profile
	byLargest := slices.Clone(m.Profiles)
	slices.SortStableFunc(byLargest, func(p, q resource.Profile) int {
		larger := q.ComputeSlices + q.MemorySlices - p.ComputeSlices - p.MemorySlices
		return cmp.Or(larger, q.MaxInstances-p.MaxInstances, len(p.Name)-len(q.Name))
	})
	for _, p := range byLargest {
		known := slices.ContainsFunc(kept, func(k resource.Profile) bool {
			return k.ComputeSlices == p.ComputeSlices && k.MemorySlices == p.MemorySlices && k.SMs == p.SMs
		})
		named := slices.ContainsFunc(classes, func(c *class) bool { return resource.Slice{Profile: c.slice}.Instance().Profile == p.Name })
		if !known || named {
			kept = append(kept, p)
		}
	}
	return kept
}

func (b *gpuModel) whole() int { return len(b.profiles) }

func (b *gpuModel) profileName(row int) string {
	if row == b.whole() {
		return ""
	}
	return b.profiles[row].Name
}

// size returns the share of the GPU that a profile takes. The whole GPU without MIG is slightly larger than its
// largest slice, because it also decides the MIG mode.
func (b *gpuModel) size(row int) int64 {
	if row == b.whole() {
		return wholeSize + 1
	}
	p := b.profiles[row]
	const half = wholeSize / 2
	return int64(half*p.ComputeSlices/b.spec.ComputeSlices + half*p.MemorySlices/b.spec.MemorySlices)
}

func (b *gpuModel) chart(c *class) *chart {
	key := chartKey{c.id, c.squeeze.sms}
	if known, ok := b.charts[key]; ok {
		return known
	}
	drawn := &chart{}
	for row := range len(b.profiles) + 1 {
		memory := b.spec.MemoryMiB
		if row < b.whole() {
			memory = b.profiles[row].MemoryMiB
		}
		if !b.offers(c, row) {
			memory = 0
		}
		at := func(clock int) resource.Fit { return fit.At(b.spec, c.target, b.profileName(row), b.clocks[clock]) }
		var percents []int
		if c.sharing == resource.SharingMPS && b.spec.DividesSMs() && b.offers(c, row) {
			part := fit.Parts(b.spec, c.target, b.profileName(row))
			for clock := range b.clocks {
				percents = append(percents, b.percentAt(c, row, clock, part, c.squeeze.sms))
			}
			at = func(clock int) resource.Fit { return part(percents[clock], b.clocks[clock]) }
		}
		first, second := b.errors(c, memory, at)
		drawn.first, drawn.second, drawn.percents = append(drawn.first, first), append(drawn.second, second), append(drawn.percents, percents)
	}
	b.charts[key] = drawn
	return drawn
}

// errors returns the errors of a class at each clock in a slice with this memory, whose fit at returns.
func (b *gpuModel) errors(c *class, memoryMiB int, at func(clock int) resource.Fit) (first, second []int64) {
	first, second = make([]int64, len(b.clocks)), make([]int64, len(b.clocks))
	for i := range b.clocks {
		first[i] = impossible
		if memoryMiB >= c.target.MemoryMiB {
			first[i], second[i] = c.errors(at(i))
		}
	}
	return first, second
}

// percentAt returns the percentage of the SMs of a profile that comes closest to the target of a class at a clock. Of
// equally close ones it is the smallest. If it is to be small, it is the smallest within the tolerance, if there is one.
// That of a fraction is no more than the fraction, so that fractions of a GPU fit on it.
func (b *gpuModel) percentAt(c *class, row, clock int, part func(percent, clockMHz int) resource.Fit, small bool) (best int) {
	most := 100
	if c.fraction > 0 && row == b.whole() {
		most = max(1, int(100*c.fraction+1e-9)) // 0.29 is 28.999... percent in floating point
	}
	least, second := int64(math.MaxInt64), int64(math.MaxInt64)
	for percent := 1; percent <= most && !(small && least <= counted(c.options.Tolerance)); percent++ {
		if percent > 1 && b.partSMs(row, percent) == b.partSMs(row, percent-1) {
			continue
		}
		error, other := c.errors(part(percent, b.clocks[clock]))
		if error > least && c.options.Prefer != resource.PreferBalanced {
			break // rates grow with the SMs, so each further error is larger
		}
		if error < least || error == least && other < second {
			least, second, best = error, other, percent
		}
	}
	return best
}

// partSMs is the number of SMs that a percentage of a profile has.
func (b *gpuModel) partSMs(row, percent int) int {
	if row == b.whole() {
		return fit.PartSMs(b.spec.SMs, percent)
	}
	return fit.PartSMs(b.profiles[row].SMs, percent)
}

// percent is the part of the SMs of a profile that a session of a class gets at a clock; 0 where SMs are not divided.
func (b *gpuModel) percent(c *class, row, clock int) int {
	if percents := b.chart(c).percents[row]; percents != nil {
		return percents[clock]
	}
	return 0
}

// at returns the fit of a class in a slice at a clock in MHz.
func (b *gpuModel) at(c *class, s resource.Slice, clockMHz int) resource.Fit {
	if s.Percent > 0 {
		return fit.Parts(b.spec, c.target, s.Profile)(s.Percent, clockMHz)
	}
	return fit.At(b.spec, c.target, s.Profile, clockMHz)
}

// cost returns the cost of one session in one profile at one clock.
func (b *gpuModel) cost(c *class, row, clock int) cost {
	chart := b.chart(c)
	size := b.size(row)
	if c.shares() && row == b.whole() { // the rest of the memory is for others
		size = max(1, size*int64(c.target.MemoryMiB)/int64(b.spec.MemoryMiB), size*int64(b.percent(c, row, clock))/100)
	}
	return c.cost(chart.first[row][clock], chart.second[row][clock], size)
}

// layouts returns all sets of new slices for a room.
func (b *gpuModel) layouts(r room) layouts {
	known, ok := b.legal[r]
	if !ok {
		known = allLayouts(b.instances(), r)
		b.legal[r] = known
	}
	return known
}
