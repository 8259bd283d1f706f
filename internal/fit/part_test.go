package fit_test

import (
	"testing"

	"cosplay/catalog"
	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// TestPartsOnlyWhereCloser: a compute instance smaller than its GPU instance is chosen only where nothing else comes
// within the tolerance, and where it comes closer. It has the memory and the bandwidth of its GPU instance.
func TestPartsOnlyWhereCloser(t *testing.T) {
	parts := 0
	for _, host := range catalog.Hosts() {
		m := host.Model
		m.ClocksMHz = []int{m.MaxClockMHz()} // where the clock can be locked, it brings each target of the catalog as close
		for _, target := range catalog.Targets() {
			for _, prefer := range []resource.Preference{resource.PreferFP32, resource.PreferBalanced} {
				o := resource.DefaultFit()
				o.Prefer = prefer
				all := fit.Candidates(m, target, o)
				if len(all) == 0 {
					continue
				}
				slice := resource.Slice{Profile: all[0].Profile}
				if !slice.Divides() {
					continue
				}
				parts++
				instance := slice.Instance().Profile
				for _, other := range all {
					if !(resource.Slice{Profile: other.Profile}).Divides() && (other.Error(prefer) <= o.Tolerance || other.Error(prefer) <= all[0].Error(prefer)) {
						t.Errorf("%s as %s: %s is chosen, and %s does as well", host.Key, target.Key, slice.Profile, other.Profile)
					}
				}
				p, _ := m.Profile(instance)
				full := fit.At(m, target, instance, all[0].ClockMHz)
				if got := all[0].Got; got.MemoryMiB != p.MemoryMiB || got.SMs >= p.SMs || got.BandwidthGBs > full.Got.BandwidthGBs {
					t.Errorf("%s of %s has %+v", slice.Profile, host.Key, got)
				}
			}
		}
	}
	if parts == 0 {
		t.Error("no target is closest to a part of a GPU instance")
	}
}
