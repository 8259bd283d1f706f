package cli

import (
	"io"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/render"
	"cosplay/internal/selftest"
)

func (inv *invocation) doctor() *cobra.Command {
	var systemd bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a host needs, and suggest fixes",
		Long: `Check everything that the hosts and sessions of the project need, or this machine where there is no project, and say what is missing and how it is mended. Nothing is changed.

Exit codes: 0 nothing is missing; 1 something is.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if systemd {
				_, err := io.WriteString(inv.Out, selftest.SystemdUnits())
				return err
			}
			p, _, _, err := inv.openWith(project.Options{MayBeEmpty: true, ReadOnly: true})
			if err != nil {
				return err
			}
			defer p.Close()
			view := render.DoctorView{Findings: selftest.Checkup(cmd.Context(), p)}
			if inv.json {
				err = render.DoctorJSON(inv.Out, view)
			} else {
				render.Doctor(inv.Out, inv.style(inv.Out), view)
			}
			if err == nil && view.Missing() > 0 {
				return exit(exitError)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&systemd, "systemd", false, "print units for systemd instead: a socket by which users have GPUs changed, without sudo")
	return cmd
}
