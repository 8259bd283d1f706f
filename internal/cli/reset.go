package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/recovery"
	"cosplay/internal/render"
)

type resetOptions struct {
	recovery.ResetOptions
	autoApprove bool
	force       bool
	parallelism int
	lockTimeout time.Duration
}

func (inv *invocation) reset() *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Without a state: remove what cosplay created, restore baselines",
		Long: `Take away what this project has made, and give the GPUs back as they were found, without needing the state: it may be lost, damaged or another project's. What is ours is told by the state where it can be read, by the ledgers of the hosts, by labels and by session folders. Slices, containers and settings of others stay as they are.

State, backup and journal are moved aside, not deleted. The configuration need not be valid. Sessions that prevent_destroy keeps are taken away with --force only.

  cosplay reset                      this project
  cosplay reset --gpu 0              this project, on one GPU
  cosplay reset --holder 1f3a        a project that is gone, as cosplay status lists it
  cosplay reset --all-projects       all of yours; with root, all of everybody

Exit codes: 0 done, or nothing to do; 1 error, or not all was done; 130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runReset(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.GPU, "gpu", "", "this `GPU` only, by index, UUID or PCI address")
	f.StringVar(&o.Host, "host", "", "this `host` only")
	f.StringVar(&o.Holder, "holder", "", "instead of this project one that no longer exists, by the beginning of its `lineage`")
	f.BoolVar(&o.AllProjects, "all-projects", false, "also your other projects; with root, everybody's")
	f.BoolVarP(&o.autoApprove, "auto-approve", "y", false, "do not ask")
	abandonFlag(f, &o.AbandonBaseline)
	f.BoolVar(&o.force, "force", false, "also take away what prevent_destroy keeps")
	f.IntVar(&o.parallelism, "parallelism", defaultParallelism(), "`number` of steps at a time")
	f.DurationVar(&o.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
	return cmd
}

func (inv *invocation) runReset(ctx context.Context, o resetOptions) error {
	switch {
	case o.Holder != "" && o.AllProjects:
		return errors.New("--holder is one project and --all-projects are all; leave one of them out")
	case o.parallelism < 1:
		return fmt.Errorf("--parallelism %d: at least 1 step has to run at a time", o.parallelism)
	}
	if !o.autoApprove {
		if err := inv.mayAsk(""); err != nil {
			return err
		}
	}
	p, complaint, err := inv.openForRecovery()
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Lock(ctx, "reset", o.lockTimeout); err != nil {
		return err
	}
	r, err := recovery.PlanReset(ctx, p, o.ResetOptions)
	if err != nil {
		return err
	}
	if len(r.Guarded) > 0 && !o.force {
		return fmt.Errorf("prevent_destroy keeps %s. Nothing was touched. Leave out its GPU by naming another with --gpu, or take it away all the same with --force", strings.Join(r.Guarded, ", "))
	}
	view := resetView(r, complaint)
	view.Flags, view.Idle = inv.flags(), recovery.Idle(p, r)
	if !inv.json {
		render.Reset(inv.Out, inv.style(inv.Out), view)
	}
	if view.Idle && !inv.json {
		if len(r.Failures) > 0 || slices.ContainsFunc(r.Rounds, func(one recovery.Round) bool { return len(one.Plan.Diff.Unrestored()) > 0 }) {
			return exit(exitError)
		}
		return nil
	}
	if !o.autoApprove {
		if err := inv.ask("Take all of this away?"); err != nil {
			return err
		}
	}
	return inv.takeAway(ctx, p, r, view, o)
}

func (inv *invocation) takeAway(ctx context.Context, p *project.Project, r *recovery.Reset, view render.ResetView, o resetOptions) error {
	done := render.ResetDoneView{ResetView: view}
	progress := render.NewProgress(inv.Err, inv.style(inv.Err))
	stoppable, stop := interruptible(ctx, progress)
	if len(r.Killed) > 0 {
		inv.removeKilled(ctx)
	}
	results := recovery.CarryOut(stoppable, p, r, progress.Event, o.parallelism)
	interrupted := stoppable.Err() != nil
	stop()
	progress.Close()
	failed := len(r.Failures) > 0
	for _, d := range results {
		done.Results = append(done.Results, render.ResetResult{Round: resetRound(d.Round), Result: d.Result, Err: d.Err})
		failed = failed || d.Err != nil || len(d.Result.Failures) > 0 || len(d.Round.Plan.Diff.Unrestored()) > 0
	}
	done.Aside, done.Left, done.Err = recovery.Settle(p, r, results)
	if inv.json {
		if err := render.ResetJSON(inv.Out, done); err != nil {
			return err
		}
	} else {
		render.ResetDone(inv.Out, inv.style(inv.Out), done)
	}
	switch {
	case failed || done.Err != nil:
		return exit(exitError)
	case interrupted:
		return exit(exitInterrupted)
	}
	return nil
}

func resetView(r *recovery.Reset, complaint error) render.ResetView {
	v := render.ResetView{State: r.State.Path, Fault: r.State.Fault, Failures: r.Failures, Killed: r.Killed}
	if complaint != nil {
		v.Complaint = complaint.Error()
	}
	for _, one := range r.Rounds {
		v.Rounds = append(v.Rounds, resetRound(one))
	}
	return v
}

func resetRound(r recovery.Round) render.ResetRound {
	return render.ResetRound{Holder: r.Holder, Own: r.Own, Plan: r.Plan, Prior: r.Prior, Live: r.Live, Unproven: r.Unproven, Notes: r.Notes}
}

// openForRecovery opens the project whatever its configuration is like.
func (inv *invocation) openForRecovery() (p *project.Project, complaint, err error) {
	p, complaint, err = project.OpenForRecovery(inv.options(project.Options{}))
	if err == nil {
		p.Waiting = inv.tellWaiting
	}
	return p, complaint, err
}
