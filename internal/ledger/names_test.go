package ledger

import (
	"testing"

	"cosplay/internal/resource"
)

// TestMayDestroyByEitherName: a slice on a page belongs to the project that created it,
// also under the name that another driver gives it.
func TestMayDestroyByEitherName(t *testing.T) {
	const gpu = "GPU-0"
	made := resource.LiveSlice{Slice: resource.Slice{GPU: gpu, Profile: "1g.18gb", Start: 4, Size: 1},
		Handle: resource.Handle{GPUInstance: 11, UUID: "MIG-41c2", Boot: "b1"}}
	page := resource.Page{UUID: gpu, Holders: []resource.Holder{{Lineage: "a", Slices: []resource.LiveSlice{made}}, {Lineage: "b"}}}
	renamed, rebooted, other := made, made, made
	renamed.UUID = resource.IDName(gpu, 11, 0)
	rebooted.Boot = "b2"
	other.UUID = resource.IDName(gpu, 12, 0)
	for name, c := range map[string]struct {
		slice resource.LiveSlice
		a, b  bool
	}{
		"as made":        {slice: made, a: true},
		"renamed":        {slice: renamed, a: true},
		"after a reboot": {slice: rebooted},
		"other ids":      {slice: other},
	} {
		for lineage, want := range map[string]bool{"a": c.a, "b": c.b} {
			if err := MayDestroy(&page, lineage, c.slice); (err == nil) != want {
				t.Errorf("%s by %s: %v, want allowed %t", name, lineage, err, want)
			}
		}
	}
}

// TestASliceOfAnotherBootIsGone: one of the same name and place was recreated by
// another program, and does not keep a holder from its release.
func TestASliceOfAnotherBootIsGone(t *testing.T) {
	at := resource.Slice{GPU: "GPU-0", Profile: "1g.18gb", Start: 4, Size: 1}
	made := resource.LiveSlice{Slice: at, Handle: resource.Handle{GPUInstance: 11, UUID: resource.IDName("GPU-0", 11, 0), Boot: "b1"}}
	live := made
	live.Boot = "" // as the agent reads it
	for boot, want := range map[string]bool{"b1": true, "b2": false} {
		found := &Found{GPU: resource.GPU{UUID: "GPU-0", Slices: []resource.LiveSlice{live}}, BootID: boot}
		if got := exists(made, found); got != want {
			t.Errorf("in boot %s: exists %t", boot, got)
		}
	}
}
