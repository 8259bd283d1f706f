package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Operator approves plans and gets their results: a command, or a loop without a user.
type Operator interface {
	// Approve returns an error to refuse the plan. If it waited for an answer, the hosts
	// are read again.
	Approve(ctx context.Context, o Outlook, diags hcl.Diagnostics) (waited bool, err error)
	// Begin is called before the first step, and end after the last one. When the context
	// that it returns ends, no further step starts.
	Begin(ctx context.Context, o Outlook) (stoppable context.Context, progress func(apply.Event), end func())
	// Applied gets the result of the plan and the error of the run itself. If again is true,
	// another plan follows. An error that it returns ends the loop.
	Applied(ctx context.Context, o Outlook, result apply.Result, err error, again bool) error
}

// Patience is after which failures Reconcile makes another plan.
type Patience int

// The kinds of patience.
const (
	AfterOthers  Patience = iota // another project changed the GPU first: Reconcile waits for it
	WithoutCalls                 // the same, and the driver does not offer a call: the next plan does not use it
)

const (
	maxPlans = 30               // many projects may run at once; each time, one of them succeeds
	settling = 10 * time.Second // for another project that changes a GPU; it may have been killed
)

// Refused has the reasons why a plan is refused, with their places in the configuration.
type Refused struct{ Diagnostics hcl.Diagnostics }

// Error is the errors among the diagnostics: warnings, which may come first, refuse nothing.
func (r *Refused) Error() string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Severity != hcl.DiagError {
			continue
		}
		words := prose.Stop(d.Summary)
		if d.Detail != "" {
			words = d.Summary + ": " + prose.Stop(d.Detail)
		}
		if d.Subject != nil && d.Subject.Filename != "" { // hcl prints ":0,0-0" where there is no place
			words = fmt.Sprintf("%s line %d: %s", d.Subject.Filename, d.Subject.Start.Line, words)
		}
		all = append(all, words)
	}
	return strings.Join(all, "\n")
}

// Reconcile plans and applies, and repeats both after the failures that its patience
// allows. The caller has the lock.
func (p *Project) Reconcile(ctx context.Context, aim Aim, o ApplyOptions, patience Patience, by Operator) error {
	begun := time.Now()
	for try := 1; ; try++ {
		outlook, diags, err := p.Plan(ctx, aim)
		if err != nil {
			return err
		}
		if !diags.HasErrors() && outlook.contested() && time.Since(begun) < settling {
			pause(ctx)
			continue
		}
		waited, err := by.Approve(ctx, outlook, diags)
		if err == nil && waited {
			outlook, err = p.stillGood(ctx, outlook.Plan)
			if stale, is := errors.AsType[*StaleError](err); is {
				stale.Command = p.command
			}
		}
		if err != nil {
			return err
		}
		result, err := p.carryOut(ctx, outlook, o, by)
		again := err == nil && try < maxPlans && ctx.Err() == nil && patience.again(result)
		if again && patience == WithoutCalls && Overtaken(result) && !refused(result) {
			again = p.othersChanged(ctx, outlook.Live, result.Prior.Lineage) // else it is the driver that refused
		}
		if err := by.Applied(ctx, outlook, result, err, again); err != nil || !again {
			return err
		}
		pause(ctx)
	}
}

// ApplySaved applies a saved plan.
func (p *Project) ApplySaved(ctx context.Context, saved *plan.Saved, o ApplyOptions, by Operator) error {
	planned, err := p.Restore(*saved)
	if err != nil {
		return err
	}
	outlook, err := p.stillGood(ctx, planned)
	if err == nil {
		_, err = p.unseal(planned, cmp.Or(outlook.Prior.Key, planned.Key))
	}
	if err != nil {
		return err
	}
	result, err := p.carryOut(ctx, outlook, o, by)
	return by.Applied(ctx, outlook, result, err, false)
}

// stillGood reads the hosts again and checks that a plan which was shown earlier can still
// be applied. A *Refused has only errors: the user has seen the warnings.
func (p *Project) stillGood(ctx context.Context, planned *plan.Plan) (Outlook, error) {
	prior, live, err := p.Fresh(ctx, planned)
	if stale, is := errors.AsType[*StaleError](err); is {
		stale.By = p.changedSince(planned.Timestamp, live)
	}
	if err == nil {
		err = p.checkOutputs(planned, prior, live)
	}
	if err != nil {
		return Outlook{}, err
	}
	diags, err := p.Check(ctx, planned, prior, live)
	if err == nil && diags.HasErrors() {
		err = &Refused{slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity != hcl.DiagError })}
	}
	return Outlook{Prior: prior, Live: live, Plan: planned}, err
}

// carryOut applies a plan. Without steps it only updates the outputs.
func (p *Project) carryOut(ctx context.Context, o Outlook, options ApplyOptions, by Operator) (result apply.Result, err error) {
	if o.Plan.Empty() && o.Plan.Destroys && o.Plan.Partial {
		return apply.Result{Prior: o.Prior}, nil // an edited output is for apply
	}
	if o.Plan.Empty() {
		result.Prior, err = p.keepOutputs(o.Plan, o.Prior, o.Live)
		return result, err
	}
	ctx, progress, end := by.Begin(ctx, o)
	defer end()
	options.Progress = p.passTurn(o.Plan, progress)
	return p.Apply(ctx, o.Plan, o.Prior, o.Live, options)
}

// contested reports whether another project is changing a GPU that the plan uses.
func (o Outlook) contested() bool {
	for _, s := range o.Plan.Desired.Sessions {
		for _, gpu := range s.On() {
			if page, held := o.Live.Page(gpu.Host, gpu.UUID); held && page.Moving(o.Prior.Lineage) {
				return true
			}
		}
	}
	return false
}

// again reports whether another plan may succeed.
func (p Patience) again(r apply.Result) bool {
	calls := p == WithoutCalls && slices.ContainsFunc(r.Failures, func(f apply.Failure) bool { return ofAgent(f).GivenUp != "" })
	return !r.Interrupted && (calls || Overtaken(r))
}

// ofAgent is the agent's error of a failure; empty where another one is the cause.
func ofAgent(f apply.Failure) agent.Error {
	if at, is := errors.AsType[*agent.Error](f.Err); is {
		return *at
	}
	return agent.Error{}
}

// refused reports whether the ledger refused each step that failed, because of what another project did.
func refused(r apply.Result) bool {
	return !slices.ContainsFunc(r.Failures, func(f apply.Failure) bool { return !ofAgent(f).Refused })
}

// othersChanged reports whether other projects have created or destroyed slices since the hosts were read.
func (l *Fleet) othersChanged(ctx context.Context, live resource.Live, own string) bool {
	for _, c := range l.Intent.Hosts {
		pages, _, err := l.Machine.Records(c).Ledger(ctx, "")
		if err != nil {
			continue // the next plan reports it
		}
		for _, page := range pages {
			was, _ := live.Page(c.Name, page.UUID)
			if !slices.EqualFunc(page.Others(own), was.Others(own), func(a, b resource.Holder) bool {
				return a.Lineage == b.Lineage && slices.EqualFunc(a.Slices, b.Slices, func(a, b resource.LiveSlice) bool { return a.UUID == b.UUID })
			}) {
				return true
			}
		}
	}
	return false
}

// Overtaken reports whether a run failed only because another process was faster than this one, so that another plan
// follows.
func Overtaken(r apply.Result) bool {
	return len(r.Failures) > 0 && !slices.ContainsFunc(r.Failures, func(f apply.Failure) bool {
		at := ofAgent(f)
		return !at.Overtaken() || f.Left != nil
	})
}

// pause waits a random time, so that projects which wait for each other do not stay in step.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
	}
}

// Remove ends the programs of all sessions and destroys all objects of the project. It waits for other projects that
// change the same GPUs.
func (p *Project) Remove(ctx context.Context, o ApplyOptions) (Outlook, apply.Result, error) {
	r := remover{progress: o.Progress}
	err := p.endPrograms(ctx)
	if err != nil {
		return r.outlook, r.result, err
	}
	err = p.Reconcile(ctx, Aim{Goal: NothingLeft}, o, AfterOthers, &r)
	return r.outlook, r.result, err
}

// farewell is how long programs have to end before they are killed.
const farewell = 5 * time.Second

// endPrograms ends what sessions still run, where a body that is removed does not end it: the memory that a program in
// the background has would be counted in no session.
func (p *Project) endPrograms(ctx context.Context) error {
	prior, _, err := p.Remembered()
	if err != nil {
		return err
	}
	for _, s := range prior.Sessions {
		if resource.RuntimeNamed(s.Runtime).RunsPrograms {
			continue
		}
		in, err := p.Runtime(ctx, s, prior)
		if err != nil {
			return err
		}
		if ender, can := in.(apply.Ender); can {
			if err := ender.End(ctx, s.ID, "The session of this program is being removed.", farewell); err != nil {
				return err
			}
		}
	}
	return nil
}

// remover is the operator of Remove.
type remover struct {
	progress func(apply.Event)
	outlook  Outlook
	result   apply.Result
}

func (r *remover) Approve(_ context.Context, _ Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	if diags.HasErrors() {
		err = &Refused{diags}
	}
	return false, err
}

func (r *remover) Begin(ctx context.Context, _ Outlook) (context.Context, func(apply.Event), func()) {
	return ctx, r.progress, func() {}
}

func (r *remover) Applied(_ context.Context, o Outlook, result apply.Result, err error, _ bool) error {
	r.outlook, r.result = o, result
	return err
}
