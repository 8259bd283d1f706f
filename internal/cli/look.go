package cli

import (
	"context"
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

func (inv *invocation) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show hosts, GPUs and sessions as they are now",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inv.look(cmd.Context(), render.Status, render.StatusJSON)
		},
	}
}

func (inv *invocation) ps() *cobra.Command {
	return &cobra.Command{
		Use:   "ps",
		Short: "List the sessions as they are now",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inv.look(cmd.Context(), render.Sessions, render.SessionsJSON)
		},
	}
}

func (inv *invocation) slotMap() *cobra.Command {
	return &cobra.Command{
		Use:   "map",
		Short: "Draw which slots of which GPU are taken",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inv.look(cmd.Context(), render.Map, render.StatusJSON)
		},
	}
}

func (inv *invocation) look(ctx context.Context, text textView, json jsonView) error {
	p, _, _, err := inv.openHosts()
	if err != nil {
		return err
	}
	defer p.Close()
	o, err := p.Peek(ctx)
	if err != nil {
		return err
	}
	if err := p.RefuseCopy(o.Prior); err != nil {
		render.Diagnostics(inv.Err, inv.style(inv.Err), hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: err.Error()}}, nil)
	}
	view := render.StatusView{Prior: o.Prior, Live: o.Live, Drift: o.Plan.Diff.Drift, Flags: inv.flags(), Lost: p.Lost(o.Live), KilledRuns: p.KilledRuns(o.Live),
		Used: p.Used(o.Prior), Targets: catalog.Targets}
	if inv.json {
		return json(inv.Out, view)
	}
	text(inv.Out, inv.style(inv.Out), view)
	return nil
}

func (inv *invocation) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show [PLANFILE]",
		Short: "Show the state, or a saved plan",
		Args:  wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, files, _, err := inv.openHosts()
			if err != nil {
				return err
			}
			defer p.Close()
			if len(args) == 1 {
				return inv.showPlan(cmd.Context(), p, files, args[0])
			}
			prior, err := p.Store.Load()
			if err != nil {
				return err
			}
			if inv.json {
				return render.StateJSON(inv.Out, prior)
			}
			render.State(inv.Out, inv.style(inv.Out), prior)
			return nil
		},
	}
}

// showPlan shows a saved plan and says when it no longer rests on the world as
// it is.
func (inv *invocation) showPlan(ctx context.Context, p *project.Project, files map[string]*hcl.File, path string) error {
	saved, err := loadPlan(path)
	if err != nil {
		return err
	}
	view := render.PlanView{Config: inv.configName(files), Flags: inv.flags(), Saved: path}
	var stale *project.StaleError
	if view.Plan, err = p.Restore(*saved); err == nil {
		view.Prior, view.Live, err = p.Fresh(ctx, view.Plan)
	}
	if errors.As(err, &stale) {
		view.Stale = stale.What
	} else if err != nil {
		return err
	}
	return inv.tellPlan(view)
}
