package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/diff"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
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

func (inv *invocation) logs() *cobra.Command {
	var o runtime.LogOptions
	cmd := &cobra.Command{
		Use:   "logs [SESSION]",
		Short: "Show what a session's container has printed",
		Args:  wants(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inv.runLogs(cmd.Context(), strings.Join(args, ""), o)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "keep printing new lines")
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
	containers, err := project.Able[runtime.Logger](ctx, in.Project, in.session, in.Prior, "log")
	if err != nil {
		return err
	}
	if err := containers.Logs(ctx, in.session.ID, o, terminal.Raw(inv.Out), inv.stderr); err != nil {
		return fmt.Errorf("%s: %w", in.session.Address, err)
	}
	return nil
}

// inside is a session that a command enters.
type inside struct {
	*project.Project
	project.Outlook
	session resource.PriorSession
}

// enter finds the session that the user names, and ends the agents.
func (inv *invocation) enter(ctx context.Context, name string) (*inside, error) {
	p, err := inv.openHosts()
	if err != nil {
		return nil, err
	}
	in := &inside{Project: p.Project}
	if in.Outlook, err = p.Peek(ctx); err != nil {
		return nil, err
	}
	in.session, err = named(in.Prior, name)
	p.Machine.Rest()
	return in, err
}

// named finds a session by any form of its address.
func named(prior resource.Prior, name string) (resource.PriorSession, error) {
	var known []resource.Address
	for _, s := range prior.Sessions {
		known = append(known, s.Address)
	}
	address, err := resource.Match(name, known)
	if err != nil {
		return resource.PriorSession{}, oneOfSeveral(err, name, known)
	}
	session, _ := prior.Session(address)
	return session, nil
}

// peekChosen reads state and hosts, and finds the sessions with the names.
func (inv *invocation) peekChosen(ctx context.Context, names []string) (p *opened, now project.Outlook, sessions []resource.PriorSession, err error) {
	if p, err = inv.openHosts(); err != nil {
		return p, now, nil, err
	}
	if now, err = p.Peek(ctx); err != nil {
		return p, now, nil, err
	}
	sessions, err = chosen(now.Prior, names)
	return p, now, sessions, err
}

// chosen finds the sessions with the names, each once; without names, all.
func chosen(prior resource.Prior, names []string) ([]resource.PriorSession, error) {
	if len(names) == 0 {
		return prior.Sessions, nil
	}
	var sessions []resource.PriorSession
	for _, name := range names {
		s, err := named(prior, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(sessions, func(o resource.PriorSession) bool { return o.Address == s.Address }) {
			sessions = append(sessions, s)
		}
	}
	return sessions, nil
}

// oneOfSeveral replaces the error for an unknown name if the name is that of a block with
// several sessions.
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
	total := prose.Count(len(instances), "session")
	if len(instances) > 4 {
		instances = append(instances[:2], "...", instances[len(instances)-1])
	}
	return fmt.Errorf("%s has %s; name one: %s", name, total, strings.Join(instances, ", "))
}

// splitCommand separates a session's name from the command after --. dash is the number
// of words before it, negative without one.
func splitCommand(verb string, args []string, dash int) (name string, argv []string, err error) {
	names := args
	if dash >= 0 {
		names, argv = args[:dash], args[dash:]
	}
	if len(names) > 1 {
		return "", nil, fmt.Errorf("one session at a time; write the command after --: cosplay %s %s -- %s", verb, terminal.ShellWord(names[0]), terminal.ShellWords(names[1:]))
	}
	return strings.Join(names, ""), argv, nil
}
