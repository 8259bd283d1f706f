package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/durable"
	"cosplay/internal/render"
)

func (inv *invocation) forceUnlock() *cobra.Command {
	var autoApprove bool
	cmd := &cobra.Command{
		Use:   "force-unlock",
		Short: "Clear what a dead process left of the state's lock",
		Long: `Clear what a dead process left of the state's lock.

The lock belongs to a live process and goes with it, so there is hardly ever something to unlock: while its holder lives this is refused, with who it is and what he does; where nobody holds it, a note that a dead holder left is removed.

Exit codes: 0 nobody holds the lock; 1 error, or somebody does.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runForceUnlock(cmd.Context(), autoApprove) },
	}
	cmd.Flags().BoolVar(&autoApprove, "auto-approve", false, "do not ask")
	return cmd
}

func (inv *invocation) runForceUnlock(ctx context.Context, autoApprove bool) error {
	p, err := inv.openState()
	if err != nil {
		return err
	}
	defer p.Close()
	seen, err := p.LockState()
	if err != nil {
		return err
	}
	if seen.Held {
		return heldWords(p.Store.Path, seen)
	}
	view := render.UnlockView{State: p.Store.Path, Note: seen.By}
	if seen.By != nil {
		if err := inv.confirmNote(seen.By, autoApprove); err != nil {
			return err
		}
		// Who has the lock may write in it, and leaves it empty.
		if err := p.Lock(ctx, "force-unlock", time.Second); err != nil {
			return err
		}
		view.Removed = true
	}
	run, err := p.Interrupted()
	if err != nil {
		return err
	}
	view.Interrupted = (*render.InterruptedRun)(run)
	if inv.json {
		return render.UnlockJSON(inv.Out, view)
	}
	render.Unlock(inv.Out, inv.style(inv.Out), view, inv.flags())
	return nil
}

func (inv *invocation) confirmNote(by *durable.Holder, autoApprove bool) error {
	if autoApprove {
		return nil
	}
	if err := inv.mayAsk(""); err != nil {
		return err
	}
	fmt.Fprintf(inv.Out, "A note is left of %s; that process has ended.\n", by)
	return inv.ask("Remove the note?")
}

// heldWords refuse to take a lock from the living.
func heldWords(path string, seen durable.Inspection) error {
	const refused = "it is alive, so nothing was unlocked"
	var pids []string
	for _, pid := range seen.Open {
		pids = append(pids, fmt.Sprint(pid))
	}
	through := strings.Join(pids, ", ")
	switch {
	case seen.By == nil && through == "":
		return fmt.Errorf("%s is locked by a process of another user; %s. sudo cosplay force-unlock names it", path, refused)
	case seen.By == nil:
		return fmt.Errorf("%s is locked by process %s; %s. Wait for it to finish: ps -p %s", path, through, refused, strings.Join(pids, ","))
	case through != "" && !slices.Contains(seen.Open, seen.By.PID):
		return fmt.Errorf("%s is locked by %s. That process has ended, but process %s still carries out its last step; %s. Wait for it: one NVML call takes a minute at most", path, seen.By, through, refused)
	}
	return fmt.Errorf("%s is locked by %s; %s. Wait for it to finish, or stop it: kill -INT %d lets it finish the steps that run, and save", path, seen.By, refused, seen.By.PID)
}
