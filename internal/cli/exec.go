package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"cosplay/internal/diff"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

func (inv *invocation) exec() *cobra.Command {
	return &cobra.Command{
		Use:   "exec [SESSION] [-- COMMAND...]",
		Short: "Run a command in a session; without one, the session's own",
		Long: `Run a command in a session: its GPU, its environment, its workspace. The exit code is the command's; 127 where there is no such command, 126 where it cannot be run.

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
	now, err := p.Peek(ctx)
	if err != nil {
		return err
	}
	prior := now.Prior
	var known []resource.Address
	for _, s := range prior.Sessions {
		known = append(known, s.Address)
	}
	address, err := resource.Match(name, known)
	if err != nil {
		return oneOfSeveral(err, name, known)
	}
	session, _ := prior.Session(address)
	if own, there := diff.OwnSlice(session, now.Live); session.Handle != nil && (!there || own.UUID == "") {
		return fmt.Errorf("%s: its slice is gone, so there is no GPU to run on; cosplay apply makes it anew", address)
	}
	runtime, err := p.Runtime(session.Slice.Host)
	if err != nil {
		return err
	}
	command, err := runtime.Command(ctx, session.ID, argv)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	command.Stdin, command.Stdout, command.Stderr = inv.In, inv.stdout, inv.Err
	// Ctrl-C is the command's affair: it gets it from the terminal by itself.
	signal.Ignore(os.Interrupt, syscall.SIGQUIT)
	defer signal.Reset(os.Interrupt, syscall.SIGQUIT)
	err = command.Run()
	if command.Process == nil {
		return inv.notRun(session, command, err)
	}
	return exitCode(err)
}

// notRun tells why a command was not even started; the exit code is what shells
// say of such a one.
func (inv *invocation) notRun(session resource.PriorSession, command *exec.Cmd, err error) error {
	code, why := exit(exitCannotRun), err
	switch _, gone := os.Stat(session.Workspace); {
	case gone != nil:
		code, why = exitError, fmt.Errorf("its workspace %s is not there; cosplay apply makes it anew", session.Workspace)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		code, why = exitNoCommand, fmt.Errorf("there is no command %q", command.Args[0])
	case errors.Is(err, fs.ErrPermission):
		why = fmt.Errorf("%q cannot be run: permission denied", command.Args[0])
	}
	render.Error(inv.Err, inv.style(inv.Err), fmt.Errorf("%s: %w", session.Address, why))
	return code
}

// oneOfSeveral tells a name that is a whole block's from one that is nobody's.
func oneOfSeveral(err error, name string, known []resource.Address) error {
	var instances []string
	for _, a := range known {
		if a.Key.Kind != resource.Single && (name == a.Name || name == "session."+a.Name) {
			instances = append(instances, a.Short())
		}
	}
	if len(instances) == 0 {
		return err
	}
	total := counted(len(instances), "session")
	if len(instances) > 4 {
		instances = append(instances[:2], "...", instances[len(instances)-1])
	}
	return fmt.Errorf("%s has %s; name one: %s", name, total, strings.Join(instances, ", "))
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
