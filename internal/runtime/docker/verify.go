package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

func (r Runtime) sealFiles(session string, cuda bool) error {
	files := []string{facadeFile, figuresFile, filepath.Base(initd.ConfigPath)}
	var counted []string
	if cuda {
		files, counted = append(files, cudaFacadeFile), []string{filepath.Join(insideDir, usageFile)}
	}
	python, err := disguise.PythonPart(r.inside(session))
	if err != nil {
		return err
	}
	files = append(files, python...)
	private, err := os.ReadDir(filepath.Join(r.inside(session), privateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, file := range private {
		files = append(files, filepath.Join(privateDir, file.Name()))
	}
	for i := range files {
		files[i] = filepath.Join(insideDir, files[i])
	}
	return disguise.Seal(r.folder(session), r.Version, files, counted, r.drivers(cuda))
}

// drivers are the files of the driver behind the facades.
func (r Runtime) drivers(cuda bool) []string {
	nvml, err := r.library()
	if err != nil {
		return nil // it is reported where it is needed
	}
	libraries := []string{nvml}
	if cuda {
		libraries = append(libraries, disguise.CUDALibrary(nvml))
	}
	return slices.DeleteFunc(libraries, func(library string) bool { return !present(library) })
}

// Interior is what the session's programs should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	inside := r.inside(s.ID)
	if err := disguise.LinkProbes(r.Base, inside); err != nil && !errors.Is(err, fs.ErrNotExist) { // Exec reports a missing container
		return runtime.Interior{}, err
	}
	interior := runtime.Interior{
		OwnRoot: true, Env: r.config(s.Session, s.SliceID(), nil).Env,
		Who: path.Join(initd.Dir, driver.Who), Probe: path.Join(initd.Dir, driver.Probe),
	}
	if present(filepath.Join(inside, cudaFacadeFile)) {
		interior.UsageFile = filepath.Join(inside, usageFile)
	}
	if disguise.NeedsPython(s.Session) {
		interior.PythonIn = inContainer(disguise.PythonDir)
	}
	return interior, nil
}

// Altered lists what has changed in the session's folder, in the driver behind it and in the container's mounts.
func (r Runtime) Altered(ctx context.Context, s resource.PriorSession) (map[string]string, error) {
	all, err := disguise.Altered(r.folder(s.ID))
	if err != nil {
		return nil, err
	}
	there, err := r.find(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if there == nil {
		all[verify.MountsCheck] = "there is no container"
		return all, nil
	}
	if wrong := misplaced(there.Mounts, r.sealedMounts(s.Session, there)); len(wrong) > 0 {
		all[verify.MountsCheck] = strings.Join(wrong, "; ")
	}
	return all, nil
}

// sealedMounts are the mounts that the disguise and the user's work need.
func (r Runtime) sealedMounts(s resource.Session, there *container.InspectResponse) []mount.Mount {
	fronts := map[string]string{driver.NVML: facadeFile}
	cuda := counts(there)
	if cuda {
		fronts[driver.CUDA] = cudaFacadeFile
	}
	all := r.mounts(s, grant{cuda: cuda})
	if !mounts(there, reportFile) { // a container of an older cosplay goes on without a report
		all = slices.DeleteFunc(all, func(m mount.Mount) bool { return m.Target == inContainer(reportFile) })
	}
	if way := r.access().way; way != byMount && way != byHook {
		return all // the engine does not list the mounts of a device
	}
	for soname, file := range fronts {
		for _, folder := range cdi.LoaderFolders() {
			all = append(all, bind(filepath.Join(r.inside(s.ID), file), path.Join(folder, soname), true))
		}
	}
	return all
}

// misplaced lists the mounts that a container lacks or that differ.
func misplaced(there []container.MountPoint, wanted []mount.Mount) []string {
	has := map[string]container.MountPoint{}
	for _, m := range there {
		has[m.Destination] = m
	}
	var wrong []string
	for _, w := range wanted {
		m, is := has[w.Target]
		switch {
		case w.Type != mount.TypeBind:
		case is && m.Type == mount.TypeTmpfs && filepath.Base(w.Source) == emptyDir:
			// A container of an older cosplay: Docker keeps it empty, and podman lists no tmpfs.
		case !is:
			wrong = append(wrong, w.Target+" is not mounted")
		case m.Source != w.Source:
			wrong = append(wrong, w.Target+" comes from "+m.Source)
		case m.RW && w.ReadOnly:
			wrong = append(wrong, w.Target+" can be written to")
		case !m.RW && !w.ReadOnly:
			wrong = append(wrong, w.Target+" cannot be written to")
		}
	}
	return wrong
}
