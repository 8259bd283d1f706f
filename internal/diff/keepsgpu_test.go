package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestGPUWithSessionsStays: whatever of a GPU cannot be read any more, in every
// combination, the GPU and its settings stay while a session stays on it.
func TestGPUWithSessionsStays(t *testing.T) {
	faults := []func(*resource.GPU){
		func(g *resource.GPU) { g.Model.MemoryMiB = 0 },
		func(g *resource.GPU) { g.Model.SMs = 0 },
		func(g *resource.GPU) { g.Model.ClocksMHz = nil },
		func(g *resource.GPU) { degrade(g, resource.FeatureMIG) },
		func(g *resource.GPU) { degrade(g, resource.FeaturePersistence) },
		func(g *resource.GPU) { degrade(g, resource.FeaturePower) },
	}
	for _, text := range []string{two, strings.NewReplacer("count  = 2\n", "", "2060", "4090").Replace(two)} {
		for faulty := range 1 << len(faults) {
			w := worldtest.New(t, "h200")
			prior := bring(t, w, text, resource.Prior{})
			for i, fault := range faults {
				if faulty&(1<<i) != 0 {
					fault(w.GPU("GPU-0"))
				}
			}
			p, diags := w.Plan(t, text, prior)
			if diags.HasErrors() {
				continue // nothing is planned
			}
			stays := map[string]bool{}
			for _, c := range p.Diff.Sessions {
				if c.After != nil && c.Slice == diff.Keep {
					stays[c.After.Slice.GPU] = true
				}
			}
			for _, c := range p.Diff.GPUs {
				if stays[c.UUID] && (c.GiveBack || c.Action == diff.Delete || c.Settings.Has(resource.MIGMode)) {
					t.Errorf("faults %s: %s with a session on it: %s, give back %t, %s", fmt.Sprintf("%06b", faulty), c.UUID, c.Action, c.GiveBack, settings(c.Settings))
				}
			}
		}
	}
}

func degrade(g *resource.GPU, f resource.Feature) {
	g.Degraded = append(g.Degraded, resource.Degradation{Feature: f})
}
