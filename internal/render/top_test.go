package render

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/resource"
)

// topOf is a live table at a fixed time.
func topOf(w *world, height int) TopView {
	v := TopView{Height: height, Order: BySession}
	v.Update(reading(w.status()))
	return v
}

// reading is one in which all sessions have changed.
func reading(s StatusView) TopReading {
	at := time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)
	r := TopReading{StatusView: s, TopTimes: TopTimes{at, at, at}}
	for _, one := range s.Prior.Sessions {
		r.Changed = append(r.Changed, one.Address)
	}
	return r
}

// busy is a fleet whose sessions have programs.
func busy() TopView {
	w := one().applied().lose("worker-5", true).foreign(0, 0, "1g.18gb", 7)
	for n, at := range []int{0, 2, 2} {
		s := w.prior.Sessions[at]
		w.gpu(0, 0).Processes = append(w.gpu(0, 0).Processes, resource.Process{PID: 4000 + n, Name: "python3", MemoryMiB: 900 * n, GPUInstance: &s.Handle.GPUInstance})
	}
	v, s := topOf(w, 18), w.status()
	s.Used = map[resource.Address]resource.Use{resource.Nth("worker", 0): {NowBytes: 2400 << 20, PeakMiB: 5900}, resource.Nth("worker", 2): {NowBytes: 6144 << 20, PeakMiB: 6144, OutOfMemory: 1},
		resource.Nth("worker", 3): {}}
	s.Busy = map[resource.Address]int{resource.Nth("worker", 0): 7, resource.Nth("worker", 2): 93, resource.Nth("worker", 3): 0}
	for _, mib := range []int64{0, 1, 900, 3000, 6144} {
		v.history.add(map[resource.Address]resource.Use{resource.Nth("worker", 0): {NowBytes: mib << 20}}, []resource.Address{resource.Nth("worker", 0)})
	}
	v.Update(reading(s))
	return v
}

func topScreens() []screen {
	live := func(name string, v TopView) screen {
		filled := regexp.MustCompile(`\n\n\n+`) // what a screen is filled with
		return screen{name, func(w io.Writer, s Style) {
			_, _ = io.WriteString(w, filled.ReplaceAllString(TopScreen(s, v), "\n\n")+"\n")
		}}
	}
	detail, gpus, typing, lost := busy(), topOf(wide(24, 20).applied(), 14), busy(), topOf(mixed().applied(), 20)
	detail.Selected, detail.Detail = new(resource.Nth("worker", 2)), true
	gpus.AllGPUs = true
	typing.Filter, typing.Typing, typing.Height = "slot 2", true, 12
	lost.Problem, lost.Live.Hosts[0].Unreachable = "the driver did not answer within 10 s.", "ssh: connect to host attic port 22: Connection refused"
	few := topOf(wide(24, 20).applied(), 24)
	few.Selected, few.Reverse = new(resource.Nth("worker", 100)), true
	return []screen{live("top", busy()), live("top-detail", detail), live("top-gpus", gpus), live("top-filter", typing), live("top-lost", lost), live("top-many", few),
		{"top-once", func(w io.Writer, s Style) { Show(w, s, busy()) }}}
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestTopScreen: at every size a screen has as many lines as the terminal, none is wider, and the colours of one end with it:
// a line can be drawn alone.
func TestTopScreen(t *testing.T) {
	views := map[string]TopView{"busy": busy(), "many": topOf(wide(24, 20).applied(), 0), "empty": topOf((&world{}).host("lab", "l40s"), 0), "mixed": topOf(mixed().applied(), 0)}
	for name, v := range views {
		for _, width := range []int{60, 80, 200} {
			for _, v.Height = range []int{3, 10, 24, 60} {
				for _, v.AllGPUs = range []bool{false, true} {
					text := TopScreen(Style{Width: width, Unicode: true}, v)
					lines := strings.Split(text, "\n")
					if len(lines) != v.Height {
						t.Errorf("%s at %d x %d has %d lines:\n%s", name, width, v.Height, len(lines), text)
					}
					for _, line := range lines {
						if columns(line) > width && v.Height > 3 {
							t.Errorf("%s at %d x %d: a line has %d columns: %s", name, width, v.Height, columns(line), line)
						}
					}
					for line := range strings.SplitSeq(TopScreen(Style{Width: width, Color: true}, v), "\n") {
						if inks := colour.FindAllString(line, -1); len(inks) > 0 && !slices.Contains([]string{"\x1b[0m", "\x1b[22m", "\x1b[0;22m"}, inks[len(inks)-1]) {
							t.Errorf("%s at %d x %d: the colours of a line do not end: %q", name, width, v.Height, line)
						}
					}
				}
			}
		}
	}
}

// TestTopTitle: a live table says when older parts were read, as far as its first line has room.
func TestTopTitle(t *testing.T) {
	const at, summary = "cosplay top at 14:02:11", ": 140 sessions, all running; no drift."
	for _, c := range []struct {
		width     int
		gpus, all time.Duration // ago
		want      string
	}{
		{60, 20 * time.Second, 2 * time.Minute, "cosplay top at 14:02:11: 140 sessions, all running; no"},
		{80, 20 * time.Second, 2 * time.Minute, at + ", GPUs at 14:01:51" + summary},
		{100, 20 * time.Second, 2 * time.Minute, at + ", GPUs at 14:01:51, states at 14:00:11" + summary},
		{100, 20 * time.Second, 20 * time.Second, at + ", GPUs and states at 14:01:51" + summary},
		{100, 0, 2 * time.Minute, at + ", states at 14:00:11" + summary},
		{100, time.Second, time.Second, at + summary},
	} {
		v := topOf(wide(24, 20).applied(), 24)
		v.GPUsAt, v.AllAt = v.At.Add(-c.gpus), v.At.Add(-c.all)
		if got, _, _ := strings.Cut(TopScreen(Style{Width: c.width}, v), "\n"); got != c.want {
			t.Errorf("at %d columns: %q, want %q", c.width, got, c.want)
		}
	}
}

// TestTopSelected: the selected session is on the screen, wherever it is in the list.
func TestTopSelected(t *testing.T) {
	v := topOf(wide(24, 20).applied(), 24)
	for _, v.Height = range []int{10, 24, 60} {
		for _, a := range TopSessions(v) {
			v.Selected = &a
			if text := TopScreen(Style{Width: 80}, v); !strings.Contains(text, ">  "+a.Short()+" ") {
				t.Fatalf("%s is not on a screen of %d lines:\n%s", a, v.Height, text)
			}
		}
	}
}

// TestTopOrder: what needs attention comes first, and the filter finds any cell.
func TestTopOrder(t *testing.T) {
	for order, want := range map[TopOrder]string{BySession: "0123456", ByMemory: "2013456", ByPeak: "2013456", ByUtilization: "2031456", ByProcesses: "2013456", ByState: "5012346"} {
		v := busy()
		v.Order = order
		got := ""
		for _, a := range TopSessions(v) {
			got += fmt.Sprint(a.Key.Index)
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
		v.Reverse = true
		if all := TopSessions(v); fmt.Sprint(all[len(all)-1].Key.Index) != want[:1] {
			t.Errorf("by %s, reversed: %v", order, all)
		}
	}
	for filter, want := range map[string]int{"WORKER-3": 1, "slot 2": 1, "missing": 1, "rtx": 7, "lab": 7, "nothing": 0, "": 7} {
		v := busy()
		v.Filter = filter
		if got := len(TopSessions(v)); got != want {
			t.Errorf("the filter %q shows %d sessions, want %d", filter, got, want)
		}
	}
}

// TestTopUpdate: what follows from the hosts is that of the reading that is shown.
func TestTopUpdate(t *testing.T) {
	w := one().applied()
	v := topOf(w, 24)
	later := w.status()
	later.Used = map[resource.Address]resource.Use{resource.Nth("worker", 1): {NowBytes: 1 << 30}}
	v.Problem = errors.New("old").Error()
	v.Update(reading(later))
	if text := TopScreen(Style{}, v); !strings.Contains(text, "1024 of 6144 MiB") || strings.Contains(text, "old") {
		t.Errorf("the figures of another reading:\n%s", text)
	}
	gone := one().applied().lose("worker-1", false)
	v.Update(reading(gone.status()))
	if rows := v.rows(); rows[1].state == resource.Running || !slices.ContainsFunc(rows, func(r topRow) bool { return r.state == resource.Running }) {
		t.Errorf("the states of another reading: %s", TopScreen(Style{}, v))
	}
}

// TestTopChanges: what has to be drawn again: a history moves on as long as readings in it differ.
func TestTopChanges(t *testing.T) {
	worker := resource.Nth("worker", 1)
	w := one().applied()
	same := reading(w.status())
	same.Changed = nil
	after := func(change func(*TopView, *TopReading)) bool {
		v, r := topOf(w, 24), same
		v.Live = r.Live
		change(&v, &r)
		return v.Update(r)
	}
	for name, test := range map[string]struct {
		change func(*TopView, *TopReading)
		want   bool
	}{
		"nothing":   {func(*TopView, *TopReading) {}, false},
		"a use":     {func(_ *TopView, r *TopReading) { r.Changed = []resource.Address{worker} }, true},
		"hosts":     {func(_ *TopView, r *TopReading) { r.Live = one().applied().status().Live }, true},
		"an expiry": {func(_ *TopView, r *TopReading) { r.Ends = map[resource.Address]resource.End{worker: {}} }, true},
		"a failure": {func(v *TopView, _ *TopReading) { v.Problem = "the driver hangs" }, true},
	} {
		if got := after(test.change); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	v, r := topOf(w, 24), same
	v.Live = r.Live
	r.Used = map[resource.Address]resource.Use{worker: {NowBytes: 1 << 30}}
	r.Changed = []resource.Address{worker}
	moved := 0
	for ; v.Update(r); r.Changed = nil {
		moved++
	}
	if moved != historyKept+1 {
		t.Errorf("a change is drawn for %d readings", moved)
	}
	if kept := v.history.last(worker, historyKept); len(kept) != historyKept || kept[0] != 1<<30 {
		t.Errorf("the history has %d readings from %d on", len(kept), kept[0])
	}
}

// TestUnchanging: readings change nothing, states and settings do.
func TestUnchanging(t *testing.T) {
	base := one().applied()
	before := Unchanging(base.status())
	for name, test := range map[string]struct {
		change  func(*world)
		changes bool
	}{
		"power":       {func(w *world) { w.gpu(0, 0).DrawMW += 90000 }, false},
		"temperature": {func(w *world) { w.gpu(0, 0).TemperatureC++ }, false},
		"memory":      {func(w *world) { w.gpu(0, 0).MemoryUsedMiB++ }, false},
		"a limit":     {func(w *world) { w.gpu(0, 0).PowerMW-- }, true},
		"a session":   {func(w *world) { w.lose("worker-3", false) }, true},
		"a slice":     {func(w *world) { w.foreign(0, 0, "1g.18gb", 7) }, true},
	} {
		w := one().applied()
		test.change(w)
		if got := Unchanging(w.status()) != before; got != test.changes {
			t.Errorf("%s changes it: %v", name, got)
		}
	}
}
