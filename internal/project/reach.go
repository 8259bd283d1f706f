package project

import (
	"context"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// reachTime is how long Reach waits for an engine, for which Peek waits again.
const reachTime = 2 * time.Second

// Reached is a session that runs as the last run left it.
type Reached struct {
	Session resource.PriorSession
	Prior   resource.Prior
	Runtime runtime.Runtime // for Exec alone
}

// Reach reads one session and no other, for a command in it, and its slice if withSlice. It is not ok if anything is
// not as the last run left it, or cannot be read: Peek then reads all hosts, and its callers report what is wrong.
func (p *Project) Reach(ctx context.Context, choose func(resource.Prior) (resource.PriorSession, error), withSlice bool) (r Reached, ok bool) {
	stamp := p.Store.Stamp()
	if p.Unfinished() {
		return r, false
	}
	var err error
	if r.Prior, err = p.load(); err != nil {
		return r, false
	}
	if r.Session, err = choose(r.Prior); err != nil || r.Session.Body == nil {
		return r, false
	}
	c, err := p.Host(r.Session.Slice.Host)
	if err != nil {
		return r, false
	}
	soon, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	h, in, err := p.Machine.Reach(soon, c, r.Session.Runtime, r.Prior.Owner(), withSlice)
	if err != nil || in == nil {
		return r, false
	}
	source := observe.Source{Name: c.Name, Bodies: []observe.BodyLister{one{in, r.Session.ID}}}
	if withSlice {
		source.GPUs = h.Agent
	}
	live, err := observe.Read(ctx, []observe.Source{source}, machine.Complete)
	if err != nil || !asLeft(r.Session, live) {
		return r, false
	}
	if withSlice && r.Session.Handle != nil {
		if own, there := diff.OwnSlice(r.Session, live); !there || own.UUID == "" {
			return r, false
		}
	}
	r.Runtime = in
	return r, !p.Unfinished() && p.Store.Stamp() == stamp
}

// asLeft reports whether the session's body is that of the last run, and users can enter it.
func asLeft(s resource.PriorSession, live resource.Live) bool {
	c, there := live.Body(s.Slice.Host, s.Runtime, s.ID)
	return there && c.ID == s.Body.ID && c.State == resource.Running && len(c.Altered) == 0 &&
		c.SSHPort == s.Body.SSHPort && (c.SSHPort != 0 || !s.Spec.SSH.Enabled)
}

// one lists the body of one session.
type one struct {
	runtime.Runtime
	session string
}

func (o one) List(ctx context.Context) ([]resource.Body, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	if lister, can := o.Runtime.(runtime.OneLister); can {
		return lister.One(ctx, o.session)
	}
	return o.Runtime.List(ctx)
}
