package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cosplay/catalog"
	"cosplay/internal/place"
)

// TestClocks: each pair of targets on one GPU, in both orders. The second gets the clock of the first, or is refused if it states
// a smaller error than it has there; neither the clock nor the status of the first changes. COSPLAY_LONG=1 tries more
// targets, and prints the table of docs/developers/measured/kubernetes.md.
func TestClocks(t *testing.T) {
	names := []string{"rtx-2060", "gtx-1660", "rtx-3060"}
	if os.Getenv("COSPLAY_LONG") != "" {
		names = append(names, "rtx-2080", "rtx-3070", "rtx-3090", "rtx-4060")
	}
	w := newWorld(t, "1 x h200")
	var table strings.Builder
	for _, first := range names {
		for _, second := range names {
			if first != second {
				fmt.Fprintln(&table, w.pair(t, first, second))
			}
		}
	}
	t.Logf("| first | second | clock, MHz | FP32 of the first | FP32 of the second | the second with maxError 5 %% |\n%s", table.String())
}

// pair is the row of two targets.
func (w *world) pair(t *testing.T, first, second string) string {
	ctx := context.Background()
	one := w.placed(t, "first", first, "", nil)
	if one == nil {
		t.Fatalf("%s has no placement", first)
	}
	w.prepareAll(t, one)
	locked, figures := lock(t, w), w.figures(t, one)
	two := w.placed(t, "second", second, "", one)
	if two == nil {
		w.forget(t, one)
		return fmt.Sprintf("| %s | %s | | | no slice is left | |", first, second)
	}
	w.prepareAll(t, two)
	got := w.figures(t, two)
	w.forget(t, two)
	strict := w.placed(t, "strict", second, `"maxError":"5%",`, one)
	results, err := w.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{strict})
	check(t, err)
	answer := "runs"
	refusal := results[strict.UID].Err
	if refusal != nil {
		answer = refusal.Error()
		answer = answer[strings.Index(answer, "does not fit"):]
		answer, _, _ = strings.Cut(answer, ". What would help")
	}
	if strings.Contains(answer, string(one.UID)) || strings.Contains(answer, w.folder) {
		t.Errorf("the refusal names another claim: %s", answer)
	}
	if off := max(got.FP32Ratio, 1/got.FP32Ratio) > 1.0513; off != (refusal != nil) { // an error is |ln ratio|
		t.Errorf("%s beside %s has %.3f of its rate, and with a limit of 5 %%: %v", second, first, got.FP32Ratio, refusal)
	}
	if now := lock(t, w); now != locked || got.ClockMHz != figures.ClockMHz {
		t.Errorf("%s beside %s: the lock was %s and is %s; their statuses have %d and %d MHz", second, first, locked, now, figures.ClockMHz, got.ClockMHz)
	}
	w.prepareAll(t, one) // kubelet asks again
	if again := w.figures(t, one); again != figures {
		t.Errorf("the status of %s was %+v, and beside %s it is %+v", first, figures, second, again)
	}
	w.forget(t, strict, one)
	w.untouched(t)
	return fmt.Sprintf("| %s | %s | %d | %+.1f %% | %+.1f %% | %s |", first, second, figures.ClockMHz, 100*(figures.FP32Ratio-1), 100*(got.FP32Ratio-1), answer)
}

// placed is a claim for a target on the last placement of its profile that leaves room for another claim; nil if there is none.
func (w *world) placed(t *testing.T, name, targetName, more string, beside *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	t.Helper()
	target, err := catalog.Target(targetName)
	check(t, err)
	model := gpusIn(w.driver)[0].Model.Name
	m, err := catalog.HostModel(model)
	check(t, err)
	profile, fits := place.Alone(m, target)
	if !fits {
		t.Fatalf("%s is not for %s", targetName, model)
	}
	var taken placement
	if beside != nil {
		taken = w.placements()[beside.Status.Allocation.Devices.Results[0].Device]
	}
	for start := 7; start >= 0; start-- {
		for device, at := range w.placements() {
			size, compute := at.profile.MemorySlices, at.profile.ComputeSlices+taken.profile.ComputeSlices
			if at.profile.Name != profile || at.start != start || beside != nil && (start < taken.start+taken.profile.MemorySlices && taken.start < start+size || compute > 7) {
				continue
			}
			return w.claim(t, name, device, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s"target":%q}`, apiVersion, kind, more, targetName))
		}
	}
	return nil
}

type claimFigures struct {
	ClockMHz  int
	FP32Ratio float64
}

// figures is what the status of a claim has.
func (w *world) figures(t *testing.T, c *resourceapi.ResourceClaim) (now claimFigures) {
	t.Helper()
	stored, err := w.client.ResourceV1().ResourceClaims("default").Get(context.Background(), c.Name, metav1.GetOptions{})
	check(t, err)
	check(t, json.Unmarshal(stored.Status.Devices[0].Data.Raw, &now))
	return now
}

// forget removes claims, and what they have.
func (w *world) forget(t *testing.T, all ...*resourceapi.ResourceClaim) {
	t.Helper()
	w.unprepareAll(t, all...)
	for _, c := range all {
		check(t, w.client.ResourceV1().ResourceClaims("default").Delete(context.Background(), c.Name, metav1.DeleteOptions{}))
	}
}
