package cli

import (
	"context"
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/selftest"
)

func (inv *invocation) plan() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would change, and what has drifted",
		Long: `Compare the configuration with the state and with what the hosts show.

Exit codes: 0 fine, 1 error; with --detailed-exitcode 2 when there is drift or a change.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runPlan(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "save the plan to this `file`, for cosplay apply FILE")
	flags.BoolVar(&o.markdown, "markdown", false, "write Markdown, for a pull request")
	flags.BoolVar(&o.destroy, "destroy", false, "plan to remove everything")
	flags.BoolVar(&o.refreshOnly, "refresh-only", false, "only look for drift")
	aimFlags(flags, &o.aim)
	flags.BoolVar(&o.detailed, "detailed-exitcode", false, "exit with 2 when there is drift or a change")
	return cmd
}

func (inv *invocation) drift() *cobra.Command {
	o := planOptions{refreshOnly: true, detailed: true, driftOnly: true}
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Print what was changed outside cosplay",
		Long: `The same as plan --refresh-only --detailed-exitcode, but standard output stays empty without drift: for cron.

NVML cannot read a clock lock. While a GPU is idle its lock is not provable; drift reports that on standard error as information, which does not change the exit code. --quiet leaves it out.

drift checks the files of each session's disguise. --verify runs the whole self-test in every session, which takes seconds and proves the clock locks too: see cosplay verify.

Exit codes: 0 no drift, 1 error, 2 drift.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runPlan(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.verify, "verify", false, "also test the disguise from inside every session")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but drift: no information on standard error")
	return cmd
}

type planOptions struct {
	aim                            project.Aim
	out                            string
	destroy, refreshOnly, detailed bool
	markdown, verify               bool

	driftOnly bool // standard output stays empty without drift
	quiet     bool // and so does standard error
}

func (inv *invocation) runPlan(ctx context.Context, o planOptions) error {
	switch {
	case o.refreshOnly && o.destroy:
		return errors.New("--refresh-only changes nothing, so there is no --destroy with it; leave one of them out")
	case o.refreshOnly && o.out != "":
		return errors.New("--refresh-only makes no plan that could be saved; leave --out or --refresh-only out")
	case o.refreshOnly && o.markdown:
		return errors.New("--markdown shows the plan, drift and all; leave --refresh-only out")
	case inv.json && o.markdown:
		return errors.New("--json and --markdown are two forms of the same; leave one of them out")
	case o.out != "":
		if err := mayOverwrite(o.out); err != nil {
			return err
		}
	}
	switch {
	case o.destroy:
		o.aim.Goal = project.NothingLeft
	case o.refreshOnly:
		o.aim.Goal = project.ReadOnly
	}
	if err := checkAim(o.aim); err != nil {
		return err
	}
	inv.asks = true
	p, files, diags, err := inv.openWith(project.Options{HostsOnly: o.destroy || o.refreshOnly})
	if err != nil {
		return err
	}
	defer p.Close()
	outlook, view, err := inv.outlook(ctx, p, files, diags, o.aim)
	if err != nil {
		return err
	}
	if o.verify {
		verified, err := selftest.Verify(ctx, p, outlook.Prior, outlook.Live, outlook.Prior.Sessions, selftest.VerifyOptions{})
		if err != nil {
			return err
		}
		outlook.Plan.Diff = selftest.WithBroken(outlook.Plan.Diff, verified)
	}
	view.Destroy = o.destroy
	drifted := outlook.Plan.Diff.NotAsApplied()
	changed := (outlook.Plan.Diff.Changes() || len(outlook.Plan.Diff.Outputs) > 0) && !o.refreshOnly
	if o.refreshOnly {
		if err := inv.tellDrift(view, o); err != nil {
			return err
		}
	} else {
		if o.out != "" {
			if err := savePlan(o.out, outlook.Plan); err != nil {
				return err
			}
			view.Saved = o.out
		}
		tell := inv.tellPlan
		if o.markdown {
			tell = func(view render.PlanView) error { return render.PlanMarkdown(inv.Out, inv.style(inv.Out), view) }
		}
		if err := tell(view); err != nil {
			return err
		}
	}
	if o.detailed && (drifted || changed) {
		return exit(exitChanges)
	}
	return nil
}

// outlook makes the plan and what is shown of it.
func (inv *invocation) outlook(ctx context.Context, p *project.Project, files map[string]*hcl.File, warnings hcl.Diagnostics, aim project.Aim) (project.Outlook, render.PlanView, error) {
	outlook, diags, err := p.Plan(ctx, aim)
	if err != nil {
		return outlook, render.PlanView{}, err
	}
	view, err := inv.planView(p, files, outlook, append(warnings, diags...), aim)
	return outlook, view, err
}

// planView is what is shown of a plan. Diagnostics with errors end the command.
func (inv *invocation) planView(p *project.Project, files map[string]*hcl.File, outlook project.Outlook, diags hcl.Diagnostics, aim project.Aim) (render.PlanView, error) {
	if diags.HasErrors() {
		return render.PlanView{}, inv.refuse(diags, files)
	}
	return render.PlanView{
		Config: inv.configName(files), Flags: append(inv.flags(), aimed(aim)...), Prior: outlook.Prior, Live: outlook.Live, Plan: outlook.Plan,
		Warnings: diags, Files: files, Notes: p.Notes,
	}, nil
}

func (inv *invocation) tellPlan(view render.PlanView) error {
	if inv.json {
		return render.PlanJSON(inv.Out, view)
	}
	render.Plan(inv.Out, inv.style(inv.Out), view)
	return nil
}

func (inv *invocation) tellDrift(view render.PlanView, o planOptions) error {
	switch {
	case inv.json:
		return render.DriftJSON(inv.Out, view)
	case !o.driftOnly && !view.Plan.Diff.NotAsApplied():
		render.NoDrift(inv.Out, inv.style(inv.Out), view)
	case !view.Plan.Diff.NotAsApplied(): // standard output stays empty, as cron jobs expect, but for what was recovered
		render.Drift(inv.Out, inv.style(inv.Out), view)
		if !o.quiet {
			render.Information(inv.Err, inv.style(inv.Err), view)
		}
	default:
		render.Drift(inv.Out, inv.style(inv.Out), view)
	}
	return nil
}
