package docker

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/moby/go-archive"

	"cosplay/internal/initd"
	"cosplay/internal/prose"
	"cosplay/internal/transfer"
)

// Source finds what is at a path of a container. The engine copies from a stopped one as well.
func (r Runtime) Source(ctx context.Context, session, at string, follow bool) (archive.CopyInfo, error) {
	at = inWorkspace(at)
	found, err := r.stat(ctx, session, at)
	if err != nil {
		return archive.CopyInfo{}, err
	}
	what := archive.CopyInfo{Path: at, Exists: true, IsDir: found.Mode.IsDir()}
	if follow && found.Mode&fs.ModeSymlink != 0 {
		what.Path, what.RebaseName = archive.GetRebaseName(at, target(at, found))
		found, err = r.stat(ctx, session, what.Path)
		what.IsDir = found.Mode.IsDir()
	}
	return what, err
}

// Destination finds what is at a path of a container to which files are copied.
func (r Runtime) Destination(ctx context.Context, session, at string) (archive.CopyInfo, error) {
	at = inWorkspace(at)
	found, err := r.stat(ctx, session, at)
	if err == nil && found.Mode&fs.ModeSymlink != 0 {
		at = target(at, found)
		found, err = r.stat(ctx, session, at)
	}
	if errdefs.IsNotFound(err) { // a file is created there, if there is its folder
		folder, _ := archive.SplitPathDirEntry(at)
		_, err = r.stat(ctx, session, folder)
		return archive.CopyInfo{Path: at}, err
	}
	return archive.CopyInfo{Path: at, Exists: true, IsDir: found.Mode.IsDir()}, err
}

// Pack writes what Source has found as an archive.
func (r Runtime) Pack(ctx context.Context, session string, what archive.CopyInfo, to io.Writer) error {
	there, err := r.inhabited(ctx, session)
	if err != nil {
		return err
	}
	content, _, err := r.Engine.client.CopyFromContainer(ctx, there.ID, what.Path)
	if err != nil {
		return r.uncopied(session, err)
	}
	defer content.Close()
	if what.RebaseName != "" {
		_, name := archive.SplitPathDirEntry(what.Path)
		content = archive.RebaseArchiveEntries(content, name, what.RebaseName)
	}
	_, err = io.Copy(to, content)
	return err
}

// Unpack extracts an archive into a folder of a container. The engine gives the files to whom the archive says.
func (r Runtime) Unpack(ctx context.Context, session, folder string, from io.Reader, _ bool) error {
	there, err := r.inhabited(ctx, session)
	if err == nil {
		err = r.uncopied(session, r.Engine.client.CopyToContainer(ctx, there.ID, folder, io.NopCloser(from), container.CopyToContainerOptions{}))
	}
	return err
}

// covered are folders in a container that the engine does not see. What it writes there is below their mounts, where no program
// finds it.
var covered = []string{"proc", "sys", "dev"}

// stat is what the engine says of a path. A missing one is an error that errdefs knows.
func (r Runtime) stat(ctx context.Context, session, at string) (container.PathStat, error) {
	if top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(at), "/"), "/"); slices.Contains(covered, top) {
		return container.PathStat{}, prose.Advice{What: "the engine does not copy files of /" + top,
			Fix: "copy them by a program: cosplay exec SESSION -- tar -c PATH | tar -x"}
	}
	there, err := r.inhabited(ctx, session)
	if err != nil {
		return container.PathStat{}, err
	}
	found, err := r.Engine.client.ContainerStatPath(ctx, there.ID, at)
	if errdefs.IsNotFound(err) {
		return found, missing{transfer.Missing(at)}
	}
	return found, r.uncopied(session, err)
}

// missing is the error for a path at which nothing is.
type missing struct{ error }

// NotFound makes it such an error for errdefs.
func (missing) NotFound() {}

func (m missing) Unwrap() error { return m.error }

func (r Runtime) uncopied(session string, err error) error {
	return r.Engine.explain("copying files", err, subject{name: r.called(session)})
}

// inWorkspace is a path of a container: a relative one is below the workspace.
func inWorkspace(at string) string {
	if !path.IsAbs(at) {
		at = archive.PreserveTrailingDotOrSeparator(path.Join(initd.WorkDir, at), at)
	}
	return at
}

// target is where a symbolic link leads.
func target(at string, link container.PathStat) string {
	if path.IsAbs(link.LinkTarget) {
		return link.LinkTarget
	}
	folder, _ := archive.SplitPathDirEntry(at)
	return path.Join(folder, link.LinkTarget)
}
