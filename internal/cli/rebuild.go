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
		Long: `Make a state anew that is lost, damaged or another project's: which GPUs this project holds, and what they were like before, is told by the ledgers of the hosts; its sessions by their slices, their folders and the labels of their containers. No GPU, slice or container is touched. What there was of the state is moved aside, not deleted.

Where the state's key cannot be found in what is left of it, containers cannot be proven to be the project's. They are taken up if you agree, and the next apply replaces them.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runRebuild(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.lineage, "lineage", "", "the beginning of the `lineage`, where the ledgers know several for this state, or another path")
	f.BoolVar(&o.autoApprove, "auto-approve", false, "do not ask")
	f.DurationVar(&o.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
	return cmd
}

func (inv *invocation) runRebuild(ctx context.Context, o rebuildOptions) error {
	if !o.autoApprove {
		if err := inv.mayAsk(""); err != nil {
			return err
		}
	}
	p, err := inv.openState()
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Lock(ctx, "state rebuild", o.lockTimeout); err != nil {
		return err
	}
	r, err := recovery.Rebuild(ctx, p, o.lineage)
	if err != nil {
		return err
	}
	view := render.RebuiltView{State: r.State.Path, Fault: r.State.Fault, Prior: r.Prior, Live: r.Live, Unproven: r.Unproven, Notes: r.Notes, Flags: inv.flags()}
	if !inv.json {
		render.Rebuilt(inv.Out, inv.style(inv.Out), view)
	}
	if !o.autoApprove {
		if err := inv.ask("Write this state?"); err != nil {
			return err
		}
	}
	if view.Prior, view.Aside, err = recovery.WriteRebuilt(p, r); err != nil {
		return err
	}
	if inv.json {
		return render.RebuiltJSON(inv.Out, view)
	}
	render.RebuiltDone(inv.Out, inv.style(inv.Out), view)
	return nil
}
