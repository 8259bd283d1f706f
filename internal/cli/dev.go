package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/resource"
)

// openers are the editors that take the options of VS Code.
var openers = []string{"code", "code-insiders", "codium", "cursor", "windsurf"}

func devCommand(inv *invocation) *cobra.Command {
	var editor string
	cmd := &cobra.Command{
		Use:   "dev [SESSION]",
		Short: "Show how to open a session in VS Code or a JetBrains IDE",
		Long: `Show what VS Code and JetBrains IDEs need to work in a session, with commands and links to copy. cosplay changes no configuration of ssh or of an editor.

  cosplay dev worker-0
  cosplay dev --open code worker-0     # open VS Code there

A session with ssh is opened over ssh, from any machine that has the project; a container without ssh by its engine; a session that runs as processes as a folder, with the session's environment. A CDI device belongs to your container: cosplay devices --devcontainer.

Exit codes: the editor's; 1 where the session is not running or there is no such session, or the editor cannot be opened.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, argv, err := splitCommand("dev", args, cmd.ArgsLenAtDash())
			switch {
			case err != nil:
				return err
			case len(argv) > 0:
				return errors.New("dev takes no command; cosplay exec runs one in a session")
			case editor != "" && inv.json:
				return errors.New("--json and --open exclude each other. Fix: leave one of them out")
			case editor != "":
				if err := canOpen(editor); err != nil {
					return err
				}
			}
			view, err := inv.workplace(cmd.Context(), name, editor != "")
			if err != nil {
				return err
			}
			if editor == "" {
				return inv.print(view)
			}
			return inv.openEditor(view, editor)
		},
	}
	cmd.Flags().StringVar(&editor, "open", "", "open the session in this `EDITOR`: "+prose.Or(openers))
	return cmd
}

// canOpen refuses an editor that cannot be started. Those that do not take the options of VS Code have links instead.
func canOpen(editor string) error {
	if !slices.Contains(openers, editor) {
		return prose.Advice{What: "--open " + editor + ": cosplay cannot start this editor", Fix: "choose " + prose.Or(openers) + ", or leave --open out and open the link that cosplay dev prints"}
	}
	if _, err := exec.LookPath(editor); err != nil {
		return prose.Advice{What: "--open " + editor + ": there is no program " + editor + " on PATH",
			Fix: "in the editor, run the command Shell Command: Install '" + editor + "' command in PATH; or leave --open out and copy the command to where the editor is"}
	}
	return nil
}

// workplace finds out how editors work in the session that the user names. Commands of cosplay in it are for this process
// if opens, otherwise for the user's shell.
func (inv *invocation) workplace(ctx context.Context, name string, opens bool) (view render.DevView, err error) {
	p, err := inv.open(forHosts)
	if err != nil {
		return view, err
	}
	done := inv.slow("Reading the hosts")
	now, err := p.Peek(ctx)
	done()
	if err != nil {
		return view, err
	}
	s, err := named(now.Prior, name)
	if err != nil {
		return view, p.OnCluster(err, name)
	}
	w, err := p.Workplace(ctx, s, now.Prior, now.Live)
	if err != nil {
		return view, err
	}
	flags := inv.flags()
	if opens {
		flags = inv.flagsInside()
	}
	view = render.DevView{Flags: flags, Name: s.Address.Short(), Dev: public.Dev{Format: public.V1, Session: s.Address.String(), Target: s.Target.Key, Folder: w.Folder,
		Editors: w.Editors(slices.Concat([]string{"cosplay", "exec"}, flags, []string{s.Address.Short(), "--"}))}}
	view.Is = fmt.Sprintf("%s is %s, %s.", view.Name, resource.WithArticle(s.Target.ShortName()), where(s, w))
	if w.Login != nil {
		host := sshHost(s, *w.Login)
		view.SSH, view.SSHKnown = &host, knows(ctx, host)
	}
	return view, nil
}

// where says how a session runs, and where.
func where(s resource.PriorSession, w project.Workplace) string {
	in := "as processes"
	if w.Inside {
		in = "in the container " + s.BodyName()
	}
	if w.Machine != "" {
		in += " on " + w.Machine
	}
	return in
}

// knows reports whether ssh finds the session's Host block in the user's configuration.
func knows(ctx context.Context, host public.SSHHost) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // a Match block can run a command
	defer cancel()
	settings, err := exec.CommandContext(ctx, "ssh", "-G", "--", host.Name).Output()
	if err != nil {
		return false
	}
	for _, o := range host.Options {
		switch o.Name {
		case "HostName", "Port", "HostKeyAlias":
			if !slices.Contains(strings.Split(string(settings), "\n"), strings.ToLower(o.Name)+" "+o.Value) {
				return false
			}
		}
	}
	return true
}

// openEditor becomes the editor.
func (inv *invocation) openEditor(view render.DevView, editor string) error {
	if view.SSH != nil && !view.SSHKnown {
		return prose.Advice{What: "ssh does not know " + view.SSH.Name + ", as it is now",
			Fix: "write Include cosplay as the first line of ~/.ssh/config, and after each apply run cosplay ssh-config > ~/.ssh/cosplay"}
	}
	first := view.Editors[0]
	argv := slices.Clone(first.Command)
	argv[slices.Index(argv, "code")] = editor
	program, err := exec.LookPath(argv[0])
	if argv[0] == "cosplay" {
		program, err = os.Executable()
	}
	if err != nil {
		return err
	}
	if first.Note != "" {
		fmt.Fprintln(inv.Err, first.Note)
	}
	for _, p := range inv.projects { // the editor must not keep agents
		_ = p.Close()
	}
	return syscall.Exec(program, argv, os.Environ())
}
