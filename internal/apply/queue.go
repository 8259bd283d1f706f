package apply

import (
	"container/heap"
	"sort"

	"cosplay/internal/plan"
)

// queue finds the steps that can start. A step waits for the success of those that it needs, and for the end of those
// that it is after, or until these can never run.
type queue struct {
	lanes   []int          // of each step
	places  []string       // likewise, the name of the place that it shares; "" if it has its own
	shared  map[string]int // the steps that run in each shared place
	waits   []int          // how many steps each step waits for
	needing [][]int        // the steps that need each step
	after   [][]int        // the steps that are after each step
	settled []bool         // the steps that have ended or can never run
	free    [2]int         // how many more steps may run, by lane
	ready   [2]smallest    // the steps that wait for nothing and have not started, by lane
}

func newQueue(steps []plan.Step, parallelism int) *queue {
	byID := make(map[string]int, len(steps))
	for i, step := range steps {
		byID[step.ID] = i
	}
	free := max(1, parallelism)
	q := &queue{lanes: make([]int, len(steps)), places: make([]string, len(steps)), shared: map[string]int{}, waits: make([]int, len(steps)), needing: make([][]int, len(steps)),
		after: make([][]int, len(steps)), settled: make([]bool, len(steps)), free: [2]int{free, free}}
	for i, step := range steps {
		q.lanes[i], q.waits[i] = lane(step.Do.Op, parallelism), len(step.Needs)+len(step.After)
		if parallelism > 1 {
			q.places[i] = place(step.Do.Op)
		}
		for _, id := range step.Needs {
			q.needing[byID[id]] = append(q.needing[byID[id]], i)
		}
		for _, id := range step.After {
			q.after[byID[id]] = append(q.after[byID[id]], i)
		}
		if q.waits[i] == 0 {
			heap.Push(&q.ready[q.lanes[i]], i)
		}
	}
	return q
}

// lane is the queue of a step: operations on GPUs are quick and run one after the other, those on bodies take long.
// Each kind has its own limit, so that neither waits for the other.
func lane(op plan.Op, parallelism int) int {
	if parallelism > 1 && onBody(op) {
		return 1
	}
	return 0
}

// onBody reports whether an operation is on the body of a session or on its image.
func onBody(op plan.Op) bool {
	switch op.(type) {
	case plan.Prepare, plan.Unprepare, plan.EnsureImage, plan.StopSession, plan.StartSession, plan.EndSession:
		return true
	default:
		return false
	}
}

// place is the name of the place that slices of a GPU have together: the agent creates those that wait at the same
// time in one turn.
func place(op plan.Op) string {
	if create, is := op.(plan.CreateSlice); is {
		return create.Session.Slice.Host + " " + create.Session.Slice.GPU
	}
	return ""
}

// joins reports whether the place of a step is taken by steps that share it.
func (q *queue) joins(i int) bool { return q.shared[q.places[i]] > 0 }

// next takes the first step that can start now.
func (q *queue) next() (int, bool) {
	best := -1
	for lane := range q.ready {
		if ready := q.ready[lane].IntSlice; len(ready) > 0 && (q.free[lane] > 0 || q.joins(ready[0])) && (best < 0 || ready[0] < q.ready[best].IntSlice[0]) {
			best = lane
		}
	}
	if best < 0 {
		return 0, false
	}
	i := heap.Pop(&q.ready[best]).(int)
	if !q.joins(i) {
		q.free[best]--
	}
	if name := q.places[i]; name != "" {
		q.shared[name]++
	}
	return i, true
}

// ended notes the end of a step that was taken.
func (q *queue) ended(i int, succeeded bool) {
	if name := q.places[i]; name != "" {
		q.shared[name]--
	}
	if !q.joins(i) {
		q.free[q.lanes[i]]++
	}
	q.settle(i)
	for _, other := range q.needing[i] {
		if succeeded {
			q.release(other)
		} else {
			q.block(other)
		}
	}
}

// block notes that a step can never run, nor those that need it.
func (q *queue) block(i int) {
	if q.settled[i] {
		return
	}
	q.settle(i)
	for _, other := range q.needing[i] {
		q.block(other)
	}
}

func (q *queue) settle(i int) {
	q.settled[i] = true
	for _, other := range q.after[i] {
		q.release(other)
	}
}

func (q *queue) release(i int) {
	if q.waits[i]--; q.waits[i] == 0 && !q.settled[i] {
		heap.Push(&q.ready[q.lanes[i]], i)
	}
}

// smallest is a heap of steps.
type smallest struct{ sort.IntSlice }

func (s *smallest) Push(i any) { s.IntSlice = append(s.IntSlice, i.(int)) }

func (s *smallest) Pop() any {
	last := len(s.IntSlice) - 1
	i := s.IntSlice[last]
	s.IntSlice = s.IntSlice[:last]
	return i
}
