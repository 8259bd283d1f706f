package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/state"
	"cosplay/internal/terminal"
)

// checkDetach refuses flags of cosplay run that --detach excludes or needs.
func (inv *invocation) checkDetach(f *pflag.FlagSet) error {
	detach := f.Changed("detach")
	for _, name := range []string{"name", "ttl"} {
		if f.Changed(name) && !detach {
			return fmt.Errorf("--%s is for a session that stays. Fix: add --detach, or leave --%[1]s out", name)
		}
	}
	for _, name := range []string{"host", "junit", "file", "var", "var-file"} {
		if f.Changed(name) && detach {
			return fmt.Errorf("a session of --detach is on this machine, in a project without your configuration; leave --%s out, or write a session block and run cosplay apply", name)
		}
	}
	return nil
}

// runDetached creates a session that stays.
func (inv *invocation) runDetached(ctx context.Context, session project.Once, wait waitFlag) error {
	p, files, diags, err := project.OpenDetached(inv.options(project.Options{}), session)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return inv.refuse(diags, files)
	}
	defer p.Close()
	name, _ := p.Detached()
	one := &once{invocation: inv, opened: &opened{p, files, diags}, signals: interrupt.Catch(), contained: session.Image != "" || len(session.Volumes) > 0,
		result: &render.JUnitView{}, rest: "cosplay destroy " + name}
	defer one.signals.Release()
	interrupt.OutliveReaders()
	if err = inv.lock(ctx, p, "run", 0); err == nil {
		err = one.create(ctx, wait)
	}
	if err != nil {
		if left := one.remove(context.WithoutCancel(ctx)); left != nil {
			inv.report(left)
		}
		return err
	}
	one.progress.Close()
	render.Detached(inv.Out, inv.style(inv.Out), render.DetachedView{Session: one.prior.Sessions[0].Session, Folder: p.Dir})
	return nil
}

// bare reports whether the folder has no project, so that the name of a detached session is enough.
func (inv *invocation) bare() bool {
	_, err := os.Lstat(state.FileName)
	return inv.chdir+inv.file+inv.state == "" && os.IsNotExist(err) && emptyFolder() == nil
}

// detachedFolder is the folder of the detached session that the arguments of a command name; "" if they name none, and an
// error if the names can be no other's.
func (inv *invocation) detachedFolder(cmd *cobra.Command, args []string) (string, error) {
	names := namedSessions(cmd, args)
	if len(names) == 0 || !inv.bare() {
		return "", nil
	}
	for _, name := range names {
		if dir := project.FolderOf(name); dir != "" {
			return dir, nil
		}
	}
	if known := project.DetachedNames(); len(known) > 0 {
		return "", notDetached(names[0], known)
	}
	return "", nil
}

// notDetached is the error about a name that no detached session has.
func notDetached(name string, known []string) error {
	return fmt.Errorf("cosplay run --detach has created no session %s. Those that exist: %s. For a project: --chdir FOLDER",
		terminal.ShellWord(name), cmp.Or(prose.And(known), "there is none"))
}

// namedSessions are those that the arguments of a command name, as far as one can be detached: the first, or those of paths.
func namedSessions(cmd *cobra.Command, args []string) (names []string) {
	switch wordAt(cmd, 0) {
	case "SESSION", "DETACHED":
		if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
			return args[:1]
		}
	case "SOURCE":
		for _, word := range args {
			if name, _, inSession := splitPath(word); inSession && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// maybeDetached accepts the name of a detached session, and no other argument.
func (inv *invocation) maybeDetached(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 1 && inv.bare() && project.FolderOf(args[0]) != "":
		return nil
	case len(args) == 1 && inv.bare():
		return notDetached(args[0], project.DetachedNames())
	}
	return noArgs(cmd, args)
}

// forget removes the folder of a detached session that was destroyed.
func (inv *invocation) forget(p *project.Project) error {
	kept, err := p.Forget()
	if kept {
		fmt.Fprintf(inv.Err, "%s has other files, so the folder stays, and the name %s is taken as long as it exists.\n", p.Dir, filepath.Base(p.Dir))
	}
	return err
}
