package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/findings"
	"cosplay/internal/metrics"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// settling is how long a loop that was woken waits for further events of the same cause.
const settling = time.Second

// Opened is a project with what distinguishes it from one whose files or variables have changed.
type Opened struct {
	*project.Project
	Fingerprint string
}

// Loop repairs a project until its context ends. One goroutine runs it.
type Loop struct {
	Open     func() (*Opened, error) // reads the configuration; the error says what is wrong with it
	Policy   Policy
	Interval time.Duration
	Once     bool // until nothing is left that it may repair
	DryRun   bool // reports what it would repair
	Found    func(project.Outlook) []public.Drift
	Report   func(public.WatchEvent)
	Announce func(*project.Project, project.Outlook, []public.Drift)               // gets what each cycle finds; may be nil
	Glance   func(context.Context, *project.Project, project.Outlook) []diff.Drift // looks into the sessions; may be nil
	Monitor  *Monitor
	Version  string // of cosplay, for the monitor

	history *History
	record  findings.Record   // what was found, and has not ended
	said    map[string]string // what was reported last, by kind
	stays   map[Left]bool
	would   map[string]bool
	wake    chan struct{} // by events
	heard   *subscription
	glanced time.Time    // when the sessions were last looked into
	inside  []diff.Drift // what was found there
	current *Opened      // with the configuration that was good last
}

// onceCycles is how many cycles --once makes at most: one that repairs can uncover drift that was hidden behind another.
const onceCycles = 4

// Run runs the loop. clean reports whether the last cycle left no drift.
func (l *Loop) Run(ctx context.Context) (clean bool, err error) {
	l.history, l.record, l.said, l.wake = NewHistory(l.Policy.PerHour), findings.Record{}, map[string]string{}, make(chan struct{}, 1)
	defer func() {
		l.unsubscribe()
		if l.current != nil {
			err = errors.Join(err, l.current.Close())
		}
	}()
	for n := 1; ; n++ {
		repaired, cleanNow, err := l.cycle(ctx)
		if ctx.Err() != nil {
			return cleanNow, nil
		}
		if _, held := errors.AsType[*durable.HeldError](err); held { // another command is at work, or was killed a moment ago
			l.say(Waiting, sentence(err))
			err = nil
		}
		l.say(CycleFailed, sentence(err))
		l.Monitor.cycle(err != nil)
		if l.Once && (err != nil || !repaired || n == onceCycles) {
			return cleanNow, err
		}
		if l.current == nil { // the configuration was never good
			return false, err
		}
		if !repaired && !l.sleep(ctx) {
			return cleanNow, nil
		}
		l.history.Forget(time.Now())
	}
}

// sleep waits for the next cycle; false if the context has ended.
func (l *Loop) sleep(ctx context.Context) bool {
	wait := l.Interval*9/10 + rand.N(l.Interval/5+1)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	case <-l.wake:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(min(settling, l.Interval)):
		select {
		case <-l.wake:
		default:
		}
		return true
	}
}

// cycle reads everything once, and repairs what the policy allows.
func (l *Loop) cycle(ctx context.Context) (repaired, clean bool, err error) {
	p, outlook, j, err := l.choose(ctx)
	if p != nil {
		defer p.Machine.Rest()
	}
	if err != nil {
		return false, false, err
	}
	l.glance(ctx, p.Project, &outlook)
	l.Monitor.observe(Fleet(p.Project, outlook, l.Version))
	l.findings(p.Project, outlook)
	l.changed(j)
	clean = !outlook.Plan.Diff.NotAsApplied() && len(j.Changed) == 0
	l.left(j, outlook.Live)
	l.subscribe(ctx, p)
	expired := l.expired(outlook)
	switch {
	case l.DryRun:
		l.wouldRepair(j, expired, outlook.Live)
		return false, clean, nil
	case len(expired) > 0:
		if repaired, err = l.expire(ctx, p, expired); err != nil {
			return repaired, false, err
		}
	case len(j.Keys) == 0:
		return false, clean, nil
	}
	if len(j.Keys) > 0 {
		repaired, err = l.repair(ctx, p, j)
		l.glanced = time.Time{} // what it repaired was looked into before
	}
	return repaired, false, err
}

// glances is how often the loop looks into the sessions: a program starts in each.
const glances = 5 * time.Minute

// glance adds to the drift what the sessions themselves show, as of the last look into them.
func (l *Loop) glance(ctx context.Context, p *project.Project, o *project.Outlook) {
	if l.Glance == nil {
		return
	}
	if time.Since(l.glanced) >= glances {
		l.inside, l.glanced = l.Glance(ctx, p, *o), time.Now()
	}
	o.Plan.Diff.Drift = slices.Concat(o.Plan.Diff.Drift, slices.DeleteFunc(slices.Clone(l.inside), func(d diff.Drift) bool {
		s, there := o.Prior.Session(*d.Session)
		body, runs := o.Live.Body(d.Host, s.Runtime, s.ID)
		return !there || !runs || body.State != resource.Running
	}))
}

// Fleet is what a reading says in metrics.
func Fleet(p *project.Project, o project.Outlook, version string) metrics.Fleet {
	return metrics.Fleet{Version: version, Prior: o.Prior, Live: o.Live, Drift: o.Plan.Diff.Drift, Used: p.Used(o.Prior, o.Live), Ends: o.Ends}
}

// choose opens the project and plans. A configuration that is invalid, or that differs from what was applied, does not
// replace the one before it.
func (l *Loop) choose(ctx context.Context) (*Opened, project.Outlook, Judgement, error) {
	next, err := l.Open()
	l.say(ConfigInvalid, sentence(err))
	switch {
	case err != nil && l.current == nil:
		return nil, project.Outlook{}, Judgement{}, err
	case err != nil:
		return l.judged(ctx, l.current)
	case l.current != nil && next.Fingerprint == l.current.Fingerprint:
		_ = next.Close()
		return l.judged(ctx, l.current)
	}
	p, outlook, j, err := l.judged(ctx, next)
	if l.current != nil && (err != nil || len(j.Changed) > 0 && !l.Policy.Apply) {
		defer func() { _ = next.Close() }()
		_, before, old, failed := l.judged(ctx, l.current)
		old.Changed = j.Changed
		return l.current, before, old, errors.Join(err, failed)
	}
	if l.current != nil {
		_ = l.current.Close()
	}
	l.current = p
	l.unsubscribe()
	return p, outlook, j, err
}

// judged plans for the whole project and decides about each change. What a configuration has that is not applied is left
// out, so that the plan for the rest is what was applied.
func (l *Loop) judged(ctx context.Context, p *Opened) (*Opened, project.Outlook, Judgement, error) {
	outlook, j, err := l.judge(ctx, p, nil)
	if changed := j.Changed; err == nil && len(changed) > 0 && !l.Policy.Apply {
		outlook, j, err = l.judge(ctx, p, changed)
		j = j.without(changed, outlook.Prior)
	}
	return p, outlook, j, err
}

func (l *Loop) judge(ctx context.Context, p *Opened, without []resource.Address) (project.Outlook, Judgement, error) {
	outlook, diags, err := p.Plan(ctx, project.Aim{Exclude: prose.Each(without, resource.Address.String)})
	if err == nil && outlook.Plan == nil {
		err = &project.Refused{Diagnostics: diags}
	}
	if err != nil {
		return outlook, Judgement{}, err
	}
	now := time.Now()
	blocked := func(key string) Why { return l.history.Blocked(key, now) }
	return outlook, l.Policy.Judge(outlook.Plan, outlook.Live, outlook.Prior, blocked), nil
}

// subscription is to the events of a project's hosts.
type subscription struct {
	context.Context
	end     context.CancelFunc
	engines bool // to those of container engines, too
}

// subscribe lets the GPUs and the engines of a project's hosts wake the loop. An engine may be connected later.
func (l *Loop) subscribe(ctx context.Context, p *Opened) {
	if l.Once {
		return
	}
	if l.heard == nil {
		l.heard = &subscription{}
		l.heard.Context, l.heard.end = context.WithCancel(ctx)
		for _, h := range p.Machine.Hosts() {
			go h.Notify(l.heard, l.Wake)
		}
	}
	if l.heard.engines {
		return
	}
	for _, h := range p.Machine.Hosts() {
		for _, in := range h.Runtimes(resource.Owner{}) {
			if n, is := in.(runtime.Notifier); is {
				l.heard.engines = true
				go n.Notify(l.heard, l.Wake)
			}
		}
	}
}

func (l *Loop) unsubscribe() {
	if l.heard != nil {
		l.heard.end()
		l.heard = nil
	}
}

// Wake makes the loop look at once. It does not wait.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // it was woken already
	}
}

// repair changes what was judged.
func (l *Loop) repair(ctx context.Context, p *Opened, j Judgement) (repaired bool, err error) {
	allowed, aim := map[resource.Address]bool{}, project.Aim{}
	if !l.Policy.Apply {
		aim.Exclude = prose.Each(j.Changed, resource.Address.String)
	}
	for _, a := range j.Repairs {
		allowed[a] = true
		aim.Target = append(aim.Target, a.String())
	}
	by := operator{loop: l, approve: func(o project.Outlook) error { return l.approve(o, allowed) }, ended: l.repaired}
	return by.run(ctx, p, aim, project.WithoutCalls, j.Keys)
}

// repaired reports how a repair has ended. That its plan was refused does not fail the cycle.
func (l *Loop) repaired(succeeded bool, err error) error {
	l.Monitor.repair(!succeeded)
	if refused, is := errors.AsType[*project.Refused](err); is {
		l.report(public.WatchEvent{Kind: Failed, Text: sentence(refused)})
		return nil
	}
	return err
}

var errBeyond = errors.New("meanwhile more has changed than may be repaired; the next cycle decides again")

// approve approves only what was judged, and reports what is repaired.
func (l *Loop) approve(outlook project.Outlook, allowed map[resource.Address]bool) error {
	for _, c := range outlook.Plan.Diff.Sessions {
		if c.Action != diff.NoOp && !allowed[c.Address] {
			return fmt.Errorf("%s: %w", c.Address, errBeyond)
		}
	}
	j := l.Policy.Judge(outlook.Plan, outlook.Live, outlook.Prior, func(string) Why { return "" })
	if i := slices.IndexFunc(j.Left, func(left Left) bool { return left.GPU.UUID == "" && allowed[left.Address] }); i >= 0 {
		return fmt.Errorf("%s: %w", j.Left[i].Address, errBeyond)
	}
	for _, g := range outlook.Plan.Diff.GPUs {
		if g.Settings != (resource.Settings{}) {
			l.report(ofGPU(Repairing, g.Key(), outlook.Live, string(g.Action)))
		}
	}
	for _, c := range outlook.Plan.Diff.Sessions {
		if c.Action != diff.NoOp {
			l.report(ofSession(Repairing, c.Address, string(c.Action)))
		}
	}
	return nil
}

// expired are the sessions that have expired and that the policy ends. One that prevent_destroy keeps is only reported.
func (l *Loop) expired(o project.Outlook) []string {
	if l.Policy.Repairs[diff.LifetimeEnded] == Never {
		return nil
	}
	ended := prose.Only(o.Plan.Diff.Drift, func(d diff.Drift) bool { return d.Class == diff.LifetimeEnded && !d.Kept() })
	sessions := prose.Each(ended, func(d diff.Drift) string { return d.Session.String() })
	return prose.Only(sessions, func(s string) bool { return l.history.Blocked(expiry+s, time.Now()) == "" })
}

// expiry begins the keys of the history for the end of sessions.
const expiry = "expired "

// grace is how long the programs of a session that has expired may take to end.
const grace = resource.Seconds(10)

// expire ends sessions that have expired: the user's configuration asks for it.
func (l *Loop) expire(ctx context.Context, p *Opened, sessions []string) (done bool, err error) {
	by := operator{loop: l, approve: func(o project.Outlook) error {
		for _, c := range o.Plan.Diff.Sessions {
			if end, is := o.Plan.Ending(c.Address); is {
				l.report(ofSession(Ending, end.Address, fmt.Sprintf("expired at %s (%s)", end.At, end.Why)))
			}
		}
		return nil
	}}
	aim := project.Aim{Goal: project.ExpiredEnded, Target: sessions, Grace: grace}
	keys := prose.Each(sessions, func(session string) string { return expiry + session })
	return by.run(ctx, p, aim, project.AfterOthers, keys)
}

// operator applies plans without a user.
type operator struct {
	loop    *Loop
	approve func(project.Outlook) error              // refuses a plan without mistakes, or reports what begins
	ended   func(succeeded bool, failed error) error // turns the error of a run into that of the cycle; nil does not
	applied bool                                     // a step was carried out
	failed  []apply.Failure
}

// run plans and applies under the lock, and records the outcome for keys of the history. It reports whether something was
// changed and nothing failed.
func (o *operator) run(ctx context.Context, p *Opened, aim project.Aim, patience project.Patience, keys []string) (done bool, err error) {
	if err := p.Lock(ctx, "watch", 0); err != nil {
		return false, err
	}
	o.loop.say(Waiting, "")
	defer func() { err = errors.Join(err, p.Unlock()) }()
	err = p.Reconcile(ctx, aim, project.ApplyOptions{}, patience, o)
	if ctx.Err() != nil {
		return false, nil // what was done is saved, and the next start repairs the rest
	}
	succeeded := err == nil && len(o.failed) == 0
	for _, key := range keys {
		o.loop.history.Repaired(key, time.Now(), succeeded, rand.Float64())
	}
	if o.ended != nil {
		err = o.ended(succeeded, err)
	}
	return o.applied && succeeded, err
}

func (o *operator) Approve(_ context.Context, outlook project.Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	if diags.HasErrors() {
		return false, &project.Refused{Diagnostics: diags}
	}
	return false, o.approve(outlook)
}

func (o *operator) Begin(ctx context.Context, _ project.Outlook) (context.Context, func(apply.Event), func()) {
	return ctx, o.loop.step, func() {}
}

func (o *operator) Applied(_ context.Context, _ project.Outlook, result apply.Result, err error, again bool) error {
	if o.applied = o.applied || len(result.Done) > 0; !again {
		o.failed = result.Failures
	}
	return err
}
