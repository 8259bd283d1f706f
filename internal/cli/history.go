package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/public"
	"cosplay/internal/render"
)

type historyOptions struct{ since, gpu, user string }

func historyCommand(inv *invocation) *cobra.Command {
	var o historyOptions
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show what happened on this machine, and who did it",
		Long: `Show what happened on this machine, one line each, the newest last: when, which user (and for whom, if root acted for another user), which project, which GPU, what, and if it was refused or failed why.

It is what the ledger of the machine has of all users, with the turns in the queue that were not used, and what the audit logs of projects have that you may read: your own, and as root all. In the folder of a project, also that of its simulated hosts. The ledger's part cannot be changed by users; a project's log can by its user. Nothing but the logs and the numbers of the GPUs is read, and nothing is changed.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin, err := moment(o.since, time.Now())
			if err != nil {
				return err
			}
			p, err := inv.open(forState)
			if err != nil {
				return err
			}
			past, err := p.History(cmd.Context())
			if err != nil {
				return err
			}
			for _, why := range past.Skipped {
				fmt.Fprintf(inv.Err, "Left out: %v\n", why)
			}
			uuid := ""
			if o.gpu != "" {
				if uuid, err = past.GPU(o.gpu); err != nil {
					return err
				}
			}
			events := slices.DeleteFunc(past.Events, func(e public.Event) bool {
				of := o.user == "" || e.User == o.user || e.For == o.user || fmt.Sprint(e.UID) == o.user
				return !of || uuid != "" && e.GPU != uuid || project.EventTime(e).Before(begin)
			})
			return inv.print(render.EventsView(events))
		},
	}
	cmd.Flags().StringVar(&o.since, "since", "", "show what is not older than this `time`: 24h, 2026-11-23, 2026-11-23T14:30:00Z")
	cmd.Flags().StringVar(&o.gpu, "gpu", "", "show what concerns this `GPU` alone: an index, or the start of a UUID")
	cmd.Flags().StringVar(&o.user, "user", "", "show what this `user` did, or root did for them: a name or a UID")
	return cmd
}
