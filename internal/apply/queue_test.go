package apply

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cosplay/internal/plan"
)

// TestQueue: on random steps, which end in random order and sometimes fail, the queue starts the step that a search
// through all of them would start.
func TestQueue(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var steps []plan.Step
		for i := range random.IntN(14) {
			step := plan.Step{ID: fmt.Sprint(i), Do: plan.OpJSON{Op: plan.SetGPU{}}}
			if random.IntN(2) == 0 {
				step.Do = plan.OpJSON{Op: plan.Prepare{}}
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
	busy, never := map[int]int{}, make([]bool, len(steps))
	for i, step := range steps {
		if outcomes[i] == running {
			busy[lane(step.Do.Op, parallelism)]++
		}
		never[i] = slices.ContainsFunc(step.Needs, func(id string) bool { return outcomes[at(id)] == failed || never[at(id)] })
	}
	return slices.IndexFunc(steps, func(step plan.Step) bool {
		i := at(step.ID)
		return outcomes[i] == pending && busy[lane(step.Do.Op, parallelism)] < max(1, parallelism) &&
			!slices.ContainsFunc(step.Needs, func(id string) bool { return outcomes[at(id)] != succeeded }) &&
			!slices.ContainsFunc(step.After, func(id string) bool { return outcomes[at(id)] < succeeded && !never[at(id)] })
	})
}
