package process

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"cosplay/internal/resource"
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
