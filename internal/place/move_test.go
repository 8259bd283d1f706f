package place

import (
	"strings"
	"testing"
)

// TestMove names the session whose move makes room, and the place that it gets.
func TestMove(t *testing.T) {
	gpus := rackWith(func(g *GPU) { g.MIG = true }, "h200")
	requests := join(ask("lab", "small", 2, "2060"), ask("lab", "large", 1, "3090"))
	requests[0].Kept, requests[1].Kept = at(gpus[0], "1g.18gb", 0), at(gpus[0], "1g.18gb", 4)
	limit := 0.5
	requests[2].Want.Fit.MaxError = &limit
	r := Place(gpus, requests)
	if len(r.Refused) != 1 || !strings.HasPrefix(r.Refused[0].Fix, "session.small[") || !strings.Contains(r.Refused[0].Fix, "cosplay apply --replace small-") {
		t.Fatalf("no move:\n%s", r)
	}
	for i := range 2 { // the move that is named makes room
		if strings.HasPrefix(r.Refused[0].Fix, requests[i].Address.String()) {
			requests[i].Kept = nil
		}
	}
	moved := Place(gpus, requests)
	check(t, gpus, requests, moved)
	if len(moved.Refused) > 0 {
		t.Errorf("the move makes no room:\n%s", moved)
	}

	requests = join(requests, ask("lab", "more", 1, "3090"))
	requests[3].Want.Fit.MaxError = &limit
	requests[0].Kept, requests[1].Kept = at(gpus[0], "1g.18gb", 0), at(gpus[0], "1g.18gb", 4)
	if r := Place(gpus, requests); strings.Contains(r.String(), "--replace") {
		t.Errorf("a move is named though it is not enough:\n%s", r)
	}
}
