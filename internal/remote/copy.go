package remote

import (
	"context"
	"errors"
	"io"

	"github.com/moby/go-archive"

	"cosplay/internal/runtime"
)

// Source finds what is at a path of a session over there.
func (r Runtime) Source(ctx context.Context, session, path string, follow bool) (archive.CopyInfo, error) {
	return r.found(ctx, session, finding{Path: path, Follow: follow})
}

// Destination finds what is at a path to which files are copied.
func (r Runtime) Destination(ctx context.Context, session, path string) (archive.CopyInfo, error) {
	return r.found(ctx, session, finding{Path: path, Into: true})
}

func (r Runtime) found(ctx context.Context, session string, what finding) (archive.CopyInfo, error) {
	a, err := r.ask(ctx, question{Op: opFind, IDs: []string{session}, Find: &what})
	if err == nil && a.Found == nil {
		err = errors.New("it does not say what is at the path")
	}
	if err != nil {
		return archive.CopyInfo{}, err
	}
	return *a.Found, nil
}

// Pack writes an archive that is made over there.
func (r Runtime) Pack(ctx context.Context, session string, what archive.CopyInfo, to io.Writer) error {
	_, err := r.stream(ctx, question{IDs: []string{session}, Pack: &what}, runtime.Streams{Out: to, Err: io.Discard})
	return err
}

// Unpack has an archive extracted over there.
func (r Runtime) Unpack(ctx context.Context, session, folder string, from io.Reader, owners bool) error {
	_, err := r.stream(ctx, question{IDs: []string{session}, Unpack: &unpacking{folder, owners}}, runtime.Streams{In: from, Out: io.Discard, Err: io.Discard})
	return err
}

// find answers for a runtime that has files.
func find(ctx context.Context, in runtime.Runtime, q question) (*archive.CopyInfo, error) {
	of, can := in.(runtime.Copier)
	if !can {
		return nil, cannot(q)
	}
	look := of.Destination
	if !q.Find.Into {
		look = func(ctx context.Context, session, path string) (archive.CopyInfo, error) {
			return of.Source(ctx, session, path, q.Find.Follow)
		}
	}
	found, err := look(ctx, q.IDs[0], q.Find.Path)
	return &found, err
}

// carry packs or extracts an archive, on the streams of a program.
func carry(ctx context.Context, of runtime.Copier, q question, streams runtime.Streams) error {
	if q.Pack != nil {
		return of.Pack(ctx, q.IDs[0], *q.Pack, streams.Out)
	}
	return of.Unpack(ctx, q.IDs[0], q.Unpack.Folder, streams.In, q.Unpack.Owners)
}
