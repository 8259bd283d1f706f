package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"cosplay/internal/apply"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

type expireOptions struct {
	stepFlags
	dryRun bool
	grace  time.Duration
}

func expireCommand(inv *invocation) *cobra.Command {
	var o expireOptions
	cmd := &cobra.Command{
		Use:   "expire [SESSION...]",
		Short: "End the sessions whose lifetime has ended",
		Long: `End the sessions whose ttl, idle_timeout or stop_at has passed: of those that are named, or of the whole project. Each gets a message on its terminals, then SIGTERM; after the grace period its container and its slice are removed. The workspace is kept.

An expired session stays down until its block is edited or cosplay extend gives it more time. A session with prevent_destroy is not ended. For cron.

Exit codes: 0 none is left; 1 error; 130 stopped by Ctrl-C.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.grace < 0 || o.grace > time.Hour {
				return errors.New("--grace: give a time from 0s to 1h")
			}
			p, err := inv.open(project.Options{})
			if err != nil {
				return err
			}
			if o.dryRun {
				outlook, diags, err := p.Plan(cmd.Context(), project.Aim{Goal: project.ExpiredEnded, Target: args})
				if err == nil && diags.HasErrors() {
					err = inv.refuse(diags, p.files)
				}
				if err == nil {
					inv.printExpiring(outlook, "Would end")
				}
				return err
			}
			if err := inv.lock(cmd.Context(), p.Project, "expire", o.lockTimeout); err != nil {
				return err
			}
			err = p.EndExpired(cmd.Context(), args, resource.Seconds(o.grace/time.Second),
				project.ApplyOptions{Parallelism: int(o.parallelism)}, &expiring{inv})
			return inv.refused(err, p.files)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print which sessions would be ended, and change nothing")
	cmd.Flags().DurationVar(&o.grace, "grace", 10*time.Second, "time between SIGTERM and SIGKILL")
	o.flags(cmd.Flags())
	return cmd
}

// expiring is the operator of expire.
type expiring struct{ *invocation }

func (e *expiring) Approve(_ context.Context, _ project.Outlook, diags hcl.Diagnostics) (waited bool, err error) {
	if diags.HasErrors() {
		err = &project.Refused{Diagnostics: diags}
	}
	return false, err
}

func (e *expiring) Begin(ctx context.Context, _ project.Outlook) (context.Context, func(apply.Event), func()) {
	return e.stoppable(ctx)
}

func (e *expiring) Applied(_ context.Context, o project.Outlook, result apply.Result, err error, again bool) error {
	if err != nil || again {
		return err
	}
	render.Failures(e.Err, e.style(e.Err), result.Failures, o.Live)
	switch {
	case result.Interrupted:
		return exit(exitInterrupted)
	case len(result.Failures) > 0:
		return exit(exitError)
	}
	e.printExpiring(o, "Ended")
	return o.Live.Unreached()
}

// printExpiring names the sessions that a plan ends, and those that prevent_destroy keeps.
func (inv *invocation) printExpiring(o project.Outlook, done string) {
	var ending []resource.Address
	for _, c := range o.Plan.Diff.Sessions {
		if e, is := o.Plan.Ending(c.Address); is {
			ending = append(ending, e.Address)
			fmt.Fprintf(inv.Out, "%s %s: expired at %s (%s).\n", done, e.Address, e.At, e.Why)
		}
	}
	for _, d := range o.Plan.Diff.Drift {
		if d.Session != nil && d.Kept() {
			fmt.Fprintf(inv.Out, "Kept %s: it has expired (%s), and prevent_destroy keeps it.\n", d.Session, d.Kind)
		}
	}
	if len(ending) == 0 {
		fmt.Fprintln(inv.Out, "No session is to be ended.")
	}
}

func extendCommand(inv *invocation) *cobra.Command {
	var lockTimeout time.Duration
	cmd := &cobra.Command{
		Use:   "extend SESSION... DURATION",
		Short: "Give sessions with a lifetime more time",
		Long: `Extend the lifetime of sessions, or of all of a block by its name, by a duration like 4h, 90m or 2d: from their end, or from now if they have expired or can only become idle. The configuration is not changed; the extension ends when the session is replaced or started again.

A session that has expired and was ended may come up again: cosplay apply creates it.

Exit codes: 0 extended; 1 error.`,
		Args: wants(2, 1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, typed := args[:len(args)-1], args[len(args)-1]
			by, ok := resource.ParseSeconds(typed)
			if !ok {
				return fmt.Errorf("%q is not a duration. Write the sessions, then a duration: cosplay extend %s 4h", typed, names[0])
			}
			p, err := inv.open(forHosts)
			if err != nil {
				return err
			}
			if err := inv.lock(cmd.Context(), p.Project, "extend", lockTimeout); err != nil {
				return err
			}
			extended, err := p.Extend(cmd.Context(), names, by)
			if err != nil {
				return err
			}
			for _, e := range extended {
				fmt.Fprintf(inv.Out, "%s expires at %s, in %s.\n", e.Address, e.To, resource.Seconds(e.To-project.Now()))
			}
			down := slices.DeleteFunc(extended, func(e project.Extension) bool { return !e.Down })
			if len(down) > 0 {
				again := prose.Each(down, func(e project.Extension) string { return e.Address.String() })
				fmt.Fprintf(inv.Out, "cosplay apply creates %s again.\n", prose.And(again))
			}
			return nil
		},
	}
	lockFlag(cmd.Flags(), &lockTimeout)
	return cmd
}
