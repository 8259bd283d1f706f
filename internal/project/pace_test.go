package project

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace: a dear reading is followed by a longer pause, which has an end.
func TestPace(t *testing.T) {
	p := pace{300, time.Minute}
	for cost, want := range map[time.Duration]time.Duration{0: 0, 10 * time.Millisecond: 3 * time.Second, time.Second: time.Minute} {
		if got := p.after(cost); got != want {
			t.Errorf("after %s a pause of %s, want %s", cost, got, want)
		}
	}
}

// TestAtPace: a dear reading is repeated after a pause, a failed one at once.
func TestAtPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings, failure := 0, errors.New("no driver")
		read := AtPace(func(context.Context) (int, error) {
			for begun := processorTime(); processorTime()-begun < 20*time.Millisecond; {
			}
			readings++
			if readings == 1 {
				return 0, failure
			}
			return readings, nil
		})
		for _, step := range []struct {
			after time.Duration
			want  int
			err   error
		}{{0, 0, failure}, {0, 2, nil}, {time.Second, 2, nil}, {4 * time.Second, 2, nil}, {2 * time.Minute, 3, nil}, {time.Second, 3, nil}} {
			time.Sleep(step.after)
			if got, err := read(t.Context()); got != step.want || !errors.Is(err, step.err) {
				t.Errorf("%s later: %d, %v; want %d, %v", step.after, got, err, step.want, step.err)
			}
		}
	})
}
