package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/resource"
)

// line is a queue with its clock, and its waiters by name.
type line struct {
	t    *testing.T
	book Book
	now  time.Time
	all  map[string]*Waiter
}

func newLine(t *testing.T) *line {
	return &line{t: t, book: Book{Dir: t.TempDir()}, now: time.Unix(1_800_000_000, 0), all: map[string]*Waiter{}}
}

func (l *line) ask(name string, gpus ...string) (ahead int) {
	l.t.Helper()
	if l.all[name] == nil {
		l.all[name] = &Waiter{}
	}
	_, ahead, err := l.all[name].Ask(l.book, resource.Holder{User: name}, gpus, l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	return ahead
}

// want asks for each, as "a0 b1": a has its turn, and one is before b.
func (l *line) want(what string, gpus []string, want ...string) {
	l.t.Helper()
	var got []string
	for _, w := range want {
		name := w[:1]
		got = append(got, fmt.Sprint(name, l.ask(name, gpus...)))
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestQueue(t *testing.T) {
	one := []string{"GPU-1"}
	l := newLine(t)
	l.want("in the order in which they came", one, "a0", "b1", "c2", "d3")
	l.want("asked again", one, "d3", "a0", "c2", "b1")

	l.all["b"].close() // its agent was killed
	l.want("one has ended", one, "c1", "d2", "a0")
	if err := l.all["a"].Leave(l.book); err != nil {
		t.Fatal(err)
	}
	l.want("the first has left", one, "d1", "c0")
	l.want("and comes again", one, "a2")

	l.now = l.now.Add(9 * time.Second)
	l.want("silent for 9 s", one, "d1", "a2")
	l.now = l.now.Add(time.Second)
	l.want("ignored its turn for 10 s", one, "d0", "a1", "c2")
	waiting, err := l.book.Waiting(l.now.Add(time.Second))
	if err != nil || len(waiting) != 3 || waiting[0].User != "d" || waiting[2].User != "c" {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
}

// TestTurnBegins: a waiter that was silent before its turn has 10 s from its beginning.
func TestTurnBegins(t *testing.T) {
	one := []string{"GPU-1"}
	l := newLine(t)
	l.want("they come", one, "a0", "b1", "c2")
	for range 30 { // b sleeps
		l.now = l.now.Add(time.Second)
		l.want("before the turn", one, "a0", "c2")
	}
	if err := l.all["a"].Leave(l.book); err != nil {
		t.Fatal(err)
	}
	l.want("b has 10 s", one, "c1")
	l.now = l.now.Add(8 * time.Second)
	l.want("b has 2 s left", one, "c1")
	l.want("b comes in time", one, "b0")
	for range 20 {
		l.now = l.now.Add(time.Second)
		l.want("while it works", one, "b0", "c1")
	}
	l.now = l.now.Add(10 * time.Second)
	l.want("and is silent again", one, "c0", "b1")
}

// TestOtherGPUs: no waiter waits for those that want another GPU.
func TestOtherGPUs(t *testing.T) {
	l := newLine(t)
	for _, w := range []struct {
		name  string
		gpus  []string
		ahead int
	}{
		{"a", []string{"GPU-1"}, 0}, {"b", []string{"GPU-2"}, 0}, {"c", []string{"GPU-1", "GPU-2"}, 2}, {"d", []string{"GPU-3"}, 0}, {"e", []string{"GPU-2"}, 2},
	} {
		if ahead := l.ask(w.name, w.gpus...); ahead != w.ahead {
			t.Errorf("%s has %d before it, want %d", w.name, ahead, w.ahead)
		}
	}
}

// TestQueueAlone: a waiter that is alone and sleeps has its turn when it comes back.
func TestQueueAlone(t *testing.T) {
	l := newLine(t)
	l.want("it comes", []string{"GPU-1"}, "a0")
	l.now = l.now.Add(time.Hour)
	if waiting, err := l.book.Waiting(l.now); err != nil || len(waiting) > 0 {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
	l.want("it comes back", []string{"GPU-1"}, "a0")
}

// TestUnusedTurn: a waiter that leaves its room unused for 10 s loses its turn, others need not wait for it, and the
// history has it. As long as its room is not there, it keeps its turn.
func TestUnusedTurn(t *testing.T) {
	one := []string{"GPU-1"}
	l := newLine(t)
	found := func(name string, room bool) {
		t.Helper()
		if err := l.all[name].Found(l.book, room, l.now); err != nil {
			t.Fatal(err)
		}
	}
	waiting := func() (names string) {
		t.Helper()
		all, err := l.book.Waiting(l.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			names += w.User
		}
		return names
	}
	l.want("they come", one, "a0", "b1")
	for range 60 {
		l.now = l.now.Add(time.Second)
		found("a", false)
		l.want("no room", one, "a0", "b1")
	}
	for range 10 {
		l.now = l.now.Add(time.Second)
		found("a", true)
		l.want("room", one, "a0", "b1")
	}
	l.now = l.now.Add(time.Second)
	found("a", true)
	l.want("unused for 10 s", one, "b0", "a1")
	if names := waiting(); names != "b" {
		t.Errorf("waiting are %s", names)
	}
	history, err := l.book.History()
	if err != nil || len(history) != 1 || history[0].User != "a" || history[0].Op != "queue" || !strings.Contains(history[0].Refused, "did not use the room") {
		t.Errorf("the history has %+v, %v", history, err)
	}
	if err := l.all["b"].Leave(l.book); err != nil {
		t.Fatal(err)
	}
	l.want("alone", one, "a0")
	found("a", false)
	if names := waiting(); names != "a" {
		t.Errorf("without room, waiting are %s", names)
	}
	for range 11 {
		found("a", true)
		l.now = l.now.Add(time.Second)
		l.want("alone, with room", one, "a0")
	}
	found("a", true)
	if names := waiting(); names != "" {
		t.Errorf("alone, and unused: waiting are %s", names)
	}
}

// TestEndedAgent: a ticket whose agent has ended counts no more, at once.
func TestEndedAgent(t *testing.T) {
	l := newLine(t)
	l.want("they come", []string{"GPU-1"}, "a0", "b1")
	l.all["a"].close()
	if waiting, err := l.book.Waiting(l.now); err != nil || len(waiting) != 1 || waiting[0].User != "b" {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
}

func TestHasRoom(t *testing.T) {
	h200 := resource.GPU{UUID: "GPU-1", Model: resource.Model{MemoryMiB: 140 << 10, MemorySlices: 8, Profiles: []resource.Profile{
		{Name: "1g.18gb", MemoryMiB: 16 << 10, MemorySlices: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Name: "3g.71gb", MemoryMiB: 69 << 10, MemorySlices: 4, Starts: []int{0, 4}},
		{Name: "7g.141gb", MemoryMiB: 140 << 10, MemorySlices: 8, Starts: []int{0}},
	}}}
	split := h200
	split.MIG = true
	split.Slices = []resource.LiveSlice{{Slice: resource.Slice{Profile: "1g.18gb", Start: 0, Size: 1}}}
	held := []resource.Page{{UUID: "GPU-1", Holders: []resource.Holder{{Lineage: "a"}}}}
	for name, test := range map[string]struct {
		gpu    resource.GPU
		pages  []resource.Page
		wanted []int
		want   bool
	}{
		"an empty GPU":            {h200, nil, []int{6 << 10, 6 << 10}, true},
		"the whole of one":        {h200, nil, []int{140 << 10}, true},
		"two of its size":         {h200, nil, []int{140 << 10, 140 << 10}, false},
		"held without MIG":        {h200, held, []int{1}, false},
		"beside a slice":          {split, held, []int{6 << 10, 6 << 10, 6 << 10, 6 << 10, 6 << 10, 6 << 10}, true},
		"seven beside a slice":    {split, held, []int{1, 1, 1, 1, 1, 1, 1}, false},
		"a large one beside it":   {split, held, []int{40 << 10}, true},
		"two large ones":          {split, held, []int{40 << 10, 40 << 10}, false},
		"a whole one beside it":   {split, held, []int{100 << 10}, false},
		"a large and a small one": {split, held, []int{6 << 10, 40 << 10, 6 << 10, 6 << 10}, true},
	} {
		if got := HasRoom([]resource.GPU{test.gpu}, test.pages, test.wanted); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestQueueClock: times by a clock that was ahead count as now, so that a turn that is not used passes on all the same.
func TestQueueClock(t *testing.T) {
	one := []string{"GPU-1"}
	l := newLine(t)
	l.now = l.now.Add(240 * time.Hour)
	l.want("by a clock that is ahead", one, "a0", "b1")
	l.now = l.now.Add(-240 * time.Hour)
	l.want("by the corrected clock", one, "b1")
	l.now = l.now.Add(ignored + time.Second)
	l.want("the first was silent", one, "b0", "a1")
}
