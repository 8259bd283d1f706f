package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/apply"
	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

type stopOptions struct {
	stepFlags
	start, all bool
}

func stopCommand(inv *invocation) *cobra.Command {
	return inv.stopsOrStarts(&cobra.Command{
		Use:   "stop [SESSION...]",
		Short: "Stop the containers of sessions; they keep their slices",
		Long: `Stop the containers of sessions: of those that are named, or of all of a block by its name. Files, slices and ssh ports stay; the programs end.

The state records that the sessions are stopped: drift does not report it, and apply leaves them stopped, also where it recreates them. cosplay start starts them. cosplay destroy releases the slices.

Exit codes: 0 they are stopped; 1 error; 130 stopped by Ctrl-C.`,
	}, stopOptions{})
}

func startCommand(inv *invocation) *cobra.Command {
	return inv.stopsOrStarts(&cobra.Command{
		Use:   "start [SESSION...]",
		Short: "Start the containers of sessions that were stopped",
		Long: `Start the containers of sessions as they are: of those that are named, or of all of a block by its name. It returns when they can be used. Changes of the configuration are not applied.

Exit codes: 0 they run; 1 error; 130 stopped by Ctrl-C.`,
	}, stopOptions{start: true})
}

func (inv *invocation) stopsOrStarts(cmd *cobra.Command, o stopOptions) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), inv, args) }
	cmd.Flags().BoolVar(&o.all, "all", false, "all sessions of the project")
	o.flags(cmd.Flags())
	return cmd
}

func (o stopOptions) run(ctx context.Context, inv *invocation, names []string) error {
	command, done, carryOut := "stop", "Stopped", (*project.Project).Stop
	if o.start {
		command, done, carryOut = "start", "Started", (*project.Project).Start
	}
	p, err := inv.open(forHosts)
	if err != nil {
		return err
	}
	if err := inv.lock(ctx, p.Project, command, o.lockTimeout); err != nil {
		return err
	}
	var now project.Outlook
	read := inv.slow("Reading the hosts")
	now.Prior, now.Live, err = p.Refresh(ctx)
	read()
	if err != nil {
		return err
	}
	if o.all == (len(names) > 0) && len(now.Prior.Sessions) != 1 {
		return fmt.Errorf("name the sessions to %s, or all of them by --all", command)
	}
	sessions, err := chosen(now.Prior, names)
	if err != nil {
		return p.OnCluster(err, names...)
	}
	stoppable, event, closed := inv.stoppable(ctx)
	result, err := carryOut(p.Project, stoppable, now, sessions, project.ApplyOptions{Progress: event, Parallelism: int(o.parallelism)})
	closed()
	if err != nil {
		return err
	}
	return inv.afterStop(result, now, done)
}

// afterStop shows the outcome of stop or start, and chooses the exit code.
func (inv *invocation) afterStop(result apply.Result, now project.Outlook, done string) error {
	var changed []resource.Address
	for _, id := range result.Done {
		if i := slices.IndexFunc(now.Prior.Sessions, func(s resource.PriorSession) bool { return strings.HasPrefix(id, s.Address.String()+"/") }); i >= 0 {
			changed = append(changed, now.Prior.Sessions[i].Address)
		}
	}
	slices.SortFunc(changed, resource.Address.Compare)
	render.Failures(inv.Err, inv.style(inv.Err), result.Failures, now.Live)
	switch {
	case len(changed) > 0:
		fmt.Fprintf(inv.Out, "%s: %s.\n", done, resource.AddressNames(changed, 0))
	case len(result.Failures) == 0 && !result.Interrupted:
		fmt.Fprintf(inv.Out, "%s already; nothing to do.\n", done)
	}
	return cmp.Or(exitIf(result.Interrupted, exitInterrupted), exitIf(len(result.Failures) > 0, exitError))
}
