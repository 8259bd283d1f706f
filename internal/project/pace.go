package project

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// pace spaces readings of one kind, so that they take 1/share of one processor; a pause is never longer than longest.
type pace struct{ share, longest time.Duration }

// The GPUs change from second to second, states and drift seldom.
var (
	paceOfGPUs = pace{300, 2 * time.Minute}
	paceOfAll  = pace{500, 5 * time.Minute}
)

func (p pace) after(cost time.Duration) time.Duration { return min(cost*p.share, p.longest) }

// AtPace makes of a reading of GPUs one that can be called at each interval: in between, it returns what it read last.
func AtPace[T any](read func(context.Context) (T, error)) func(context.Context) (T, error) {
	var last T
	var next time.Time
	return func(ctx context.Context) (T, error) {
		now, before := time.Now(), processorTime()
		if now.Before(next) {
			return last, nil
		}
		read, err := read(ctx)
		if err == nil {
			last, next = read, now.Add(paceOfGPUs.after(processorTime()-before))
		}
		return read, err
	}
}

// processorTime is what this process and its children that have ended have used.
func processorTime() time.Duration {
	var total int64
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var used unix.Rusage
		if unix.Getrusage(who, &used) == nil {
			total += used.Utime.Nano() + used.Stime.Nano()
		}
	}
	return time.Duration(total)
}
