package process

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"cosplay/internal/resource"
)

// Remains tells of each session that has a folder, as far as the folder can be
// read. The folders are the project's own.
func (r Runtime) Remains(ctx context.Context) ([]resource.Remains, error) {
	found, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []resource.Remains
	for _, c := range found {
		one := resource.Remains{Session: resource.Session{ID: c.Session, Runtime: name}, Container: c, Proven: true}
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
