package process

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the session's programs are to find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	dir, err := filepath.Abs(filepath.Join(r.Base, s.ID))
	if err != nil {
		return runtime.Interior{}, err
	}
	if err := disguise.WriteProbes(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // Exec tells that the folder is gone
		return runtime.Interior{}, err
	}
	return runtime.Interior{
		Env: environment(dir, s.Session, s.SliceID()),
		Who: filepath.Join(dir, driver.Who), Probe: filepath.Join(dir, driver.Probe),
	}, nil
}

// Altered tells what of the session's folder, and of the driver behind it, is not
// as it was when the folder was written.
func (r Runtime) Altered(_ context.Context, s resource.PriorSession) (map[string]string, error) {
	return disguise.Altered(filepath.Join(r.Base, s.ID))
}
