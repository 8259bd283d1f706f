package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"cosplay/internal/apply"
	"cosplay/internal/resource"
	"cosplay/internal/worldtest"
)

// TestUnseenSlice: a slice that was being made when its GPU was lost is neither forgotten nor taken for granted; once
// the GPU is back, the ledger and a snapshot show it.
func TestUnseenSlice(t *testing.T) {
	w := worldtest.New(t, "h200")
	create, want := firstSlice(t, w)
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
		t.Fatalf("with the GPU lost: %+v, %v", unseen.Sessions, notes)
	}
	if still := apply.Reconsider(unseen, lost.Live); len(still.Sessions) != 1 {
		t.Error("it was forgotten though the GPU is still lost")
	}
	for name, test := range map[string]struct {
		there  []resource.LiveSlice
		noted  resource.LiveSlice
		reboot bool
		own    bool
	}{
		"nothing is there":               {noted: resource.LiveSlice{Slice: want}},
		"it is there":                    {there: []resource.LiveSlice{made}, noted: made, own: true},
		"it is there, the id is unknown": {there: []resource.LiveSlice{made}, noted: resource.LiveSlice{Slice: want}, own: true},
		"it is there, half made":         {there: []resource.LiveSlice{half}, noted: resource.LiveSlice{Slice: want}, own: true},
		"a foreign one is there":         {there: []resource.LiveSlice{theirs}, noted: made},
		"it came after a reboot":         {there: []resource.LiveSlice{made}, noted: resource.LiveSlice{Slice: want}, reboot: true},
	} {
		w := worldtest.New(t, "h200")
		w.GPU("GPU-0").Slices = test.there
		w.Host().Ledger = []resource.Page{{UUID: "GPU-0", Holders: []resource.Holder{{Lineage: "us", Slices: []resource.LiveSlice{test.noted}}}}}
		if test.reboot {
			w.Reboot()
			w.GPU("GPU-0").Slices = test.there
		}
		got := apply.Reconsider(unseen, w.Live)
		if own := len(got.Sessions) == 1; own != test.own {
			t.Errorf("%s: own %v, want %v", name, own, test.own)
		} else if own && got.Sessions[0].Handle.GPUInstance != 8 {
			t.Errorf("%s: it is known by %+v", name, got.Sessions[0].Handle)
		}
	}
}

// TestUndoOfUnseenSlice: a GPU that is lost for a moment only, just when the run
// reads the hosts after a failed step leaves nothing that the state does not have.
func TestUndoOfUnseenSlice(t *testing.T) {
	w := worldtest.New(t, "h200")
	w.Lineage = "us"
	w.Fault = func(what string) error {
		if strings.HasPrefix(what, "destroy ") {
			return errors.New("the driver does not want to")
		}
		return nil
	}
	p, _ := w.Plan(t, three, resource.Prior{Lineage: "us"})
	reads := 0
	r := apply.Run{Hosts: map[string]apply.Host{"lab": {GPUs: refusing{w}, Runtimes: map[string]apply.Runtime{"process": w}}},
		Journal: &worldtest.Journal{}, Parallelism: 1,
		Observe: func(context.Context) (resource.Live, error) {
			live := w.Live
			if reads++; reads == 1 {
				live = resource.Live{Hosts: slices.Clone(w.Live.Hosts)}
				live.Hosts[0].GPUs = nil
			}
			return live, nil
		}}
	result, err := r.Execute(context.Background(), p, resource.Prior{Lineage: "us"}, w.Live)
	if err != nil || len(result.Failures) == 0 {
		t.Fatalf("%v, %+v", err, result)
	}
	if got := len(w.GPU("GPU-0").Slices); got != 1 || len(result.Prior.Sessions) != got {
		t.Errorf("there are %d slices, and the state knows of %+v", got, result.Prior.Sessions)
	}
}

// refusing makes slices and says that it could not.
type refusing struct{ *worldtest.World }

func (r refusing) CreateSlice(ctx context.Context, s resource.Slice, n resource.Need) (resource.LiveSlice, error) {
	made, _ := r.World.CreateSlice(ctx, s, n)
	return made, errors.New("no answer")
}
