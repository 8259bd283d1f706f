package process

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/moby/go-archive"

	"cosplay/internal/transfer"
)

// errNoFolder is the error for a session whose folder is missing.
var errNoFolder = errors.New("its session folder does not exist. Fix: cosplay apply recreates it")

// Source finds what is at a path. The programs of a session see the host's files.
func (r Runtime) Source(ctx context.Context, session, path string, follow bool) (archive.CopyInfo, error) {
	path, err := r.absolute(session, path)
	if err != nil {
		return archive.CopyInfo{}, err
	}
	return transfer.Files{}.Source(ctx, path, follow)
}

// Destination finds what is at a path to which files are copied.
func (r Runtime) Destination(ctx context.Context, session, path string) (archive.CopyInfo, error) {
	path, err := r.absolute(session, path)
	if err != nil {
		return archive.CopyInfo{}, err
	}
	return transfer.Files{}.Destination(ctx, path)
}

// Pack writes what Source has found as an archive.
func (r Runtime) Pack(ctx context.Context, _ string, what archive.CopyInfo, to io.Writer) error {
	return transfer.Files{}.Pack(ctx, what, to)
}

// Unpack extracts an archive into a folder.
func (r Runtime) Unpack(ctx context.Context, _, folder string, from io.Reader, owners bool) error {
	return transfer.Files{}.Unpack(ctx, folder, from, owners)
}

// absolute is a path of a session: a relative one is below the workspace.
func (r Runtime) absolute(session, path string) (string, error) {
	f, err := readFigures(r.Folder(session))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errNoFolder
	}
	if !filepath.IsAbs(path) {
		path = archive.PreserveTrailingDotOrSeparator(filepath.Join(f.Session.Workspace, path), path)
	}
	return path, err
}
