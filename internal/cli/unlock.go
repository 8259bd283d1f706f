package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/durable"
	"cosplay/internal/render"
)

func forceUnlockCommand(inv *invocation) *cobra.Command {
	var autoApprove bool
	cmd := &cobra.Command{
		Use:   "force-unlock",
		Short: "Remove a stale lock",
		Long: `Remove a stale lock of the state.

A process that ends releases its lock, so there is rarely something to unlock. While a live process has the lock, force-unlock refuses, and prints the process and its command. Otherwise it removes the note that an ended process has left in the lock.

Exit codes: 0 no process has the lock; 1 error, or a process has it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := inv.open(forState)
			if err != nil {
				return err
			}
			seen, err := p.LockState()
			if err != nil {
				return err
			}
			if seen.Held {
				return heldWords(p.Store.Path, seen)
			}
			view := render.UnlockView{State: p.Store.Path, Note: seen.By, Flags: inv.flags()}
			if seen.By != nil {
				if err := inv.mayAsk(!autoApprove, ""); err != nil {
					return err
				}
				if !autoApprove {
					fmt.Fprintf(inv.Out, "A note is left of %s; that process has ended.\n", seen.By)
				}
				if err := inv.ask(!autoApprove, "Remove the note?"); err != nil {
					return err
				}
				// A process that releases the lock empties it.
				if err := inv.lock(cmd.Context(), p.Project, "force-unlock", time.Second); err != nil {
					return err
				}
				view.Removed = true
			}
			run, err := p.Interrupted()
			if err != nil {
				return err
			}
			view.Interrupted = (*render.InterruptedRun)(run)
			return inv.print(view)
		},
	}
	askFlag(cmd.Flags(), &autoApprove)
	return cmd
}

// heldWords is the error for a lock that a live process has.
func heldWords(path string, seen durable.Inspection) error {
	const refused = "it is alive, so nothing was unlocked"
	if seen.By == nil {
		return fmt.Errorf("%s is locked by a process that left no note; %s. Wait for it to finish: sudo fuser -v %s.lock shows it", path, refused, path)
	}
	return fmt.Errorf("%s is locked by %s; %s. Wait for it to finish, or stop it: kill -INT %d lets it finish the steps that run, and save", path, seen.By, refused, seen.By.PID)
}
