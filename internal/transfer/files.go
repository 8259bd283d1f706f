package transfer

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/containerd/log"
	"github.com/moby/go-archive"

	"cosplay/internal/prose"
)

// Files are those of this machine. Their paths are absolute.
type Files struct{}

// Source finds what is at a path.
func (Files) Source(_ context.Context, path string, follow bool) (archive.CopyInfo, error) {
	found, err := archive.CopyInfoSourcePath(path, follow)
	if errors.Is(err, fs.ErrNotExist) {
		err = Missing(path)
	}
	return found, err
}

// Destination finds what is at a path to which files are copied, or that its folder exists.
func (Files) Destination(_ context.Context, path string) (archive.CopyInfo, error) {
	found, err := archive.CopyInfoDestinationPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = Missing(filepath.Dir(filepath.Clean(path)))
	}
	return found, err
}

// Pack writes what Source has found as an archive. A file that cannot be read is an error.
func (Files) Pack(ctx context.Context, what archive.CopyInfo, to io.Writer) error {
	left := &leftOut{}
	listen()
	packing.Store(left)
	content, err := archive.TarResource(what)
	if err != nil {
		return err
	}
	defer content.Close()
	defer context.AfterFunc(ctx, func() { _ = content.Close() })()
	_, err = io.Copy(to, content)
	return cmp.Or(context.Cause(ctx), err, left.err())
}

// Unpack extracts an archive into a folder. Its files belong to the user who runs cosplay or, with owners, to those of the
// archive.
func (Files) Unpack(ctx context.Context, folder string, from io.Reader, owners bool) error {
	closed := closedFolders{}
	if os.Geteuid() != 0 {
		revised := revise(from, closed.open)
		defer revised.Close()
		from = revised
	}
	err := archive.UntarUncompressed(from, folder, &archive.TarOptions{NoLchown: !owners, NoOverwriteDirNonDir: true})
	if owners && errors.Is(err, fs.ErrPermission) {
		err = prose.Advice{What: err.Error(), Fix: "leave --archive out, or run cosplay as root: only root gives files to other users", Cause: err}
	}
	return cmp.Or(context.Cause(ctx), err, closed.close(folder))
}

// closedFolders are those of an archive in which their owner cannot write, and their modes. The library gives a folder its mode
// before it extracts what is in it.
type closedFolders map[string]fs.FileMode

func (c closedFolders) open(h *tar.Header) error {
	if mode := h.FileInfo().Mode(); mode.IsDir() && mode&0o300 != 0o300 {
		c[h.Name] = mode
		h.Mode |= 0o300
	}
	return nil
}

func (c closedFolders) close(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(c))) { // what is in a folder before it
		err = cmp.Or(err, root.Chmod(filepath.Clean(strings.TrimLeft(name, "/")), c[name]))
	}
	return err
}

// Missing is the error for a path at which nothing is.
func Missing(path string) error { return fmt.Errorf("there is no file or folder %s", path) }

// leftOut is the first error of the library while it packs. It only logs that, and leaves files out.
type leftOut struct{ first atomic.Pointer[string] }

var (
	packing atomic.Pointer[leftOut] // the library has one log
	listen  = sync.OnceFunc(func() {
		log.L.Logger.SetOutput(io.Discard)
		log.L.Logger.AddHook(hook{})
	})
)

// hook takes the errors of the log.
type hook struct{}

func (hook) Levels() []log.Level { return []log.Level{log.ErrorLevel} }

func (hook) Fire(e *log.Entry) error {
	why := e.Message
	if _, ofFile, cut := strings.Cut(why, " to tar: "); cut {
		why = ofFile
	}
	// A file may grow while it is copied, and a socket has no content.
	if left := packing.Load(); !strings.HasSuffix(why, tar.ErrWriteTooLong.Error()) && !strings.HasSuffix(why, "sockets not supported") {
		left.first.CompareAndSwap(nil, &why)
	}
	return nil
}

func (l *leftOut) err() error {
	if first := l.first.Load(); first != nil {
		return fmt.Errorf("%s; files are missing in the copy", *first)
	}
	return nil
}
