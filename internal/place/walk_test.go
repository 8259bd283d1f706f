package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"cosplay/internal/resource"
)

// randomFleet mixes models, permissions and foreign slices.
func randomFleet(r *rand.Rand) []GPU {
	models := []string{"h200", "h200", "a100-80gb", "a30", "h100", "l40s"}
	var keys []string
	for range 1 + r.IntN(5) {
		keys = append(keys, models[r.IntN(len(models))])
	}
	gpus := rack("lab", keys...)
	for i := range gpus {
		g := &gpus[i]
		g.MIG = g.Model.MIG() && r.IntN(3) == 0
		switch r.IntN(8) {
		case 0:
			clock := g.Model.ClocksMHz[r.IntN(len(g.Model.ClocksMHz))]
			g.FixedClockMHz = &clock
		case 1:
			g.Fixed[resource.MIGMode] = true
		case 2:
			g.NoSlices = true
		case 3:
			g.Busy = true
		case 4:
			if g.MIG {
				p := g.Model.Profiles[r.IntN(len(g.Model.Profiles))]
				g.Foreign = []resource.LiveSlice{foreign(*g, p.Name, p.Starts[r.IntN(len(p.Starts))])}
			}
		}
	}
	return gpus
}

func shuffled[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// TestOrderDoesNotMatter shuffles fleet and sessions.
func TestOrderDoesNotMatter(t *testing.T) {
	for seed := range uint64(270) {
		r := rand.New(rand.NewPCG(seed, 2))
		gpus, requests := randomFleet(r), randomRequests(r, 1+r.IntN(12), 1+r.IntN(4))
		switch seed % 4 {
		case 1:
			requests = sharing(r, requests)
		case 2:
			requests = several(r, requests)
		case 3:
			requests = atSlots(r, gpus, requests)
		}
		want := Place(gpus, requests).String()
		if got := Place(shuffled(r, gpus), shuffled(r, requests)).String(); got != want {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// TestKeptIsKept passes each placement in again, then repeatedly removes some sessions and adds others. Placed
// sessions never move, and a placement that is passed in again does not change, including settings and reasons.
// COSPLAY_LONG=1 tries 130,000 fleets.
func TestKeptIsKept(t *testing.T) {
	seeds := uint64(200)
	if os.Getenv("COSPLAY_LONG") != "" {
		seeds = 26_000
	}
	var placed atomic.Int64
	t.Run("parts", func(t *testing.T) {
		parts := uint64(runtime.GOMAXPROCS(0))
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := part; seed < seeds; seed += parts {
					placed.Add(int64(walk(t, seed)))
				}
			})
		}
	})
	t.Logf("%d steps, %d sessions placed", seeds*walkSteps, placed.Load())
}

const walkSteps = 5

// walk places five random fleets, each beside what is kept of the one before, and counts the sessions placed.
func walk(t *testing.T, seed uint64) (placed int) {
	r := rand.New(rand.NewPCG(seed, 3))
	gpus := randomFleet(r)
	var requests []Request
	for step := range walkSteps {
		requests = slices.DeleteFunc(requests, func(Request) bool { return r.IntN(3) == 0 })
		newcomers := randomRequests(r, 1+r.IntN(6), 1+r.IntN(3))
		switch seed % 4 {
		case 1:
			newcomers = sharing(r, newcomers)
		case 2:
			newcomers = several(r, newcomers)
		case 3:
			newcomers = atSlots(r, gpus, newcomers)
		}
		for _, q := range newcomers {
			q.Address = resource.Nth(q.Address.Name, 1000*(walkSteps*int(seed)+step)+q.Address.Key.Index)
			requests = append(requests, q)
		}
		first := Place(gpus, requests)
		check(t, gpus, requests, first)
		gpus, requests = keep(gpus, requests, first)
		requests = slices.DeleteFunc(requests, func(q Request) bool { return q.Kept == nil })
		first.Refused = nil
		again := Place(shuffled(r, gpus), shuffled(r, requests))
		check(t, gpus, requests, again)
		if len(first.Warnings) == 0 && again.String() != first.String() || !same(first, again) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, again, first)
		}
		placed += len(first.Placed)
	}
	return placed
}

// same compares the changes that two results make to the machine.
func same(a, b Result) bool {
	return slices.EqualFunc(a.Placed, b.Placed, func(p, q Placed) bool {
		return p.Address == q.Address && p.Slice == q.Slice && slices.Equal(p.More, q.More) && p.Fit == q.Fit
	}) && slices.EqualFunc(a.GPUs, b.GPUs, func(p, q Setup) bool {
		return p.UUID == q.UUID && settingsText(p.Settings) == settingsText(q.Settings) && reflect.DeepEqual(p.Why, q.Why)
	})
}

// TestKeptWithoutItsLock chooses the same clock again if the record of the lock is lost.
func TestKeptWithoutItsLock(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		gpus, requests := rack("lab", "h200", "a100-80gb", "a30"), randomRequests(r, 1+r.IntN(8), 1+r.IntN(3))
		first := Place(gpus, requests)
		if len(first.Refused) > 0 {
			continue
		}
		gpus, requests = keep(gpus, requests, first)
		for i := range gpus {
			gpus[i].LockMHz = nil
		}
		if again := Place(gpus, requests); !same(first, again) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, again, first)
		}
	}
}
