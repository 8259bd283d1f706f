package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/interrupt"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/runtime"
	"cosplay/internal/selftest"
	"cosplay/internal/watch"
)

func validateCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration, without asking any host",
		Long: `Check the configuration, without asking any host. On simulated hosts, whose GPUs the configuration states, sessions are placed as by a first plan, and what does not fit is reported.

Exit codes: 0 it is valid; 1 it is not.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := inv.open(project.Options{ReadOnly: true, Clusters: true})
			if err != nil {
				return err
			}
			foreseen, err := p.Foresee()
			diags := slices.Concat(p.warnings, foreseen)
			switch {
			case err != nil:
				return err
			case diags.HasErrors():
				return inv.refuse(diags, p.files)
			case inv.json:
				return render.DiagnosticsJSON(inv.Out, diags, p.files)
			}
			render.Diagnostics(inv.Err, inv.style(inv.Err), diags, p.files)
			sessions, hosts := len(p.Intent.Sessions), len(p.Intent.Hosts)
			if p.Clusters != nil {
				sessions, hosts = sessions+len(p.Clusters.Sessions), hosts+len(p.Clusters.Hosts)
			}
			what := fmt.Sprintf(": %s on %s", prose.Count(sessions, "session"), prose.Count(hosts, "host"))
			if missed := p.Intent.Missed; len(missed) > 0 {
				what = fmt.Sprintf(", as far as cosplay can check without a value for var.%s", strings.Join(missed, ", var."))
			}
			subject := inv.configName(p.files)
			if len(p.files) != 1 || inv.file == "-" { // else it is the name of a file
				subject = prose.Capital(subject)
			}
			fmt.Fprintf(inv.Out, "%s is valid%s.\n", subject, what)
			return nil
		},
	}
}

func doctorCommand(inv *invocation) *cobra.Command {
	var (
		systemd bool
		host    string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a host needs, and suggest fixes",
		Long: `Check everything that the hosts and sessions of the project need, or this machine where there is no project. Print what is missing and how to fix it. Nothing is changed.

Exit codes: 0 nothing is missing; 1 something is.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if systemd {
				return inv.printUnits()
			}
			p, err := inv.open(project.Options{MayBeEmpty: true, ReadOnly: true})
			if err != nil {
				return err
			}
			if host != "" {
				only, err := p.Host(host)
				if err != nil {
					return err
				}
				p.Intent.Hosts = []config.Host{only}
			}
			done := inv.slow("Checking the hosts")
			view := render.DoctorView{Findings: selftest.Checkup(cmd.Context(), p.Project)}
			done()
			return cmp.Or(inv.print(view), exitIf(view.Missing() > 0, exitError))
		},
	}
	cmd.Flags().StringVar(&host, "host", "", "check this `host` of the configuration alone")
	cmd.Flags().BoolVar(&systemd, "systemd", false, "print units for systemd instead: a socket by which users have GPUs changed, without sudo; and for the project in the folder a loop, a boot unit and a timer")
	return cmd
}

// printUnits prints the units of the host, and those of the project if there is one.
func (inv *invocation) printUnits() error {
	text := selftest.SystemdUnits()
	p, err := inv.open(project.Options{MayBeEmpty: true, HostsOnly: true})
	if err != nil {
		return err
	}
	if len(p.files) > 0 {
		who, err := machine.Invoker()
		if err != nil {
			return err
		}
		fleet := watch.Unit{Dir: p.Dir, Name: p.Name(), User: who.User.Name, Program: agent.Installed, Flags: inv.flagsInside(), Secrets: inv.secretFlags()}
		units, err := fleet.Units()
		if err != nil {
			return err
		}
		text += units
	}
	_, err = io.WriteString(inv.Out, text)
	return err
}

func schemaCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON schema of the language, for editors",
		Long:  `Print a JSON schema (draft 2020-12) of configuration files: every block and attribute with its description, type, unit, default and example, and with the effect of changing it. It is the schema of the JSON syntax, *.hcl.json; editors of the other syntax find all words in it.`,
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return render.JSON(inv.Out, config.JSONSchema()) },
	}
}

// agentCommand is the child process that has an NVML library loaded.
func agentCommand() *cobra.Command {
	var library, ledger, errand, program string
	var privileged, change bool
	cmd := &cobra.Command{
		Use:    "agent",
		Short:  "Hold an NVML library for the parent process",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if privileged {
				return agent.ServePrivileged(library)
			}
			if errand != "" {
				return serveErrand(cmd.Context(), errand, program, change)
			}
			return agent.Serve(os.Stdin, os.Stdout, agent.Service{Library: library, Ledger: ledger})
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "path of the NVML library")
	cmd.Flags().StringVar(&ledger, "ledger", "", "folder of the host's ledger")
	cmd.Flags().BoolVar(&privileged, "privileged", false, "change GPUs as root on behalf of whom sudo or a socket names")
	cmd.Flags().StringVar(&errand, "for", "", "the host of a project on another machine, which asks by ssh")
	cmd.Flags().StringVar(&program, "program", "", "run a program in one of its sessions")
	cmd.Flags().BoolVar(&change, "change", false, "pass its changes to the agent of root where only root changes GPUs")
	cmd.MarkFlagsMutuallyExclusive("privileged", "ledger", "for")
	return cmd
}

// serveErrand serves a project on another machine.
func serveErrand(ctx context.Context, text, program string, change bool) error {
	e, err := machine.NewErrand(text, Version)
	if err != nil {
		return err
	}
	if program == "" {
		return e.Serve(os.Stdin, os.Stdout, change)
	}
	interrupt.OutliveReaders()
	code, err := e.Run(ctx, program, runtime.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return exitIf(code != 0, code)
}
