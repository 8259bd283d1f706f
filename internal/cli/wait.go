package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"cosplay/internal/project"
)

// waitFlag is --wait or --wait=DURATION.
type waitFlag struct {
	set   bool
	limit time.Duration // 0 waits without end
}

const forever = "forever"

func (w *waitFlag) String() string { return "" }

func (w *waitFlag) Type() string { return "duration" }

func (w *waitFlag) Set(text string) (err error) {
	if w.set = true; text == forever {
		w.limit = 0
		return nil
	}
	if w.limit, err = time.ParseDuration(text); err != nil || w.limit <= 0 {
		return errors.New("write a duration like 30m, or --wait alone to wait without end")
	}
	return nil
}

func (w *waitFlag) flag(f *pflag.FlagSet) {
	f.Var(w, "wait", "where there is no room: wait in the queue of the host, for this long at most")
	f.Lookup("wait").NoOptDefVal = forever
}

// detached refuses a duration that follows a space.
func (w *waitFlag) detached(words []string) error {
	if !w.set {
		return nil
	}
	for _, word := range words {
		if _, err := time.ParseDuration(word); err == nil {
			return fmt.Errorf("write --wait=%s, without a space", word)
		}
	}
	return nil
}

// await waits for the project's turn. The caller ends it.
func (inv *invocation) await(ctx context.Context, p *project.Project, aim project.Aim, w waitFlag) (*project.Turn, error) {
	if !w.set {
		return &project.Turn{}, nil
	}
	if w.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.limit)
		defer cancel()
	}
	turn, err := p.Await(ctx, aim, func(host string, position int) {
		fmt.Fprintf(inv.Err, "Waiting for room on host %s: position %d in its queue.\n", host, position)
	})
	if none, is := errors.AsType[*project.NoRoomError](err); is && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no room within %s. Fix: wait longer, or make room. %s", w.limit, none.Why)
	}
	return turn, err
}
