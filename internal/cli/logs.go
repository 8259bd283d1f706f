package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

func (inv *invocation) logs() *cobra.Command {
	var o runtime.LogOptions
	cmd := &cobra.Command{
		Use:   "logs [SESSION]",
		Short: "Show what a session's container has printed",
		Args:  wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return inv.runLogs(cmd.Context(), name, o)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with what comes")
	cmd.Flags().StringVarP(&o.Tail, "tail", "n", "all", "only the last `number` of lines")
	cmd.Flags().BoolVarP(&o.Timestamps, "timestamps", "t", false, "show when each line was printed")
	return cmd
}

func (inv *invocation) runLogs(ctx context.Context, name string, o runtime.LogOptions) error {
	if n, err := strconv.Atoi(o.Tail); o.Tail != "all" && (err != nil || n < 0) {
		return fmt.Errorf("--tail %s: it takes a number of lines, or all", o.Tail)
	}
	in, err := inv.enter(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	containers, err := project.Able[runtime.Logger](ctx, in.Project, in.session, in.Prior, "log")
	if err != nil {
		return err
	}
	if err := containers.Logs(ctx, in.session.ID, o, terminal.Raw(inv.Out), inv.stderr); err != nil {
		return fmt.Errorf("%s: %w", in.session.Address, err)
	}
	return nil
}
