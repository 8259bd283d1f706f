package docker

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the session's programs are to find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	if err := disguise.WriteProbes(r.inside(s.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) { // Exec tells that the container is gone
		return runtime.Interior{}, err
	}
	return runtime.Interior{
		Env: r.config(s.Session, s.SliceID(), nil).Env,
		Who: path.Join(initd.Dir, driver.Who), Probe: path.Join(initd.Dir, driver.Probe),
	}, nil
}

// Altered tells what of the session's folder, of the driver behind it and of the
// container's mounts is not as cosplay made it.
func (r Runtime) Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error) {
	all, err := disguise.Altered(r.folder(s.ID))
	if err != nil {
		return nil, err
	}
	return all, nil
}

var _ = filepath.Join
var _ = verify.MountsCheck
