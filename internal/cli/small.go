package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/agent"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

func (inv *invocation) validate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration, without asking any host",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			p, files, diags, err := inv.openWith(project.Options{LookOnly: true})
			if err != nil {
				return err
			}
			defer p.Close()
			if inv.json {
				return render.DiagnosticsJSON(inv.Out, diags, files)
			}
			render.Diagnostics(inv.Err, inv.style(inv.Err), diags, files)
			what := fmt.Sprintf(": %s on %s", counted(len(p.Intent.Sessions), "session"), counted(len(p.Intent.Hosts), "host"))
			if missed := p.Intent.Missed; len(missed) > 0 {
				what = fmt.Sprintf(", as far as one can tell without a value for var.%s", strings.Join(missed, ", var."))
			}
			fmt.Fprintf(inv.Out, "%s is valid%s.\n", capital(inv.configName(files)), what)
			return nil
		},
	}
}

func capital(s string) string {
	if s == "the configuration" || s == "standard input" {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
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
