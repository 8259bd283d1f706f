package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/go-archive"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/transfer"
)

// standardStream stands for an archive on standard input or output.
const standardStream = "-"

func cpCommand(inv *invocation) *cobra.Command {
	c := copying{invocation: inv, sessions: map[string]transfer.End{}}
	cmd := &cobra.Command{
		ValidArgsFunction: inv.pathNames,

		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files and folders between here and a session",
		Long: `Copy files and folders between here and a session, or between two sessions. A path in a session is written SESSION:PATH, and a relative one is below its workspace; with a single session :PATH is enough.

  cosplay cp model.pt worker-3:/data/     # into a folder that exists
  cosplay cp worker-3:out .     # the folder out of the workspace, as ./out
  cosplay cp worker-3:out/. results     # what is in it
  cosplay cp - worker-3:data < data.tar.gz     # an archive; worker-3:data - writes one

The rules are those of docker cp. A folder is copied with all that is in it: into a folder that exists, or as a new folder. SOURCE/. is the content of a folder. A destination that ends in / must exist. Several sources need a folder as destination. Modes, symbolic and hard links and times (in seconds) are kept; sockets are left out. A file whose name has a colon is written ./NAME.

In a container, files belong to the session's user, so that its programs can change them, and not to the IDs that they have here, as with docker cp. Here and in sessions that run as processes, they belong to you. With --archive they keep their owners by number. setuid and setgid bits of files are kept with --archive alone.

A stopped container can be copied from and to. Files of a container's /proc, /sys and /dev, or of a tmpfs, cannot be copied.

Exit codes: 0 copied; 1 error, some files may have been copied; 130 stopped by Ctrl-C.`,
		Args: wants(2, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&c.o.Owners, "archive", "a", false, "keep user and group of each file, by number")
	f.BoolVarP(&c.o.Follow, "follow-link", "L", false, "copy what a symbolic link at SOURCE leads to")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "do not show progress")
	return cmd
}

// copying is one run of cp.
type copying struct {
	*invocation
	o        transfer.Options
	quiet    bool
	sessions map[string]transfer.End // that were found, by how they were typed
}

func (c *copying) run(ctx context.Context, args []string) error {
	sources, destination := args[:len(args)-1], args[len(args)-1]
	if err := c.check(sources, destination); err != nil {
		return err
	}
	to, err := c.end(ctx, destination)
	if err != nil {
		return err
	}
	from := make([]transfer.End, len(sources))
	for i, source := range sources {
		if from[i], err = c.end(ctx, source); err != nil {
			return err
		}
	}
	ctx, release := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer release()
	if len(from) > 1 {
		if at, err := to.Destination(ctx, to.Path); err != nil || !at.IsDir {
			return fmt.Errorf("%s: several sources need a folder that exists as destination", destination)
		}
	}
	for i := range from {
		if err := c.copy(ctx, from[i], to, args[i]+" to "+destination); err != nil {
			return c.stopped(ctx, err)
		}
	}
	return nil
}

// check refuses what cannot be copied, whatever is there.
func (c *copying) check(sources []string, destination string) error {
	inSession := func(word string) bool { _, _, is := splitPath(word); return is }
	switch {
	case len(sources) > 1 && (destination == standardStream || slices.Contains(sources, standardStream)):
		return errors.New("an archive (-) is the only source, or has one")
	case !inSession(destination) && len(prose.Only(sources, inSession)) < len(sources):
		return prose.Advice{What: "one side has to be in a session, written SESSION:PATH", Fix: "use cp for copies between folders of this machine"}
	case sources[0] == standardStream && isTerminal(c.In):
		return errors.New("standard input is a terminal; - reads an archive, as of tar, from a file or a pipe")
	case destination == standardStream && isTerminal(c.stdout):
		return errors.New("standard output is a terminal; - writes an archive, for a file or for tar -x")
	}
	return nil
}

func isTerminal(stream any) bool {
	f, is := stream.(interface{ Fd() uintptr })
	return is && term.IsTerminal(int(f.Fd()))
}

// copy copies one source.
func (c *copying) copy(ctx context.Context, from, to transfer.End, what string) (err error) {
	o, shown := c.o, render.NewCopying(c.Err, c.style(c.Err), what, c.quiet)
	defer func() { shown.Close(err != nil) }()
	o.Count = shown
	switch {
	case from.Side == nil:
		return transfer.Read(ctx, c.In, to, o)
	case to.Side == nil:
		return transfer.Write(ctx, from, c.stdout, o)
	}
	return transfer.Copy(ctx, from, to, o)
}

// stopped is the error of a copy that Ctrl-C or a signal has ended, whatever failed because of that.
func (c *copying) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	render.Error(c.Err, c.style(c.Err), errors.New("stopped; files may be missing, and the last one may be incomplete"))
	return exit(exitInterrupted)
}

// end is what a user means by a path.
func (c *copying) end(ctx context.Context, word string) (transfer.End, error) {
	name, path, inSession := splitPath(word)
	if word == standardStream {
		return transfer.End{Name: word}, nil
	}
	if !inSession {
		full, err := c.here(path)
		return transfer.End{Side: transfer.Files{}, Path: transfer.Clean(archive.PreserveTrailingDotOrSeparator(full, path)), Name: path}, err
	}
	end, known := c.sessions[name]
	if !known {
		in, err := c.enter(ctx, name, false)
		if err != nil {
			return end, c.meant(err, word, name)
		}
		copier, err := in.copier(ctx)
		if err != nil {
			return end, err
		}
		end = transfer.End{Side: transfer.In{Copier: copier, Session: in.session.ID}, Of: in.session.Spec.User}
		c.sessions[name] = end
	}
	end.Path, end.Name = transfer.Clean(path), word
	return end, nil
}

// here is the full path of a file of this machine. The project of a detached session is in another folder than the user.
func (c *copying) here(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.called, path)
	}
	return filepath.Abs(path)
}

// meant adds how to name a file of this machine whose name has a colon, or to reach a second detached session.
func (c *copying) meant(err error, word, name string) error {
	file, _ := c.here(word)
	if _, missing := os.Lstat(file); missing == nil {
		return prose.Advice{What: err.Error(), Fix: "for the file of this machine, write ./" + word, Cause: err}
	}
	if c.chdir != "" && c.called != "" && project.FolderOf(name) != "" {
		return prose.Advice{What: name + " is another detached session, and cp reaches one", Fix: "copy an archive: cosplay cp SOURCE - | cosplay cp - DESTINATION", Cause: err}
	}
	return err
}

// splitPath separates the name of a session from the path in it. As with docker cp and scp, a path that begins with a dot, or
// has a slash before its first colon, is one of this machine. The key of a session may have any characters.
func splitPath(word string) (session, path string, inSession bool) {
	if strings.HasPrefix(word, ".") {
		return "", word, false
	}
	bare := word
	if block, key, keyed := strings.Cut(word, `["`); keyed && !strings.ContainsAny(block, "/:") {
		if end := strings.Index(key, `"]:`); end >= 0 {
			bare = block + strings.Repeat("_", len(`["`)+end+len(`"]`)) + key[end+len(`"]`):]
		}
	}
	colon := strings.Index(bare, ":")
	if colon < 0 || strings.Contains(bare[:colon], "/") {
		return "", word, false
	}
	return word[:colon], word[colon+1:], true
}

// copier is what copies the files of the session.
func (in *inside) copier(ctx context.Context) (runtime.Copier, error) {
	s, place := in.session, in.reached
	if s.Device() != "" {
		return nil, prose.Advice{What: fmt.Sprintf("%s is a CDI device, and the files are those of its containers", s.Address),
			Fix: "docker cp NAME:PATH ., by the engine of the container"}
	}
	if place == nil && in.Live.Unreachable(s.Slice.Host) {
		return nil, in.Live.NotRead(s.Slice.Host)
	}
	if place == nil {
		var err error
		if place, err = in.Runtime(ctx, s, in.Prior); err != nil {
			return nil, err
		}
	}
	copier, can := place.(runtime.Copier)
	if !can {
		return nil, fmt.Errorf("%s: cosplay cannot copy files of sessions that run %s", s.Address, resource.RuntimeNamed(s.Runtime).Where)
	}
	return copier, nil
}

// pathNames are the sessions, for a path in one. The shell completes the names of files where no session begins so.
func (inv *invocation) pathNames(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, _, is := splitPath(typed); is {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []cobra.Completion
	for _, c := range starting(typed, sessionNames(inv, nil, typed)) {
		name, about, _ := strings.Cut(c, "\t")
		all = append(all, cobra.CompletionWithDesc(name+":", about))
	}
	if len(all) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return all, cobra.ShellCompDirectiveNoSpace
}
