package process

import (
	"context"
	"os"
	"path/filepath"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the session's programs should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	dir, err := filepath.Abs(r.Folder(s.ID))
	if err != nil {
		return runtime.Interior{}, err
	}
	f, unread := readFigures(dir)
	interior, err := r.InteriorAt(dir, s.Session, unread == nil && f.CUDA) // even if the files of the disguise are missing
	interior.Env = environment(dir, s.Session, s.SliceID())
	return interior, err
}

func (r Runtime) writeManifest(dir string, cuda bool) error {
	libraries := []string{driver.NVML}
	var counted []string
	if cuda {
		libraries, counted = append(libraries, driver.CUDA), []string{disguise.UsageFile}
	}
	files, drivers := []string{disguise.FiguresFile, disguise.RealDir}, []string{}
	for _, library := range libraries {
		behind, err := os.Readlink(filepath.Join(dir, disguise.RealDir, library))
		if err != nil {
			return err
		}
		files = append(files, filepath.Join(disguise.LibraryDir, library), filepath.Join(disguise.LibraryDir, disguise.Short(library)))
		drivers = append(drivers, behind)
	}
	if _, err := os.Lstat(filepath.Join(dir, disguise.PythonDir)); err == nil {
		files = append(files, disguise.PythonDir)
	}
	return disguise.WriteManifest(dir, r.Version, files, counted, drivers)
}

// Altered lists what has changed in the session's folder, and in the driver behind it, since the folder was written.
func (r Runtime) Altered(_ context.Context, s resource.PriorSession) (map[string]string, error) {
	return disguise.Altered(r.Folder(s.ID))
}
