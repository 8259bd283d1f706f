package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"cosplay/internal/diff"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/runtime"
	"cosplay/internal/runtime/process"
)

func execCommand(inv *invocation) *cobra.Command {
	var (
		program runtime.Program
		env     []string
	)
	cmd := &cobra.Command{
		Use:   "exec [SESSION] [-- COMMAND...]",
		Short: "Run a command in a session; without one, its own or a shell",
		Long: `Run a command in a session: its GPU, its environment, its workspace, and in a container its user. On a terminal the command has one too.

worker-3, worker[3] and session.worker[3] name the same session; with a single session the name may be left out.

In a session of the process runtime, programs find the session's libraries by LD_LIBRARY_PATH. With --private-mounts they find them at the system's paths, so that env -i, a cleared LD_LIBRARY_PATH and, where cosplay runs as root, programs of another user see the target as well. The mounts exist only for the command and its children. Containers need no flag for this.

Exit codes: the command's; 127 where there is no such command, 126 where it cannot be run; 1 where there is no such session.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := splitCommand("exec", args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			program.Argv, program.Env = argv, variablesOf(env)
			in, err := inv.enter(cmd.Context(), name, true)
			if err != nil {
				return err
			}
			place, err := in.place(cmd.Context())
			if err != nil {
				return err
			}
			code, err := place.Exec(cmd.Context(), in.session.ID, program, runtime.Streams{In: inv.In, Out: inv.stdout, Err: inv.stderr})
			if err != nil {
				render.Error(inv.Err, inv.style(inv.Err), fmt.Errorf("%s: %w", in.session.Address, err))
			}
			if code != 0 || err != nil {
				return exit(max(code, exitError))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&env, "env", "e", nil, "`NAME=VALUE`, or NAME for the value that it has here; any number of times")
	f.StringVarP(&program.User, "user", "u", "", "`NAME|UID[:GROUP|GID]` in the container, instead of the session's user")
	f.StringVarP(&program.Dir, "workdir", "w", "", "start in this `folder` of the session; a relative one is below the workspace")
	f.BoolVar(&program.PrivateMounts, "private-mounts", false, "put the session's libraries at the system's paths, for this command alone; as root or with user namespaces")
	return cmd
}

// enterCommand is how exec starts a program in a mount namespace.
func enterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    process.EnterCommand + " -- REPORT DIR PATH ARGV...",
		Short:  "Mount a session's libraries and execute a program, for exec",
		Hidden: true,
		Args:   cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := strconv.Atoi(args[0])
			if err == nil {
				process.Enter(report, args[1], args[2], args[3:])
				err = exit(exitError)
			}
			return err
		},
	}
}

// place is where the session runs, if programs can run in it.
func (in *inside) place(ctx context.Context) (runtime.Runtime, error) {
	if in.reached != nil {
		return in.reached, nil
	}
	s := in.session
	if body, _ := in.Live.Body(s.Slice.Host, s.Runtime, s.ID); s.Rests(body) {
		return nil, project.Resting(s)
	}
	if in.Live.Unreachable(s.Slice.Host) {
		return nil, in.Live.NotRead(s.Slice.Host)
	}
	if own, there := diff.OwnSlice(s, in.Live); s.Handle != nil && (!there || own.UUID == "") {
		return nil, prose.Advice{What: fmt.Sprintf("%s: its slice is missing, so there is no GPU to run on", s.Address), Fix: "cosplay apply"}
	}
	return in.Runtime(ctx, s, in.Prior)
}
