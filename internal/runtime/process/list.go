package process

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"

	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/shared"
)

// List lists the sessions that have a folder. If session.json was edited, the hash differs from that in the state.
func (r Runtime) List(context.Context) ([]resource.Body, error) {
	entries, err := os.ReadDir(r.Folders)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the session folders: %w", err)
	}
	all := make([]resource.Body, 0, len(entries))
	l := lister{Runtime: r, inspector: disguise.Inspector{Version: r.Version}, summer: r.summer()}
	if len(r.Owner.Stamped) > 0 {
		if stamper, err := r.stamper(); err == nil {
			l.stamper = stamper
			defer stamper.Close()
		}
	}
	for _, e := range entries {
		if e.Name() == shared.Dir {
			continue
		}
		if c, same := l.recorded(e.Name()); same {
			all = append(all, c)
			continue
		}
		dir := r.Folder(e.Name())
		c, err := l.inspect(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist): // partly created or partly removed
			c = resource.Body{ID: dir, Session: e.Name(), Runtime: name, State: resource.Stopped}
		case errors.Is(err, errDamaged):
			c = resource.Body{ID: dir, Session: e.Name(), Runtime: name, State: resource.Running, Hash: "damaged"}
		case err != nil:
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// lister reads all folders, with what it needs for each of them.
type lister struct {
	Runtime
	stamper   *disguise.Stamper // nil if the state has no stamps
	inspector disguise.Inspector
	summer    hash.Hash
	buffer    []byte
}

// recorded returns a session as the state has it, if nothing has changed in its folder since.
func (l *lister) recorded(session string) (resource.Body, bool) {
	was := l.Owner.Stamped[session]
	if was == nil || l.stamper == nil {
		return resource.Body{}, false
	}
	same, use := l.stamper.Same(session, was.Stamp)
	c := *was
	c.ID, c.Use, c.Stamp = l.Folder(session), use, "" // the project may have been moved
	return c, same
}

// inspect reads the session in a folder, and which parts of it are damaged or outdated.
func (l *lister) inspect(dir string) (resource.Body, error) {
	folder, err := durable.OpenFolder(dir)
	if err != nil {
		return resource.Body{}, err
	}
	defer folder.Close()
	c, err := l.listed(folder)
	if err != nil {
		return c, err
	}
	sight, err := l.inspector.Look(folder)
	c.Damaged, c.Outdated, c.Use = sight.Damaged, sight.Outdated, sight.Use
	return c, err
}

func (l *lister) listed(folder durable.Folder) (c resource.Body, err error) {
	if l.buffer, err = folder.Read(figuresFile, l.buffer); err != nil {
		return c, err
	}
	if c, ok := untouched(l.buffer, l.summer); ok && c.Session == filepath.Base(folder.Dir) {
		c.ID = folder.Dir // as in recorded
		return c, nil
	}
	f, err := parseFigures(folder.Dir, l.buffer)
	return l.body(folder.Dir, f.Session, f.Slice), err
}

// Remains reads each session folder as far as possible. All folders belong to the project.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	found, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []resource.Remains
	for _, c := range found {
		one := resource.Remains{Session: resource.Session{ID: c.Session, Runtime: name}, Body: c, Proven: true}
		switch f, err := readFigures(r.Folder(c.Session)); {
		case err == nil:
			one.Session = f.Session
			if c.Damaged == "" && c.Outdated == nil {
				r.stamp(&one.Body)
			}
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged):
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Readdress writes the present address of a session into its folder, for state rebuild.
// A folder that does not exist is no error.
func (r Runtime) Readdress(session string, to resource.Address) error {
	if err := runtime.CheckSession(session); err != nil {
		return err
	}
	dir := r.Folder(session)
	file, err := os.ReadFile(filepath.Join(dir, figuresFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := parseFigures(dir, file)
	if err != nil || f.Session.Address == to {
		return nil // a damaged file is drift, and the next apply writes it again
	}
	if _, ok := untouched(file, r.summer()); !ok { // the new sum must not confirm what was edited, or what another key has hashed
		made := r.body(dir, f.Session, f.Slice)
		f.Body = &made
	}
	f.Session.Address = to
	return r.writeFigures(dir, f)
}
