package cli

import (
	"github.com/spf13/cobra"

	"cosplay/internal/render"
)

func reportCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "report [SESSION...]",
		Short: "Show what PyTorch did in sessions of a simulated host",
		Long: `Show what the programs of sessions did where PyTorch computes on the CPU, on a simulated host: peak memory, floating point operations of matrix products and convolutions, launches, bytes copied, and collectives. Of those that are named, of all of a block by its name, or of all.

A program writes its figures about every second and at its end; the last 32 are listed, and the total has all. A report lasts as long as its session. With COSPLAY_REPORT=1 in its environment, each program also prints a summary to standard error at its end.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, now, sessions, err := inv.peekChosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			return inv.print(render.ReportView{Sessions: sessions, Reports: p.Reports(now.Prior, p.Used(now.Prior, now.Live))})
		},
	}
}
