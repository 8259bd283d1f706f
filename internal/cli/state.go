package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

func (inv *invocation) stateCommands() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "state",
		Short: "Look into the state, and change what it remembers",
		Long: `Look into the state, and change what it remembers. Nothing in the world is touched: no GPU, no slice, no container.

An ADDRESS is session.worker[3], or worker-3 for short; worker alone means all sessions of the block. A GPU is named by its UUID.`,
	})
	cmd.AddCommand(inv.stateList(), inv.stateShow(), inv.stateMove(), inv.stateRemove(), inv.stateRebuild())
	return cmd
}

func (inv *invocation) stateList() *cobra.Command {
	return &cobra.Command{
		Use:   "list [ADDRESS]...",
		Short: "List what is in the state: sessions by address, GPUs by UUID",
		RunE: func(_ *cobra.Command, args []string) error {
			_, part, err := inv.remembered(args)
			if err != nil {
				return err
			}
			if inv.json {
				return render.StateListJSON(inv.Out, part)
			}
			render.StateList(inv.Out, part)
			return nil
		},
	}
}

func (inv *invocation) stateShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ADDRESS",
		Short: "Show all that the state remembers of one session or GPU",
		Args:  wants(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			prior, part, err := inv.remembered(args)
			if err != nil {
				return err
			}
			if n := len(part.Sessions); n > 1 {
				return fmt.Errorf("%q means %d sessions; name one of them, as %s", args[0], n, part.Sessions[0].Address)
			}
			if inv.json {
				return render.StateShowJSON(inv.Out, part)
			}
			render.StateShow(inv.Out, inv.style(inv.Out), prior, part)
			return nil
		},
	}
}

// remembered reads the part of the state that the addresses name; without any,
// all of it.
func (inv *invocation) remembered(typed []string) (resource.Prior, render.StatePart, error) {
	p, err := inv.openState()
	if err != nil {
		return resource.Prior{}, render.StatePart{}, err
	}
	defer p.Close()
	prior, open, err := p.Remembered()
	if err != nil {
		return prior, render.StatePart{}, err
	}
	if open {
		fmt.Fprintln(inv.Err, "A run is under way or was interrupted: this is the state from before it.")
	}
	part := render.StatePart{Lineage: prior.Lineage, Serial: prior.Serial, Sessions: prior.Sessions, GPUs: prior.GPUs}
	if len(typed) == 0 {
		return prior, part, nil
	}
	part.Sessions, part.GPUs = nil, nil
	for _, one := range typed {
		found, err := state.Find(prior, one)
		if err != nil {
			return prior, part, err
		}
		part.Sessions, part.GPUs = append(part.Sessions, found.Sessions...), append(part.GPUs, found.GPUs...)
	}
	return prior, part, nil
}

// openState opens the project for its state alone: a folder without configuration may
// still have one.
func (inv *invocation) openState() (*project.Project, error) {
	p, _, _, err := inv.openWith(project.Options{MayBeEmpty: true, HostsOnly: true})
	return p, err
}

// editOptions are what the commands that change the state have in common.
type editOptions struct {
	dryRun      bool
	lockTimeout time.Duration
}

func (o *editOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and do nothing")
	f.DurationVar(&o.lockTimeout, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
}

// edited opens the project and reads the state that is to be changed, under the
// lock unless it is a dry run.
func (inv *invocation) edited(ctx context.Context, command string, o editOptions) (*project.Project, resource.Prior, error) {
	p, err := inv.openState()
	if err != nil {
		return nil, resource.Prior{}, err
	}
	var prior resource.Prior
	if o.dryRun {
		prior, _, err = p.Remembered()
	} else if err = p.Lock(ctx, command, o.lockTimeout); err == nil {
		prior, err = p.Settled(ctx)
	}
	if err == nil {
		err = p.RefuseCopy(prior)
	}
	if err != nil {
		p.Close()
		return nil, prior, err
	}
	return p, prior, nil
}

func (inv *invocation) stateMove() *cobra.Command {
	var o editOptions
	cmd := &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Give a session, or all of a block, another address",
		Long: `Give a session another address in the state, or all sessions of a block another block's name, so that a session that was renamed in the configuration is not removed and made anew. Slice and container stay.

  cosplay state mv worker trainer              all of the block
  cosplay state mv worker 'trainer[0]'         a single session that got a count
  cosplay state mv worker-3 worker-7           one of them`,
		Args: wants(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return inv.runMove(cmd.Context(), args[0], args[1], o) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (inv *invocation) runMove(ctx context.Context, from, to string, o editOptions) error {
	p, prior, err := inv.edited(ctx, "state mv", o)
	if err != nil {
		return err
	}
	defer p.Close()
	next, moves, err := state.Move(prior, from, to, p.Addresses())
	if err != nil {
		return err
	}
	view := render.MovedView{Moves: moves, DryRun: o.dryRun, Configured: p.Addresses(), Serial: prior.Serial}
	if !o.dryRun {
		if next, err = p.Store.Save(next); err != nil {
			return err
		}
		if err := p.Readdress(next, moves); err != nil {
			return err
		}
		view.Serial = next.Serial
	}
	if inv.json {
		return render.MovedJSON(inv.Out, view)
	}
	render.Moved(inv.Out, inv.style(inv.Out), view)
	return nil
}

func (inv *invocation) stateRemove() *cobra.Command {
	var (
		o           editOptions
		autoApprove bool
	)
	cmd := &cobra.Command{
		Use:   "rm ADDRESS...",
		Short: "Forget sessions, and leave what they have as it is",
		Long: `Forget sessions, without touching the world: their slices and containers stay, cosplay no longer knows them, and prints how they are removed by hand. A GPU on which no session is left is forgotten too, as is one that is named by its UUID. The host's ledger keeps its baseline: once the slices are removed, cosplay destroy restores its settings nevertheless.

To remove sessions from the world, take them out of the configuration and apply.`,
		Args: wants(1, 1<<30),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inv.runRemove(cmd.Context(), args, autoApprove, o)
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&autoApprove, "auto-approve", false, "do not ask")
	return cmd
}

func (inv *invocation) runRemove(ctx context.Context, typed []string, autoApprove bool, o editOptions) error {
	p, prior, err := inv.edited(ctx, "state rm", o)
	if err != nil {
		return err
	}
	defer p.Close()
	next, gone, err := state.Forget(prior, typed)
	if err != nil {
		return err
	}
	asks := !autoApprove && !o.dryRun
	if asks {
		if err := inv.mayAsk(""); err != nil {
			return err
		}
	}
	view := render.ForgottenView{StatePart: render.StatePart{Lineage: prior.Lineage, Serial: prior.Serial, Sessions: gone.Sessions, GPUs: gone.GPUs},
		DryRun: o.dryRun, SimDirs: p.SimDirs()}
	if !inv.json {
		render.Forgotten(inv.Out, inv.style(inv.Out), view)
	}
	if asks {
		if err := inv.ask("Forget this?"); err != nil {
			return err
		}
	}
	if !o.dryRun {
		if next, err = p.Store.Save(next); err != nil {
			return err
		}
		view.Serial = next.Serial
	}
	if inv.json {
		return render.ForgottenJSON(inv.Out, view)
	}
	render.ForgottenDone(inv.Out, inv.style(inv.Out), view)
	return nil
}
