package machine

import (
	"cmp"
	"slices"

	"cosplay/catalog"
	"cosplay/internal/resource"
)

// Complete adds to a GPU what only the catalog knows, and what its driver does not
// offer.
func Complete(g resource.GPU) resource.GPU {
	g.Model, _ = catalog.Complete(g.Model)
	product, known := catalog.Product(g.Model.Name)
	g.Model.Name = cmp.Or(g.Model.Name, unnamed)
	m, has := &g.Model, product.Model
	if lacks, _ := g.Degradation(resource.FeatureMIG); lacks.Code == notSupported && !lacks.Set && !g.MIGCapable && !has.MIG() {
		g.Degraded = slices.DeleteFunc(slices.Clone(g.Degraded), func(d resource.Degradation) bool { return d == lacks }) // as it should be
	}
	if !known {
		return g
	}
	if g.MIGCapable && len(m.Profiles) == 0 {
		m.Profiles, m.MemorySlices, m.ComputeSlices = has.Profiles, has.MemorySlices, has.ComputeSlices
	}
	m.SMs, m.MemoryMiB, m.ComputeCapability = cmp.Or(m.SMs, has.SMs), cmp.Or(m.MemoryMiB, has.MemoryMiB), cmp.Or(m.ComputeCapability, has.ComputeCapability)
	if len(m.ClocksMHz) == 0 {
		m.ClocksMHz = has.ClocksMHz
	}
	return g
}

// unnamed is what a GPU is called whose driver does not report its name.
const unnamed = "unnamed GPU"

// notSupported is NVML's code for what a GPU does not have.
const notSupported = 3
