package process

import (
	"errors"
	"io/fs"
	"path/filepath"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Readdress writes the address that a session has now into its folder, for a state
// that is rebuilt. A folder that does not exist is no error.
func (r Runtime) Readdress(session string, to resource.Address) error {
	if err := runtime.CheckSession(session); err != nil {
		return err
	}
	dir := filepath.Join(r.Base, session)
	f, err := readFigures(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errDamaged), err == nil && f.Session.Address == to:
		return nil // what is damaged is drift, and the next apply writes it again
	case err != nil:
		return err
	}
	f.Session.Address = to
	return r.writeFigures(dir, f)
}
