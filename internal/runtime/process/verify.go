package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the session's programs should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	dir, err := filepath.Abs(filepath.Join(r.Base, s.ID))
	if err != nil {
		return runtime.Interior{}, err
	}
	if err := disguise.WriteProbes(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // Exec reports a missing folder
		return runtime.Interior{}, err
	}
	interior := runtime.Interior{
		Env: environment(dir, s.Session, s.SliceID()),
		Who: filepath.Join(dir, driver.Who), Probe: filepath.Join(dir, driver.Probe),
	}
	if f, err := readFigures(dir); err == nil && f.CUDA { // even if the files of the disguise are missing
		interior.UsageFile = filepath.Join(dir, disguise.UsageFile)
	}
	if disguise.NeedsPython(s.Session) {
		interior.PythonIn = filepath.Join(dir, disguise.PythonDir)
	}
	return interior, nil
}

func (r Runtime) seal(dir string, cuda bool) error {
	libraries := []string{driver.NVML}
	var counted []string
	if cuda {
		libraries, counted = append(libraries, driver.CUDA), []string{disguise.UsageFile}
	}
	files, drivers := []string{disguise.FiguresFile}, []string{}
	for _, library := range libraries {
		link := filepath.Join("real", library)
		behind, err := os.Readlink(filepath.Join(dir, link))
		if err != nil {
			return err
		}
		files = append(files, filepath.Join(libraryDir, library), filepath.Join(libraryDir, disguise.Short(library)), link)
		drivers = append(drivers, behind)
	}
	python, err := disguise.PythonPart(dir)
	if err != nil {
		return err
	}
	return disguise.Seal(dir, r.Version, append(files, python...), counted, drivers)
}

// Altered lists what has changed in the session's folder, and in the driver behind it, since the folder was written.
func (r Runtime) Altered(_ context.Context, s resource.PriorSession) (map[string]string, error) {
	return disguise.Altered(filepath.Join(r.Base, s.ID))
}
