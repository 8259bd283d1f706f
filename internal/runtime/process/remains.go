package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Remains reads each session folder as far as possible. All folders belong to the project.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	found, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []resource.Remains
	for _, c := range found {
		one := resource.Remains{Session: resource.Session{ID: c.Session, Runtime: name}, Body: c, Proven: true}
		switch f, err := readFigures(filepath.Join(r.Base, c.Session)); {
		case err == nil:
			one.Session = f.Session
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
	dir := filepath.Join(r.Base, session)
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
