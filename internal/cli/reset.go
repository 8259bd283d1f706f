package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/recovery"
	"cosplay/internal/render"
)

type resetOptions struct {
	recovery.ResetOptions
	stepFlags
	autoApprove bool
	force       bool
}

func resetCommand(inv *invocation) *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Without a state: remove what cosplay created, restore baselines",
		Long: `Remove what this project has created, and restore the baselines of the GPUs. The state is not needed: it may be lost, damaged or another project's. cosplay finds the project's objects by the ledgers of the hosts, by labels, by session folders, and by the state if that can be read. Slices, containers and settings of other projects stay.

State, backup and journal are moved aside, not deleted. The configuration need not be valid. Sessions with prevent_destroy are removed only with --force.

  cosplay reset                      this project
  cosplay reset --gpu 0              this project, on one GPU
  cosplay reset --holder 1f3a        a project whose state is lost, as cosplay status lists it
  cosplay reset --all-projects       all of your projects; as root, those of all users

Exit codes: 0 done, or nothing to do; 1 error, or not all was done; 130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), inv) },
	}
	f := cmd.Flags()
	f.StringVar(&o.GPU, "gpu", "", "this `GPU` only, by index, UUID or PCI address")
	f.StringVar(&o.Host, "host", "", "this `host` only")
	f.StringVar(&o.Holder, "holder", "", "instead of this project one whose state is lost, by the first characters of its `lineage`")
	f.BoolVar(&o.AllProjects, "all-projects", false, "also your other projects; as root, those of all users")
	f.BoolVarP(&o.autoApprove, "auto-approve", "y", false, "do not ask")
	abandonFlag(f, &o.AbandonBaseline)
	f.BoolVar(&o.force, "force", false, "also remove sessions with prevent_destroy")
	o.flags(f)
	return cmd
}

func (o resetOptions) run(ctx context.Context, inv *invocation) error {
	if o.Holder != "" && o.AllProjects {
		return errors.New("--holder is one project and --all-projects are all; leave one of them out")
	}
	if err := inv.mayAsk(!o.autoApprove, ""); err != nil {
		return err
	}
	p, complaint, err := project.OpenForRecovery(inv.options(project.Options{}))
	if err != nil {
		return err
	}
	defer p.Close()
	p.Waiting = inv.waits
	if err := inv.lock(ctx, p, "reset", o.lockTimeout); err != nil {
		return err
	}
	done := inv.slow("Reading the hosts")
	r, err := recovery.PlanReset(ctx, p, o.ResetOptions)
	done()
	if err != nil {
		return err
	}
	if len(r.Guarded) > 0 && !o.force {
		return fmt.Errorf("prevent_destroy keeps %s. Nothing was touched. Leave out its GPU by naming another with --gpu, or remove the session all the same with --force", strings.Join(r.Guarded, ", "))
	}
	view := resetView(r, complaint)
	view.Flags, view.Idle = inv.flags(), recovery.Idle(p, r)
	if !inv.json {
		render.Reset(inv.Out, inv.style(inv.Out), view)
	}
	if view.Idle && !inv.json {
		unrestored := slices.ContainsFunc(r.Rounds, func(one recovery.Round) bool { return len(one.Plan.Diff.Unrestored()) > 0 })
		return exitIf(len(r.Failures) > 0 || unrestored, exitError)
	}
	if err := inv.ask(!o.autoApprove, "Remove all of this?"); err != nil {
		return err
	}
	return o.carryOut(ctx, inv, p, r, view)
}

func (o resetOptions) carryOut(ctx context.Context, inv *invocation, p *project.Project, r *recovery.Reset, view render.ResetView) error {
	done := render.ResetDoneView{ResetView: view}
	stoppable, event, closed := inv.stoppable(ctx)
	if len(r.Killed) > 0 {
		_ = inv.removeKilled(ctx)
	}
	results := recovery.CarryOut(stoppable, p, r, event, int(o.parallelism))
	interrupted := stoppable.Err() != nil
	closed()
	failed := len(r.Failures) > 0
	for _, d := range results {
		done.Results = append(done.Results, render.ResetResult{Round: resetRound(d.Round), Result: d.Result, Err: d.Err})
		failed = failed || d.Err != nil || len(d.Result.Failures) > 0 || len(d.Round.Plan.Diff.Unrestored()) > 0
	}
	done.Aside, done.Left, done.Err = recovery.Settle(p, r, results)
	if err := inv.print(done); err != nil {
		return err
	}
	return cmp.Or(exitIf(failed || done.Err != nil, exitError), exitIf(interrupted, exitInterrupted))
}

func resetView(r *recovery.Reset, complaint error) render.ResetView {
	v := render.ResetView{State: r.State.Path, Fault: r.State.Fault, Rounds: prose.Each(r.Rounds, resetRound), Failures: r.Failures, Killed: r.Killed}
	if complaint != nil {
		v.Complaint = complaint.Error()
	}
	return v
}

func resetRound(r recovery.Round) render.ResetRound {
	return render.ResetRound{Holder: r.Holder, Own: r.Own, Plan: r.Plan, Prior: r.Prior, Live: r.Live, Unproven: r.Unproven, Notes: r.Notes}
}
