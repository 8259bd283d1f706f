package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// TestQueue: on random steps, which end in random order and sometimes fail, the queue starts the step that a search
// through all of them would start.
func TestQueue(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var steps []plan.Step
		for i := range random.IntN(14) {
			step := plan.Step{ID: fmt.Sprint(i), Do: plan.OpJSON{Op: plan.SetGPU{}}}
			switch random.IntN(4) {
			case 0:
				step.Do = plan.OpJSON{Op: plan.Prepare{}}
			case 1:
				slice := resource.Slice{Host: "lab", GPU: fmt.Sprint("GPU-", random.IntN(2))}
				step.Do = plan.OpJSON{Op: plan.CreateSlice{Session: resource.Session{Slice: slice}}}
			}
			for range min(i, random.IntN(3)) {
				step.Needs = append(step.Needs, fmt.Sprint(random.IntN(i)))
			}
			for range min(i, random.IntN(3)) {
				step.After = append(step.After, fmt.Sprint(random.IntN(i)))
			}
			steps = append(steps, step)
		}
		parallelism := random.IntN(4)
		q, outcomes := newQueue(steps, parallelism), make([]outcome, len(steps))
		var active []int
		for {
			want := search(steps, outcomes, parallelism)
			got, ok := q.next()
			if !ok {
				got = -1
			}
			if got != want {
				t.Fatalf("seed %d: the queue starts step %d, a search %d of %v with %v", seed, got, want, steps, outcomes)
			}
			if ok {
				outcomes[got] = running
				active = append(active, got)
				if random.IntN(2) == 0 {
					continue
				}
			}
			if len(active) == 0 {
				break
			}
			n := random.IntN(len(active))
			i := active[n]
			active = slices.Delete(active, n, n+1)
			outcomes[i] = succeeded
			if random.IntN(6) == 0 {
				outcomes[i] = failed
			}
			q.ended(i, outcomes[i] == succeeded)
		}
	}
}

// search finds the first step that can start, or -1.
func search(steps []plan.Step, outcomes []outcome, parallelism int) int {
	at := func(id string) int {
		return slices.IndexFunc(steps, func(s plan.Step) bool { return s.ID == id })
	}
	// Places that are taken, by lane; slices of one GPU have one, unless steps run one after the other.
	busy, never := map[int]map[string]bool{0: {}, 1: {}}, make([]bool, len(steps))
	of := func(i int) string {
		if name := place(steps[i].Do.Op); name != "" && parallelism > 1 {
			return name
		}
		return fmt.Sprint(i)
	}
	for i, step := range steps {
		if outcomes[i] == running {
			busy[lane(step.Do.Op, parallelism)][of(i)] = true
		}
		never[i] = slices.ContainsFunc(step.Needs, func(id string) bool { return outcomes[at(id)] == failed || never[at(id)] })
	}
	waits := map[int]bool{} // lanes in which a step waits for a place
	return slices.IndexFunc(steps, func(step plan.Step) bool {
		i, lane := at(step.ID), lane(step.Do.Op, parallelism)
		if outcomes[i] != pending || waits[lane] ||
			slices.ContainsFunc(step.Needs, func(id string) bool { return outcomes[at(id)] != succeeded }) ||
			slices.ContainsFunc(step.After, func(id string) bool { return outcomes[at(id)] < succeeded && !never[at(id)] }) {
			return false
		}
		waits[lane] = len(busy[lane]) >= max(1, parallelism) && !busy[lane][of(i)]
		return !waits[lane]
	})
}
