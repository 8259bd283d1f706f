package watch_test

import (
	"testing"
	"time"

	"cosplay/internal/watch"
)

// TestBackOff: after each failure the next repair waits twice as long, up to an hour, and varies by half of it; a
// success ends the wait.
func TestBackOff(t *testing.T) {
	h, now := watch.NewHistory(1000), time.Unix(0, 0)
	for n, least := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		if why := h.Blocked("a", now); why != "" {
			t.Fatalf("before failure %d: %s", n, why)
		}
		h.Repaired("a", now, false, 0)
		if why := h.Blocked("a", now.Add(least-time.Second)); why != watch.BackingOff {
			t.Errorf("after failure %d: %q", n, why)
		}
		now = now.Add(least)
	}
	h.Repaired("a", now, false, 1)
	if why := h.Blocked("a", now.Add(time.Hour+29*time.Minute)); why != watch.BackingOff {
		t.Errorf("with the longest jitter: %q", why)
	}
	now = now.Add(2 * time.Hour)
	h.Repaired("a", now, true, 0)
	if why := h.Blocked("a", now); why != "" {
		t.Errorf("after a success: %s", why)
	}
}

// TestPerHour: one session is repaired only so often in any hour; others are not counted.
func TestPerHour(t *testing.T) {
	h, start := watch.NewHistory(3), time.Unix(0, 0)
	for minute := range 3 {
		h.Repaired("a", start.Add(time.Duration(minute)*time.Minute), true, 0)
	}
	for _, c := range []struct {
		key  string
		at   time.Duration
		want watch.Why
	}{
		{"a", 3 * time.Minute, watch.Exhausted},
		{"b", 3 * time.Minute, ""},
		{"a", 59*time.Minute + 59*time.Second, watch.Exhausted},
		{"a", time.Hour, ""},
	} {
		if got := h.Blocked(c.key, start.Add(c.at)); got != c.want {
			t.Errorf("%s after %s: %q, want %q", c.key, c.at, got, c.want)
		}
	}
	h.Forget(start.Add(3 * time.Hour))
	if why := h.Blocked("a", start); why != "" {
		t.Errorf("what was forgotten still counts: %s", why)
	}
}
