package agent

import (
	"context"
	"time"
)

// Pauses of Notify after an error.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
)

// Notify calls wake at each event of a GPU, and where one may have been missed, until the context ends. It has its own
// child, which waits. With a driver that has no events it returns.
func (o Options) Notify(ctx context.Context, wake func()) {
	o.Privileged = false
	client := New(o)
	defer func() { _ = client.Close() }()
	for pause := firstPause; ; {
		answer, err := client.reads.ask(ctx, request{Op: opEvent}, readDeadline)
		switch {
		case ctx.Err() != nil, unavailable(err):
			return
		case err == nil && !answer.Last:
			if pause = firstPause; answer.Happened {
				wake()
			}
			continue
		case err == nil: // something changes the host
			pause = firstPause
		default:
			_ = client.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
		wake()
	}
}
