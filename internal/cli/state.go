package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/internal/recovery"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

func stateCommand(inv *invocation) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "state",
		Short: "Inspect and edit the state",
		Long: `Inspect and edit the state. No GPU, slice or container is changed.

An ADDRESS is session.worker[3], or worker-3 for short; worker alone means all sessions of the block. A GPU is named by its UUID.`,
	})
	cmd.AddCommand(stateListCommand(inv), stateShowCommand(inv), stateMoveCommand(inv), stateRemoveCommand(inv), stateRebuildCommand(inv))
	return cmd
}

func stateListCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "list [ADDRESS]...",
		Short: "List what is in the state: sessions by address, GPUs by UUID",
		RunE: func(_ *cobra.Command, args []string) error {
			_, part, err := inv.remembered(args)
			if err != nil {
				return err
			}
			return inv.print(part)
		},
	}
}

func stateShowCommand(inv *invocation) *cobra.Command {
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
			return inv.print(render.StateItem{StatePart: part, Prior: prior})
		},
	}
}

// remembered reads the part of the state that the addresses name; without addresses, all
// of it.
func (inv *invocation) remembered(typed []string) (resource.Prior, render.StatePart, error) {
	p, err := inv.open(forState)
	if err != nil {
		return resource.Prior{}, render.StatePart{}, err
	}
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

// editOptions are what the commands that change the state have in common.
type editOptions struct {
	dryRun      bool
	lockTimeout time.Duration
}

func (o *editOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and do nothing")
	lockFlag(f, &o.lockTimeout)
}

// edited opens the project and reads the state to change, with the lock unless it is a
// dry run.
func (o editOptions) open(ctx context.Context, inv *invocation, command string) (*opened, resource.Prior, error) {
	p, err := inv.open(forState)
	if err != nil {
		return nil, resource.Prior{}, err
	}
	var prior resource.Prior
	if o.dryRun {
		prior, _, err = p.Remembered()
	} else if err = inv.lock(ctx, p.Project, command, o.lockTimeout); err == nil {
		prior, err = p.Settled(ctx)
	}
	var live resource.Live
	if err == nil {
		live, err = p.Ledgers(ctx)
	}
	if err == nil {
		err = p.RefuseCopy(prior, live)
	}
	return p, prior, err
}

func stateMoveCommand(inv *invocation) *cobra.Command {
	var o editOptions
	cmd := &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Give a session, or all of a block, another address",
		Long: `Give a session another address in the state, or all sessions of a block another block's name, so that a session that was renamed in the configuration is not removed and recreated. Slice and container stay.

  cosplay state mv worker trainer              all of the block
  cosplay state mv worker 'trainer[0]'         a single session that got a count
  cosplay state mv worker-3 worker-7           one of them`,
		Args: wants(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, prior, err := o.open(cmd.Context(), inv, "state mv")
			if err != nil {
				return err
			}
			next, moves, err := state.Move(prior, args[0], args[1], p.Addresses())
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
			return inv.print(view)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

func stateRemoveCommand(inv *invocation) *cobra.Command {
	var (
		o           editOptions
		autoApprove bool
	)
	cmd := &cobra.Command{
		Use:   "rm ADDRESS...",
		Short: "Forget sessions, and leave what they have as it is",
		Long: `Remove sessions from the state only: their slices and containers stay, cosplay no longer knows them, and prints how to remove them by hand. A GPU without another session is forgotten too, as is one that is named by its UUID. The host's ledger keeps its baseline: once the slices are removed, cosplay destroy restores its settings nevertheless.

To remove sessions with their slices and containers, remove them from the configuration and apply.`,
		Args: wants(1, 1<<30),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, prior, err := o.open(cmd.Context(), inv, "state rm")
			if err != nil {
				return err
			}
			next, forgotten, err := state.Forget(prior, args)
			if err != nil {
				return err
			}
			part := render.StatePart{Lineage: prior.Lineage, Serial: prior.Serial, Sessions: forgotten.Sessions, GPUs: forgotten.GPUs}
			view := render.ForgottenView{StatePart: part, DryRun: o.dryRun, SimDirs: p.SimDirs()}
			if err := confirm(inv, !autoApprove && !o.dryRun, "Forget this?", render.Forgotten, view); err != nil {
				return err
			}
			if !o.dryRun {
				if next, err = p.Store.Save(next); err != nil {
					return err
				}
				view.Serial = next.Serial
			}
			return inv.print(view)
		},
	}
	o.flags(cmd.Flags())
	askFlag(cmd.Flags(), &autoApprove)
	return cmd
}

type rebuildOptions struct {
	lineage     string
	generate    string
	autoApprove bool
	lockTimeout time.Duration
}

func stateRebuildCommand(inv *invocation) *cobra.Command {
	var o rebuildOptions
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild a lost, damaged or mismatched state from ledgers, labels and hardware",
		Long: `Rebuild a state that is lost, damaged or another project's. The ledgers of the hosts have the GPUs that this project holds, and their baselines; slices, session folders and the labels of containers have its sessions. No GPU, slice or container is changed. An old state file is moved aside, not deleted.

If the state's key cannot be read from the old file, nothing proves that containers belong to the project. If you agree, cosplay adds them, and the next apply replaces them.

With --generate, cosplay also writes session blocks for what it found and the configuration lacks; with them, the next plan changes nothing.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := inv.mayAsk(!o.autoApprove, ""); err != nil {
				return err
			}
			p, err := inv.open(forState)
			if err != nil {
				return err
			}
			if err := inv.lock(cmd.Context(), p.Project, "state rebuild", o.lockTimeout); err != nil {
				return err
			}
			done := inv.slow("Reading the hosts")
			r, err := recovery.Rebuild(cmd.Context(), p.Project, o.lineage)
			done()
			if err != nil {
				return err
			}
			var file generated
			if o.generate != "" {
				if file, err = inv.blocksOf(p, r, o.generate); err != nil {
					return err
				}
			}
			view := render.RebuiltView{State: r.State.Path, Fault: r.State.Fault, Prior: r.Prior, Live: r.Live, Unproven: r.Unproven, Notes: r.Notes, Flags: inv.flags()}
			if err := confirm(inv, !o.autoApprove, "Write this state?", render.Rebuilt, view); err != nil {
				return err
			}
			if err := file.write(); err != nil {
				return err
			}
			if view.Prior, view.Aside, err = recovery.WriteRebuilt(p.Project, r); err != nil {
				return errors.Join(err, file.remove())
			}
			inv.announce(file)
			return inv.print(view)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.lineage, "lineage", "", "the first characters of the `lineage`, if the ledgers have several for this state, or another path")
	askFlag(f, &o.autoApprove)
	lockFlag(f, &o.lockTimeout)
	generateFlag(f, &o.generate, "the blocks of sessions that the configuration lacks")
	return cmd
}
