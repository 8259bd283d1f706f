package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/runtime"
)

func (inv *invocation) exec() *cobra.Command {
	return &cobra.Command{
		Use:   "exec [SESSION] [-- COMMAND...]",
		Short: "Run a command in a session; without one, its own or a shell",
		Long: `Run a command in a session: its GPU, its environment, its workspace, and in a container its user. On a terminal the command has one too.

worker-3, worker[3] and session.worker[3] name the same session; with a single session the name may be left out.

Exit codes: the command's; 127 where there is no such command, 126 where it cannot be run; 1 where there is no such session.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := splitCommand("exec", args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			return inv.runExec(cmd.Context(), name, argv)
		},
	}
}

func (inv *invocation) runExec(ctx context.Context, name string, argv []string) error {
	in, err := inv.enter(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	address := in.session.Address
	if own, there := diff.OwnSlice(in.session, in.Live); in.session.Handle != nil && (!there || own.UUID == "") {
		return prose.Advice{What: fmt.Sprintf("%s: its slice is missing, so there is no GPU to run on", address), Fix: "cosplay apply"}
	}
	place, err := in.Runtime(ctx, in.session, in.Prior)
	if err != nil {
		return err
	}
	code, err := place.Exec(ctx, in.session.ID, argv, runtime.Streams{In: inv.In, Out: inv.stdout, Err: inv.stderr})
	if err != nil {
		render.Error(inv.Err, inv.style(inv.Err), fmt.Errorf("%s: %w", address, err))
	}
	if code != 0 || err != nil {
		return exit(max(code, exitError))
	}
	return nil
}
