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
	"cosplay/internal/resource"
)

// List lists the sessions that have a folder. If session.json was edited, the hash differs from that in the state.
func (r Runtime) List(context.Context) ([]resource.Body, error) {
	entries, err := os.ReadDir(r.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the session folders: %w", err)
	}
	var all []resource.Body
	l := lister{Runtime: r, inspector: disguise.Inspector{Version: r.Version}, summer: r.summer()}
	for _, e := range entries {
		dir := filepath.Join(r.Base, e.Name())
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
	inspector disguise.Inspector
	summer    hash.Hash
	buffer    []byte
}

// inspect reads the session in a folder, and which parts of it are damaged or outdated.
func (l *lister) inspect(dir string) (resource.Body, error) {
	folder, err := disguise.OpenFolder(dir)
	if err != nil {
		return resource.Body{}, err
	}
	defer folder.Close()
	c, err := l.listed(folder)
	if err != nil {
		return c, err
	}
	sight, err := l.inspector.Look(folder)
	c.Damaged, c.Outdated = sight.Damaged, sight.Outdated
	return c, err
}

func (l *lister) listed(folder disguise.Folder) (c resource.Body, err error) {
	if l.buffer, err = folder.Read(figuresFile, l.buffer); err != nil {
		return c, err
	}
	if c, ok := untouched(l.buffer, l.summer); ok && c.Session == filepath.Base(folder.Dir) {
		c.ID = folder.Dir // the project may have been moved
		return c, nil
	}
	f, err := parseFigures(folder.Dir, l.buffer)
	return l.body(folder.Dir, f.Session, f.Slice), err
}
