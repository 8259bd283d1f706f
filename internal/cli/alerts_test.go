package cli

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cosplay/internal/alerts"
	"cosplay/internal/project"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// slow is a receiver that takes until it is released, or until the context ends.
type slow struct {
	release chan struct{}
	begun   atomic.Int32
	sent    atomic.Int32
}

func (s *slow) Name() string { return "slow" }

func (s *slow) Send(ctx context.Context, _ []byte) error {
	s.begun.Add(1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.release:
		s.sent.Add(1)
		return nil
	}
}

// TestSlowReceiver: a receiver that hangs holds up nothing; then it gets what is newest, and one delivery at a time.
func TestSlowReceiver(t *testing.T) {
	to := &slow{release: make(chan struct{})}
	a := &announcer{receivers: []alerts.Receiver{to}, warn: func(err error) { t.Log(err) }}
	p, o := &project.Project{Files: project.Files{Dir: t.TempDir()}}, project.Outlook{Prior: resource.Prior{Lineage: "1234567890"}}
	ctx, cancel := context.WithCancel(t.Context())
	found := []public.Drift{}
	for _, host := range []string{"a", "b", "c", "d"} {
		found = append(found, public.Drift{Class: "host-rebooted", Host: host})
		a.announce(ctx, p, o, found) // would hang here
		for end := time.Now().Add(10 * time.Second); to.begun.Load() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	if n := to.begun.Load(); n != 1 {
		t.Errorf("%d deliveries at once", n)
	}
	close(to.release)
	a.finish(cancel)
	if n := to.sent.Load(); n != 2 {
		t.Errorf("%d messages, want the first and one with all that came meanwhile", n)
	}
	if c := a.record(p, o, nil); len(c.Ended) != len(found) {
		t.Errorf("ended: %+v", c.Ended)
	}
}
