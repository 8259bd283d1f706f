package cli

import (
	"context"
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/catalog"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func psCommand(inv *invocation) *cobra.Command {
	return inv.looking("ps", "List the sessions as they are now",
		func(v render.StatusView) error { return inv.print(render.SessionsView{StatusView: v}) },
		func(v render.MachineView) error { return inv.print(render.MachineSessionsView{MachineView: v}) })
}

func mapCommand(inv *invocation) *cobra.Command {
	return inv.looking("map", "Draw which slots of which GPU are taken",
		func(v render.StatusView) error { return inv.print(render.MapView{StatusView: v}) },
		func(v render.MachineView) error {
			if v.Unread != nil {
				return v.Unread
			}
			return inv.print(render.MachineMapView{MachineView: v})
		})
}

// looking is a command that reads state and hosts, and shows them; in a folder without a project, this machine.
func (inv *invocation) looking(name, short string, ofProject func(render.StatusView) error, ofMachine func(render.MachineView) error) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Long: short + `.

In a folder with neither a configuration nor a state: those of this machine, with the projects of all users that hold its GPUs, since when, and when their sessions expire. Your sessions of cosplay run --detach on simulated hosts are among them. The sessions of other users are in their states, which root can read.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := inv.statusView(cmd.Context())
			if none, is := errors.AsType[*project.NoConfigError](err); is && none.Bare {
				p, err := inv.open(forState)
				if err != nil {
					return err
				}
				done := inv.slow("Reading the GPUs")
				view, err := inv.machineView(cmd.Context(), p)
				done()
				if err != nil {
					return err
				}
				return ofMachine(view)
			}
			if err != nil {
				return err
			}
			return ofProject(view)
		},
	}
}

func (inv *invocation) statusView(ctx context.Context) (view render.StatusView, err error) {
	p, err := inv.open(forHosts)
	if err != nil {
		return view, err
	}
	done := inv.slow("Reading the hosts")
	o, err := p.Peek(ctx)
	done()
	if err != nil {
		return view, err
	}
	if err := p.RefuseCopy(o.Prior, o.Live); err != nil {
		render.Diagnostics(inv.Err, inv.style(inv.Err), hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: err.Error()}}, nil)
	}
	return inv.viewOf(p.Project, o), nil
}

// machineView is this machine, without a project.
func (inv *invocation) machineView(ctx context.Context, p *opened) (view render.MachineView, err error) {
	live, unread, err := p.ReadMachine(ctx)
	if err != nil {
		return view, err
	}
	tenants := project.ReadTenants(live)
	view = render.MachineView{StatusView: inv.hostsView(p.Project, resource.Prior{}, live), Unread: unread,
		Sessions: tenants.Sessions, Ends: tenants.Ends, Runs: tenants.Runs, Hidden: tenants.Hidden, Simulated: tenants.Simulated}
	view.Tenants = true
	return view, nil
}

// viewOf is what a reading shows.
func (inv *invocation) viewOf(p *project.Project, o project.Outlook) render.StatusView {
	view := inv.hostsView(p, o.Prior, o.Live)
	view.Ends, view.Drift, view.Targets = o.Ends, o.Plan.Diff.Drift, catalog.Targets
	view.Used = p.Used(o.Prior, o.Live)
	view.Reports = p.Reports(o.Prior, view.Used)
	return view
}

// hostsView is what a reading shows of the hosts, with or without a project.
func (inv *invocation) hostsView(p *project.Project, prior resource.Prior, live resource.Live) render.StatusView {
	return render.StatusView{Now: project.Now(), Prior: prior, Live: live, Flags: inv.flags(),
		Lost: p.Lost(prior, live), KilledRuns: p.KilledRuns(live)}
}

func showCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "show [PLANFILE]",
		Short: "Show the state, or a saved plan",
		Args:  wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := inv.open(forHosts)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return inv.showPlan(cmd.Context(), p, args[0])
			}
			prior, err := p.Store.Load()
			if err != nil {
				return err
			}
			return inv.print(render.StateView{Prior: prior})
		},
	}
}

// showPlan shows a saved plan, and why it is stale if it is.
func (inv *invocation) showPlan(ctx context.Context, p *opened, path string) error {
	saved, err := loadPlan(path)
	if err != nil {
		return err
	}
	view := render.PlanView{Config: inv.configName(p.files), Flags: inv.flags(), Aim: saved.Flags, Saved: path, Again: saved.Again, Destroy: saved.Destroys}
	if view.Plan, err = p.Restore(*saved); err == nil {
		view.Prior, view.Live, err = p.Fresh(ctx, view.Plan)
	}
	if stale, is := errors.AsType[*project.StaleError](err); is {
		view.Stale, view.Fix = stale.What, stale.Fix
	} else if err != nil {
		return err
	}
	return inv.print(view)
}

func reportCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "report [SESSION...]",
		Short: "Show what PyTorch did in sessions of a simulated host",
		Long: `Show what the programs of sessions did where PyTorch computes on the CPU, on a simulated host: peak memory, floating point operations of matrix products and convolutions, launches, bytes copied, and collectives. Of those that are named, of all of a block by its name, or of all.

A program writes its figures about every second and at its end; the last 32 are listed, and the total has all. A report lasts as long as its session. With COSPLAY_REPORT=1 in its environment, each program also prints a summary to standard error at its end.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, now, sessions, err := inv.peekChosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			return inv.print(render.ReportView{Sessions: sessions, Reports: p.Reports(now.Prior, p.Used(now.Prior, now.Live))})
		},
	}
}
