// Package transfer copies files between this machine and sessions, as docker cp does: the rules for what a source and a
// destination mean, and the archives, are those of its library.
package transfer

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/moby/go-archive"
	"github.com/moby/go-archive/compression"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Side is where files are: this machine or a session.
type Side interface {
	Source(ctx context.Context, path string, follow bool) (archive.CopyInfo, error)
	Destination(ctx context.Context, path string) (archive.CopyInfo, error)
	Pack(ctx context.Context, what archive.CopyInfo, to io.Writer) error
	Unpack(ctx context.Context, folder string, from io.Reader, owners bool) error
}

// In is the side of a session.
type In struct {
	runtime.Copier
	Session string
}

// Source finds what is at a path of the session.
func (in In) Source(ctx context.Context, path string, follow bool) (archive.CopyInfo, error) {
	return in.Copier.Source(ctx, in.Session, path, follow)
}

// Destination finds what is at a path of the session to which files are copied.
func (in In) Destination(ctx context.Context, path string) (archive.CopyInfo, error) {
	return in.Copier.Destination(ctx, in.Session, path)
}

// Pack writes what Source has found as an archive.
func (in In) Pack(ctx context.Context, what archive.CopyInfo, to io.Writer) error {
	return in.Copier.Pack(ctx, in.Session, what, to)
}

// Unpack extracts an archive into a folder of the session.
func (in In) Unpack(ctx context.Context, folder string, from io.Reader, owners bool) error {
	return in.Copier.Unpack(ctx, in.Session, folder, from, owners)
}

// End is a path on a side, cleaned by Clean.
type End struct {
	Side
	Path string
	Name string        // for errors
	Of   resource.User // whom files that are copied here belong to, in a container
}

// Clean is a path without detours, which keeps what its end says of a folder. The root stands for what is in it.
func Clean(path string) string {
	if path == "" {
		path = "."
	}
	clean := archive.PreserveTrailingDotOrSeparator(filepath.Clean(path), path)
	if clean == "/" {
		return "/."
	}
	return clean
}

// Options of a copy.
type Options struct {
	Follow bool      // a symbolic link at the source's path
	Owners bool      // files keep them
	Count  io.Writer // gets what is copied
}

// Copy copies what is at a path to another.
func Copy(ctx context.Context, from, to End, o Options) error {
	what, err := from.Source(ctx, from.Path, o.Follow)
	if err != nil {
		return from.failed(err)
	}
	at, err := to.Destination(ctx, to.Path)
	if err != nil {
		return to.failed(err)
	}
	name := filepath.Base(from.Path)
	if name == ".." {
		return from.failed(errors.New("a path that ends in .. does not say the name of what is copied; write its name"))
	}
	return from.into(ctx, what, o.Count, func(content io.Reader) error {
		// Another machine says where its files are. The names in its archive begin with the one that was asked for.
		folder, arranged, err := archive.PrepareArchiveCopy(content, archive.CopyInfo{Path: from.Path, Exists: true, IsDir: what.IsDir}, at)
		if err != nil {
			return to.refused(err)
		}
		defer arranged.Close()
		if !at.Exists || !at.IsDir {
			_, name = archive.SplitPathDirEntry(at.Path)
		}
		return to.take(ctx, folder, arranged, o, guardOf(from, to, folder, name))
	})
}

// Write writes what is at a path as an archive.
func Write(ctx context.Context, from End, to io.Writer, o Options) error {
	what, err := from.Source(ctx, from.Path, o.Follow)
	if err != nil {
		return from.failed(err)
	}
	return from.into(ctx, what, o.Count, func(content io.Reader) error {
		_, err := io.Copy(to, content)
		return err
	})
}

// Read extracts an archive, which may be compressed, into a folder.
func Read(ctx context.Context, archived io.Reader, to End, o Options) error {
	at, err := to.Destination(ctx, to.Path)
	if err == nil && !at.IsDir {
		err = errors.New("it is no folder; an archive needs one that exists")
	}
	if err != nil {
		return to.failed(err)
	}
	coming, out := io.Pipe()
	defer func() { _ = coming.Close() }()
	defer context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })() // which nothing else does while none comes
	go func() {
		_, err := io.Copy(out, io.TeeReader(archived, o.Count))
		_ = out.CloseWithError(err)
	}()
	content, err := compression.DecompressStream(coming)
	if err != nil {
		return fmt.Errorf("the archive on standard input: %w", err)
	}
	defer content.Close()
	return cmp.Or(ctx.Err(), to.take(ctx, at.Path, content, o, nil))
}

// into gives an archive of what is at a path to a function, and reports the error that came first.
func (e End) into(ctx context.Context, what archive.CopyInfo, count io.Writer, give func(io.Reader) error) error {
	content, out := io.Pipe()
	var broken atomic.Pointer[error]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := e.Pack(ctx, what, out)
		if err != nil {
			broken.CompareAndSwap(nil, &err)
		}
		_ = out.CloseWithError(err)
	}()
	err := give(io.TeeReader(content, count))
	if err == nil { // the end of an archive may come before that of what writes it
		_, err = io.Copy(io.Discard, content)
	}
	if err != nil {
		broken.CompareAndSwap(nil, new(error)) // whatever its other end says now
	}
	_ = content.CloseWithError(err)
	<-ended
	if first := broken.Load(); first != nil && *first != nil {
		return cmp.Or(context.Cause(ctx), e.failed(*first))
	}
	return cmp.Or(context.Cause(ctx), err)
}

// take extracts an archive. A guard checks what it has.
func (e End) take(ctx context.Context, folder string, content io.Reader, o Options, g *guard) error {
	revised := revise(content, func(h *tar.Header) error {
		if !o.Owners {
			disown(h, e.Of.UID, e.Of.GID)
		}
		return g.check(h)
	})
	defer revised.Close()
	if err := e.Unpack(ctx, folder, revised, o.Owners); err != nil {
		return e.failed(err)
	}
	_, err := io.Copy(io.Discard, revised)
	return err
}

func (e End) failed(err error) error { return fmt.Errorf("%s: %w", e.Name, err) }

// refused says why nothing can be copied to a path.
func (e End) refused(err error) error {
	switch {
	case errors.Is(err, archive.ErrCannotCopyDir):
		return e.failed(errors.New("it is a file, and a folder cannot be copied over it"))
	case errors.Is(err, archive.ErrDirNotExists):
		return e.failed(errors.New("there is no such folder. Fix: create it (mkdir -p), or leave the / at the end out to create a file of that name"))
	}
	return e.failed(err)
}
