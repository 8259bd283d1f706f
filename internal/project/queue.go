package project

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// asking is how often a project that waits asks for its place in the queue, at least. It must be well below the 10 s
// after which the ledger passes a turn on. The first ones ask more often: a turn is often shorter than that.
const (
	asking  = time.Second
	hurried = 50 * time.Millisecond
)

// Turn is a project's turn in the queues of its hosts. End gives it to the next.
type Turn struct {
	queues  []*hostQueue // in the order in which all projects queue, so that no two wait for each other
	stop    context.CancelFunc
	stopped chan struct{}
	end     sync.Mutex
}

// hostQueue is the queue of a host.
type hostQueue struct {
	host   string
	client *agent.Client
	gpus   []string
	room   []int // the memory of each new session in MiB
	asked  bool  // the project is in it
}

// NoRoomError is the end of a wait without room.
type NoRoomError struct {
	error
	Why string // in sentences
}

func (e *NoRoomError) Unwrap() error { return e.error }

// Await waits in the queues of the hosts until no other project that waits for the same GPUs was there before this one,
// and the new sessions of a plan fit. For a plan without new sessions, or one that would not fit on empty GPUs either, it
// does not wait. say is called with each new position on a host, from 1.
func (p *Project) Await(ctx context.Context, aim Aim, say func(host string, position int)) (*Turn, error) {
	p.queued = true
	o, diags, err := p.Plan(context.WithoutCancel(ctx), aim) // the time to wait begins after it
	if err != nil || !resolve.OnlyRoom(diags) && (diags.HasErrors() || len(newSessions(o)) == 0) {
		return &Turn{}, err
	}
	t, err := p.newTurn(o)
	if err != nil {
		return t, err
	}
	var tried map[string]string
	for last, planned := (place{}), (time.Time{}); ; {
		now, err := place{}, ctx.Err()
		if err == nil {
			now, err = t.ask(ctx)
		}
		stamps := p.stamps(ctx, tried)
		if err == nil && now.position == 1 && (!maps.Equal(stamps, tried) || time.Since(planned) >= asking) {
			tried, planned = stamps, time.Now()
			var again hcl.Diagnostics
			if _, again, err = p.Plan(ctx, aim); err == nil {
				diags = again
			}
			if err == nil && !resolve.OnlyRoom(diags) {
				t.keep(ctx)
				p.turn = t
				return t, nil
			}
		}
		if ctx.Err() != nil {
			err = &NoRoomError{ctx.Err(), resolve.NoRoom(diags)}
		}
		if err != nil {
			t.End()
			return t, err
		}
		if now != last {
			say(now.host, now.position)
			last = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(asking, hurried*time.Duration(now.position))):
		}
	}
}

// stamps are those of the ledgers by host: others after any project has changed one. known are the last ones.
func (l *Fleet) stamps(ctx context.Context, known map[string]string) map[string]string {
	all := map[string]string{}
	for _, c := range l.Intent.Hosts {
		_, all[c.Name], _ = l.Machine.Records(c).Ledger(ctx, known[c.Name]) // a ledger that cannot be read is for the plan to report
	}
	return all
}

// passTurn returns the progress of a plan. It ends the turn as soon as all slices of the plan exist: the next project
// need not wait for the rest.
func (p *Project) passTurn(planned *plan.Plan, progress func(apply.Event)) func(apply.Event) {
	left := map[string]bool{}
	for _, s := range planned.Steps {
		_, takes := s.Do.Op.(plan.TakeGPU)
		_, creates := s.Do.Op.(plan.CreateSlice)
		_, sets := s.Do.Op.(plan.SetGPU)
		if takes || creates || sets {
			left[s.ID] = true
		}
	}
	if p.turn == nil || len(left) == 0 {
		return progress
	}
	return func(e apply.Event) {
		if e.Kind == apply.StepDone && left[e.Step.ID] {
			if delete(left, e.Step.ID); len(left) == 0 {
				go p.turn.End()
			}
		}
		if progress != nil {
			progress(e)
		}
	}
}

func (p *Project) newTurn(o Outlook) (*Turn, error) {
	t, gpus, room := &Turn{}, resolve.Candidates(p.Intent, o.Live), map[string][]int{}
	for _, s := range p.Intent.Sessions {
		if _, made := o.Prior.Session(s.Address); !made {
			for _, h := range p.Intent.Hosts {
				if s.MayBeOn(h.Name) {
					room[h.Name] = append(room[h.Name], slices.Repeat([]int{s.Target.MemoryMiB}, max(1, s.GPUs))...)
				}
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(gpus)) {
		h, err := p.Machine.Open(*p.Intent.Host(host))
		if err != nil {
			return t, err
		}
		client := h.NewAgent().For(p.Holder(o.Prior.Lineage))
		t.queues = append(t.queues, &hostQueue{host: host, client: client, gpus: gpus[host], room: room[host]})
	}
	return t, nil
}

// place is a place in the queue of a host.
type place struct {
	host     string
	position int // from 1, which has the turn
}

// ask asks the hosts in their order, up to the first where it is not this project's turn.
func (t *Turn) ask(ctx context.Context) (at place, err error) {
	for _, q := range t.queues {
		answer, err := q.client.Queue(ctx, q.gpus, q.room)
		if err != nil {
			return at, fmt.Errorf("host %s: %w", q.host, err)
		}
		q.asked = true
		if at = (place{q.host, answer.Ahead + 1}); answer.Ahead > 0 {
			return at, nil
		}
	}
	return at, nil
}

// keep says at intervals that the project is still there, until End.
func (t *Turn) keep(ctx context.Context) {
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.stopped = make(chan struct{})
	go func() {
		defer close(t.stopped)
		for ctx.Err() == nil {
			_, _ = t.ask(ctx) // at worst, another project gets the turn
			select {
			case <-ctx.Done():
			case <-time.After(asking):
			}
		}
	}()
}

// End leaves the queues. It may be called more than once.
func (t *Turn) End() {
	t.end.Lock()
	defer t.end.Unlock()
	if t.stop != nil {
		t.stop()
		<-t.stopped
		t.stop = nil
	}
	for _, q := range t.queues {
		if q.asked {
			_ = q.client.LeaveQueue(context.Background()) // others would see the ticket until it is 10 s old
		}
		_ = q.client.Close() // its ticket ends with its child
		q.asked = false
	}
}

// newSessions are the sessions that a plan creates and that did not exist before: only these have to queue. A session
// that is replaced or restored had its room already.
func newSessions(o Outlook) (all []resource.Session) {
	if o.Plan == nil {
		return nil
	}
	for _, c := range o.Plan.Diff.Sessions {
		if c.Before == nil && c.After != nil && c.Imported == "" {
			all = append(all, *c.After)
		}
	}
	return all
}

// checkQueue reports that others wait for a GPU on which the plan has a new session.
func (p *Project) checkQueue(f *preflight.Flight, host config.Host, o Outlook) {
	shown, _ := o.Live.Host(host.Name)
	if p.queued {
		return
	}
	for _, w := range shown.Queue {
		i := slices.IndexFunc(newSessions(o), func(s resource.Session) bool {
			return slices.ContainsFunc(s.On(), func(g resource.GPUKey) bool { return g.Host == host.Name && slices.Contains(w.GPUs, g.UUID) })
		})
		if i < 0 {
			continue
		}
		what := fmt.Sprintf("another project, of %s, waits for room on its GPUs and was there first", w.User)
		if n := len(shown.Queue); n > 1 {
			what = fmt.Sprintf("%s wait for room on its GPUs and were there first", prose.Count(n, "other project"))
		}
		f.Host(host.Name, preflight.Problem{Warning: !p.Locked(), Summary: fmt.Sprintf("host %q has a queue", host.Name),
			Advice: prose.Advice{What: what, Fix: "add --wait, which puts this command at its end"}})
		return
	}
}
