package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/agent"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
)

func (inv *invocation) validate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration, without asking any host",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			p, files, diags, err := inv.openWith(project.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			defer p.Close()
			if inv.json {
				return render.DiagnosticsJSON(inv.Out, diags, files)
			}
			render.Diagnostics(inv.Err, inv.style(inv.Err), diags, files)
			what := fmt.Sprintf(": %s on %s", prose.Count(len(p.Intent.Sessions), "session"), prose.Count(len(p.Intent.Hosts), "host"))
			if missed := p.Intent.Missed; len(missed) > 0 {
				what = fmt.Sprintf(", as far as one can tell without a value for var.%s", strings.Join(missed, ", var."))
			}
			subject := inv.configName(files)
			if len(files) != 1 || inv.file == "-" { // else it is the name of a file
				subject = prose.Capital(subject)
			}
			fmt.Fprintf(inv.Out, "%s is valid%s.\n", subject, what)
			return nil
		},
	}
}

// agentCommand is the child of our own that holds an NVML library.
func agentCommand() *cobra.Command {
	var library, ledger string
	var privileged bool
	cmd := &cobra.Command{
		Use:    "agent",
		Short:  "Hold an NVML library for the parent process",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			if privileged {
				return agent.ServePrivileged(library)
			}
			return agent.Serve(os.Stdin, os.Stdout, library, ledger)
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "path of the NVML library")
	cmd.Flags().StringVar(&ledger, "ledger", "", "folder of the host's ledger")
	cmd.Flags().BoolVar(&privileged, "privileged", false, "change GPUs as root on behalf of whom sudo or a socket names")
	cmd.MarkFlagsMutuallyExclusive("privileged", "ledger")
	return cmd
}
