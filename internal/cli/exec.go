package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cosplay/internal/resource"
)

func (inv *invocation) exec() *cobra.Command {
	return &cobra.Command{
		Use:   "exec [SESSION] [-- COMMAND...]",
		Short: "Run a command in a session; without one, the session's own",
		Long: `Run a command in a session: its GPU, its environment, its workspace. The exit code is the command's.

worker-3, worker[3] and session.worker[3] name the same session; with a single session the name may be left out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, argv := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, argv = args[:dash], args[dash:]
			}
			if len(names) > 1 {
				return fmt.Errorf("one session at a time; write the command after --: cosplay exec %s -- %s", names[0], strings.Join(names[1:], " "))
			}
			name := ""
			if len(names) == 1 {
				name = names[0]
			}
			return inv.runExec(cmd.Context(), name, argv)
		},
	}
}

func (inv *invocation) runExec(ctx context.Context, name string, argv []string) error {
	p, _, _, err := inv.open()
	if err != nil {
		return err
	}
	defer p.Close()
	prior, err := p.Store.Load()
	if err != nil {
		return err
	}
	var known []resource.Address
	for _, s := range prior.Sessions {
		known = append(known, s.Address)
	}
	address, err := resource.Match(name, known)
	if err != nil {
		return err
	}
	session, _ := prior.Session(address)
	runtime, err := p.Runtime(session.Slice.Host)
	if err != nil {
		return err
	}
	command, err := runtime.Command(ctx, session.ID, argv)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	command.Stdin, command.Stdout, command.Stderr = inv.In, inv.Out, inv.Err
	// Ctrl-C is the command's affair: it gets it from the terminal by itself.
	signal.Ignore(os.Interrupt, syscall.SIGQUIT)
	defer signal.Reset(os.Interrupt, syscall.SIGQUIT)
	return exitCode(command.Run())
}

// exitCode makes a command's end ours; a signal's is 128 and its number, as
// shells have it.
func exitCode(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit(128 + int(status.Signal()))
	}
	return exit(ended.ExitCode())
}
