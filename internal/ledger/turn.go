package ledger

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"time"

	"cosplay/internal/durable"
)

// The bytes of the ledger's lock file: one for all pages, one for the queue, one for each user, each agent of a user and
// each ticket of the queue, and one for each GPU, by a hash of its UUID.
const (
	pagesByte  int64 = 0
	queueByte  int64 = 1
	userBytes  int64 = 1 << 32
	agentBytes int64 = 1 << 40
	queueBytes int64 = 1 << 50
	gpuBytes   int64 = 1 << 62
)

func gpuByte(uuid string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uuid))
	return gpuBytes | int64(hash.Sum64()>>2)
}

// Turn is one change of a GPU, from the check of what is allowed until its outcome is on
// record: meanwhile no other agent changes the GPU or its page, and the change is announced.
type Turn struct {
	user, gpu io.Closer
	withdraw  func()
}

// rest is the pause after each change of a user. Agents of other users try to lock the
// GPU every few milliseconds and succeed in the pause.
const rest = 10 * time.Millisecond

// Turn waits until this agent may change a GPU; after the given time it fails. Agents of one user change GPUs one
// after the other, and an agent announces its change only when no other agent of its user has one: so other users wait
// for at most one agent of this user. With uid 0, for root or an unknown user, the agent waits for the GPU alone.
func (b Book) Turn(uid int, gpu string, wait time.Duration) (*Turn, error) {
	t := &Turn{}
	if b.Dir == "" {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	err := t.begin(ctx, b, uid, gpu)
	if err != nil {
		t.End()
	}
	return t, err
}

func (t *Turn) begin(ctx context.Context, b Book, uid int, gpu string) (err error) {
	var busy *durable.BusyError
	if uid != 0 {
		if t.user, err = b.lock(ctx, userBytes+int64(uid)); errors.As(err, &busy) {
			return refuse("run the same command again when it has ended", "another change of yours is still under way on this host")
		}
		if err != nil {
			return err
		}
	}
	if t.gpu, err = b.lock(ctx, gpuByte(gpu)); errors.As(err, &busy) {
		return refuse("run the same command again in a moment", "another cosplay is changing the GPU")
	}
	if err != nil {
		return err
	}
	if t.withdraw, err = durable.Announce(b.moving()); err != nil {
		return unwritable(err)
	}
	return nil
}

// End releases the locks and withdraws the announcement.
func (t *Turn) End() {
	if t.withdraw != nil {
		t.withdraw()
	}
	if t.gpu != nil {
		t.gpu.Close()
	}
	if user := t.user; user != nil {
		time.AfterFunc(rest, func() { user.Close() })
	}
	*t = Turn{}
}

// maxAgents bounds the processes of root that work for one user at a time.
const maxAgents = 16

// Join counts an agent that works for a user until the returned value is closed. It refuses an agent above maxAgents.
func (b Book) Join(uid int) (io.Closer, error) {
	if _, err := os.Stat(b.Dir); uid == 0 || err != nil { // without a ledger there is no agent to wait for
		return nil, nil
	}
	for n := range int64(maxAgents) {
		var busy *durable.BusyError
		if place, err := b.lockNow(agentBytes + int64(uid)*maxAgents + n); !errors.As(err, &busy) {
			return place, err
		}
	}
	return nil, refuse("run the same command again when one of your other cosplay commands has ended", "%d agents of root work for you already", maxAgents)
}

// lockNow does not wait: if another process has the lock, the error is a *durable.BusyError.
func (b Book) lockNow(at int64) (io.Closer, error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return b.lock(now, at)
}

func (b Book) lock(ctx context.Context, at int64) (io.Closer, error) {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return nil, unwritable(err)
	}
	lock, err := durable.LockByte(ctx, filepath.Join(b.Dir, "ledger.lock"), at)
	var busy *durable.BusyError
	if err != nil && !errors.As(err, &busy) {
		return nil, unwritable(err)
	}
	return lock, err
}
