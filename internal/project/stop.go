package project

import (
	"context"
	"fmt"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Stop stops the sessions that run, and records that those that do not run are to stay so. The caller has the lock.
func (p *Project) Stop(ctx context.Context, now Outlook, sessions []resource.PriorSession, o ApplyOptions) (apply.Result, error) {
	if err := stoppable(now, sessions); err != nil {
		return apply.Result{}, err
	}
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s resource.PriorSession) bool {
		body, _ := now.Live.Body(s.Slice.Host, s.Runtime, s.ID)
		return s.Rests(body)
	})
	return p.applySteps(ctx, now, plan.Stopping(sessions), o)
}

// Start starts the sessions that do not run. The caller has the lock.
func (p *Project) Start(ctx context.Context, now Outlook, sessions []resource.PriorSession, o ApplyOptions) (apply.Result, error) {
	if err := stoppable(now, sessions); err != nil {
		return apply.Result{}, err
	}
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s resource.PriorSession) bool {
		body, _ := now.Live.Body(s.Slice.Host, s.Runtime, s.ID)
		return !s.Stopped && body.State == resource.Running
	})
	for _, s := range sessions {
		if own, there := diff.OwnSlice(s, now.Live); s.Handle != nil && (!there || own.UUID == "") {
			return apply.Result{}, prose.Advice{What: fmt.Sprintf("%s: its slice is missing, so there is no GPU to run on", s.Address),
				Fix: fmt.Sprintf("run cosplay apply, then cosplay start %s", s.Address.Short())}
		}
	}
	return p.applySteps(ctx, now, plan.Starting(sessions), o)
}

func (p *Project) applySteps(ctx context.Context, now Outlook, planned *plan.Plan, o ApplyOptions) (apply.Result, error) {
	if planned.Empty() {
		return apply.Result{Prior: now.Prior}, nil
	}
	return p.Apply(ctx, planned, now.Prior, now.Live, o)
}

// stoppable fails if a session has nothing that can be stopped or started.
func stoppable(now Outlook, sessions []resource.PriorSession) error {
	for _, s := range sessions {
		runtime := resource.RuntimeNamed(s.Runtime)
		_, there := now.Live.Body(s.Slice.Host, s.Runtime, s.ID)
		switch {
		case now.Live.Unreachable(s.Slice.Host):
			return now.Live.NotRead(s.Slice.Host)
		case runtime.Devices:
			return prose.Advice{What: fmt.Sprintf("%s cannot be stopped or started: it is a CDI device, and its containers are those of their engine", s.Address),
				Fix: "stop or start them there, like: docker stop"}
		case !runtime.RunsPrograms:
			return prose.Advice{What: fmt.Sprintf("%s cannot be stopped or started: sessions of host %q run %s, each as long as its command", s.Address, s.Slice.Host, runtime.Where),
				Fix: "end the processes that cosplay exec started"}
		case !there:
			return prose.Advice{What: fmt.Sprintf("%s: its %s does not exist", s.Address, runtime.Body), Fix: "cosplay apply recreates it"}
		}
	}
	return nil
}
