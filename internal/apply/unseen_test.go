package apply_test

import (
	"strings"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestUnseenSlice: a slice that was being made when its GPU was lost is neither
// forgotten nor taken for granted; once the GPU is back, the ledger and a look
// tell.
func TestUnseenSlice(t *testing.T) {
	w := worldtest.New(t, "h200")
	p, _ := w.Plan(t, three, resource.Prior{})
	var create plan.Step
	for _, s := range p.Steps {
		if strings.HasSuffix(s.ID, "[0]/slice") {
			create = s
		}
	}
	want := create.Do.Op.(plan.CreateSlice).Session.Slice
	made := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 8, UUID: "MIG-new"}}
	half := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 8}}
	theirs := resource.LiveSlice{Slice: want, Handle: resource.Handle{GPUInstance: 9, UUID: "MIG-theirs"}}
	boot := w.Host().BootID
	entries := []apply.Entry{
		{Event: apply.Begin, Lineage: "us", BootIDs: map[string]string{"lab": boot}},
		{Event: apply.Started, Step: create.ID, Op: &create.Do},
	}
	lost := worldtest.New(t, "h200")
	lost.Host().GPUs = nil
	unseen, notes := apply.Recover(resource.Prior{Lineage: "us", BootIDs: map[string]string{"lab": boot}}, entries, lost.Live)
	if len(unseen.Sessions) != 1 || unseen.Sessions[0].Handle.GPUInstance != resource.Unseen || len(notes) != 1 {
		t.Fatalf("with the GPU lost: %+v, %q", unseen.Sessions, notes)
	}
	if still := apply.Reconsider(unseen, lost.Live); len(still.Sessions) != 1 {
		t.Error("it was forgotten though the GPU is still lost")
	}
	for name, test := range map[string]struct {
		there  []resource.LiveSlice
		noted  resource.LiveSlice
		reboot bool
		ours   bool
	}{
		"nothing is there":                 {noted: resource.LiveSlice{Slice: want}},
		"it is there":                      {there: []resource.LiveSlice{made}, noted: made, ours: true},
		"it is there, nobody knows the id": {there: []resource.LiveSlice{made}, noted: resource.LiveSlice{Slice: want}, ours: true},
		"it is there, half made":           {there: []resource.LiveSlice{half}, noted: resource.LiveSlice{Slice: want}, ours: true},
		"somebody else's is there":         {there: []resource.LiveSlice{theirs}, noted: made},
		"it came after a reboot":           {there: []resource.LiveSlice{made}, noted: resource.LiveSlice{Slice: want}, reboot: true},
	} {
		w := worldtest.New(t, "h200")
		w.GPU("GPU-0").Slices = test.there
		w.Host().Ledger = []resource.Held{{UUID: "GPU-0", Holders: []resource.Holder{{Lineage: "us", Slices: []resource.LiveSlice{test.noted}}}}}
		if test.reboot {
			w.Reboot()
			w.GPU("GPU-0").Slices = test.there
		}
		got := apply.Reconsider(unseen, w.Live)
		if ours := len(got.Sessions) == 1; ours != test.ours {
			t.Errorf("%s: ours %v, want %v", name, ours, test.ours)
		} else if ours && got.Sessions[0].Handle.GPUInstance != 8 {
			t.Errorf("%s: it is known by %+v", name, got.Sessions[0].Handle)
		}
	}
}
