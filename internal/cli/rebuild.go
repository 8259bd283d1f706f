package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/recovery"
	"cosplay/internal/render"
)

type rebuildOptions struct {
	lineage     string
	autoApprove bool
	lockTimeout time.Duration
}

func (inv *invocation) stateRebuild() *cobra.Command {
	var o rebuildOptions
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild a lost, damaged or mismatched state from ledgers, labels and hardware",
		Long: `Rebuild a state that is lost, damaged or another project's. The ledgers of the hosts have the GPUs that this project holds, and their baselines; slices, session folders and the labels of containers have its sessions. No GPU, slice or container is changed. An old state file is moved aside, not deleted.

If the state's key cannot be read from the old file, nothing proves that containers belong to the project. If you agree, cosplay adds them, and the next apply replaces them.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runRebuild(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.lineage, "lineage", "", "the first characters of the `lineage`, if the ledgers have several for this state, or another path")
	askFlag(f, &o.autoApprove)
	lockFlag(f, &o.lockTimeout)
	return cmd
}

func (inv *invocation) runRebuild(ctx context.Context, o rebuildOptions) error {
	if err := inv.mayAsk(!o.autoApprove, ""); err != nil {
		return err
	}
	p, err := inv.openState()
	if err != nil {
		return err
	}
	if err := p.Lock(ctx, "state rebuild", o.lockTimeout); err != nil {
		return err
	}
	r, err := recovery.Rebuild(ctx, p.Project, o.lineage)
	if err != nil {
		return err
	}
	view := render.RebuiltView{State: r.State.Path, Fault: r.State.Fault, Prior: r.Prior, Live: r.Live, Unproven: r.Unproven, Notes: r.Notes, Flags: inv.flags()}
	if !inv.json {
		render.Rebuilt(inv.Out, inv.style(inv.Out), view)
	}
	if err := inv.ask(!o.autoApprove, "Write this state?"); err != nil {
		return err
	}
	if view.Prior, view.Aside, err = recovery.WriteRebuilt(p.Project, r); err != nil {
		return err
	}
	return printView(inv, view, render.RebuiltDone, render.RebuiltJSON)
}
