package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// The queue of a host has a ticket for each project that waits for room, in the order in which they came. A ticket is
// valid as long as its agent has its lock, so that the end of a client, however it ends, removes it. It is not written
// to the disk at once: nothing of it outlives a reboot.

// ignored is how long the first in the queue may be silent, or leave room unused, before it loses its turn.
const ignored = 10 * time.Second

// maxTickets bounds the queue of a host.
const maxTickets = 1024

type ticket struct {
	Number int64     `json:"number"` // of its lock
	UID    int       `json:"uid"`
	User   string    `json:"user"`
	GPUs   []string  `json:"gpus"` // UUIDs of the GPUs on which it could get room
	Since  time.Time `json:"since"`
	Seen   time.Time `json:"seen"`             // when it last asked
	Turn   time.Time `json:"turn"`             // since when no other is before it; zero before that
	Room   time.Time `json:"room"`             // since when it has its turn and the room that it wants is there; zero without
	Passed bool      `json:"passed,omitempty"` // it has left room unused: commands that do not wait need not respect it
	Agent  string    `json:"agent"`            // the process that has its lock
}

func (t ticket) shares(gpus []string) bool {
	return slices.ContainsFunc(t.GPUs, func(g string) bool { return slices.Contains(gpus, g) })
}

// Waiter is the place of one agent in the queue of a host. Its zero value is not in the queue.
type Waiter struct {
	number int64
	lock   io.Closer
}

func (b Book) queue() string { return filepath.Join(b.Dir, "queue.json") }

// Waiting lists who waits for room and has asked lately, in their order.
func (b Book) Waiting(now time.Time) (all []resource.Waiting, err error) {
	if b.Dir == "" {
		return nil, nil
	}
	tickets, err := b.tickets()
	for _, t := range tickets {
		if !t.Passed && now.Sub(t.Seen) < ignored && durable.Runs(t.Agent, t.Seen) && !b.ended(t) {
			all = append(all, resource.Waiting{Number: t.Number, User: t.User, GPUs: t.GPUs})
		}
	}
	return all, err
}

func (b Book) tickets() (all []ticket, err error) {
	data, err := os.ReadFile(b.queue())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the queue of the host: %w", err)
	}
	if json.Unmarshal(data, &all) != nil {
		return nil, nil // truncated by a power failure, which ended all that waited
	}
	return all, nil
}

// changeQueue changes the tickets, behind a lock, after it has removed those whose agents have ended.
func (b Book) changeQueue(own int64, do func([]ticket) ([]ticket, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock, err := b.lock(ctx, queueByte)
	if err != nil {
		return fmt.Errorf("the queue of the host: %w", err)
	}
	defer func() { _ = lock.Close() }()
	tickets, err := b.tickets()
	if err != nil {
		return err
	}
	tickets = slices.DeleteFunc(tickets, func(t ticket) bool { return t.Number != own && b.ended(t) })
	if tickets, err = do(tickets); err != nil {
		return err
	}
	data, err := json.Marshal(tickets)
	if err != nil {
		return err
	}
	temporary := b.queue() + ".new"
	err = os.WriteFile(temporary, data, 0o644) //nolint:forbidigo // every second, and worth nothing after a crash
	if err = cmp.Or(err, os.Chmod(temporary, 0o644), os.Rename(temporary, b.queue())); err != nil {
		return unwritable(err)
	}
	return nil
}

// ended reports whether the agent of a ticket has ended, as far as its lock shows it to this user.
func (b Book) ended(t ticket) bool {
	lock, err := b.lockNow(queueBytes + t.Number)
	if err != nil {
		return false
	}
	_ = lock.Close()
	return true
}

// Ask takes a ticket at the end of the queue or, with one, says that the waiter is still there. ahead is how many wait
// before it for one of the same GPUs: with 0 it is its turn, until it leaves the queue or is silent for 10 s.
func (w *Waiter) Ask(b Book, who resource.Holder, gpus []string, now time.Time) (number int64, ahead int, err error) {
	if b.Dir == "" {
		return 0, 0, refuse("write a manage that changes something in the host block", "nothing of this host is managed, so it has no queue")
	}
	var late []ticket
	err = b.changeQueue(w.number, func(tickets []ticket) ([]ticket, error) {
		at := slices.IndexFunc(tickets, func(t ticket) bool { return w.number != 0 && t.Number == w.number })
		if at < 0 {
			if len(tickets) >= maxTickets {
				return nil, refuse("run the same command again later", "%d projects wait for room on this host already", len(tickets))
			}
			if err := w.take(b, tickets); err != nil {
				return nil, err
			}
			uid := os.Getuid()
			if who.UID != nil {
				uid = *who.UID
			}
			tickets = append(tickets, ticket{Number: w.number, UID: uid, User: who.User, GPUs: gpus, Since: now, Agent: durable.Self()})
			at = len(tickets) - 1
		}
		tickets[at].Seen = now
		tickets, late = passOn(tickets, now)
		at = slices.IndexFunc(tickets, func(t ticket) bool { return t.Number == w.number })
		ahead = before(tickets, at)
		return tickets, nil
	})
	b.recordLate(late, now)
	return w.number, ahead, err
}

// Found notes whether the room that the first in the queue waits for is there. A turn that is not used passes on.
func (w *Waiter) Found(b Book, room bool, now time.Time) error {
	var late []ticket
	err := b.changeQueue(w.number, func(tickets []ticket) ([]ticket, error) {
		for i := range tickets {
			t := &tickets[i]
			switch mine := t.Number == w.number; {
			case mine && !room:
				t.Room, t.Passed = time.Time{}, false
			case mine && t.Room.IsZero():
				t.Room = now
			}
		}
		tickets, late = passOn(tickets, now)
		return tickets, nil
	})
	b.recordLate(late, now)
	return err
}

// recordLate adds turns that passed on to the history.
func (b Book) recordLate(late []ticket, now time.Time) {
	for _, t := range late {
		why := fmt.Sprintf("it did not answer for %s, so its turn in the queue passed on", ignored)
		if t.unused(now) {
			why = fmt.Sprintf("it did not use the room that was there for %s, so its turn in the queue passed on", ignored)
		}
		_ = b.Record(Attempted{At: Stamp(now), User: t.User, UID: t.UID, Op: "queue", GPU: t.GPUs[0], Refused: why}) // the queue counts more than the line
	}
}

// unused reports whether a ticket has left room unused for too long.
func (t ticket) unused(now time.Time) bool { return !t.Room.IsZero() && now.Sub(t.Room) >= ignored }

// take takes the lock of a new ticket.
func (w *Waiter) take(b Book, tickets []ticket) (err error) {
	w.close()
	number := int64(1)
	for _, t := range tickets {
		number = max(number, t.Number+1)
	}
	for busy := new(durable.BusyError); ; number++ { // an agent may have the lock of a ticket that is lost
		if w.lock, err = b.lockNow(queueBytes + number); !errors.As(err, &busy) {
			break
		}
	}
	if err == nil {
		w.number = number
	}
	return err
}

// before counts the tickets before one that share a GPU with it.
func before(tickets []ticket, at int) (ahead int) {
	for _, t := range tickets[:at] {
		if t.shares(tickets[at].GPUs) {
			ahead++
		}
	}
	return ahead
}

// passOn moves those who ignore their turn to the end, if others wait for it, and notes whose turn it is. late are those
// that it moved, or that others need not wait for any more. Times in the future, by a clock that was ahead, count as now.
func passOn(tickets []ticket, now time.Time) (_, late []ticket) {
	for i := 0; i < len(tickets); i++ {
		t := &tickets[i]
		for _, at := range []*time.Time{&t.Seen, &t.Turn, &t.Room} {
			if at.After(now) {
				*at = now
			}
		}
		unused := t.unused(now)
		switch {
		case before(tickets, i) > 0:
			t.Turn, t.Room = time.Time{}, time.Time{}
		case t.Turn.IsZero():
			t.Turn = now
		case now.Sub(t.Turn) >= ignored && (now.Sub(t.Seen) >= ignored || unused):
			behind := slices.ContainsFunc(tickets[i+1:], func(o ticket) bool { return o.shares(t.GPUs) })
			if behind || unused && !t.Passed {
				late = append(late, *t)
			}
			t.Passed = t.Passed || unused
			if behind {
				last := *t
				last.Turn, last.Room = time.Time{}, time.Time{}
				tickets = append(slices.Delete(tickets, i, i+1), last)
				i--
			}
		}
	}
	return tickets, late
}

// Leave gives the ticket back.
func (w *Waiter) Leave(b Book) error {
	if w.number == 0 {
		return nil
	}
	number := w.number
	w.close()
	return b.changeQueue(0, func(tickets []ticket) ([]ticket, error) {
		return slices.DeleteFunc(tickets, func(t ticket) bool { return t.Number == number }), nil
	})
}

// Waits reports whether the waiter has a ticket, or had one that was lost.
func (w *Waiter) Waits() bool { return w.number != 0 }

func (w *Waiter) close() {
	if w.lock != nil {
		_ = w.lock.Close()
	}
	*w = Waiter{}
}
