package inside

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// pipes is the folder of MPS in a container: programs find it without a variable.
const pipes = "/tmp/nvidia-mps"

// Grant is what a container gets for its slice.
type Grant struct {
	Mounts []cdi.File
	Env    map[string]string // for every program of the session
	CUDA   bool              // the container gets the CUDA driver, too, behind a facade
}

// Mounts are those of every container that cosplay creates: the session's folder, its workspace, and what its programs
// write. cuda is of its Grant.
func (in Sessions) Mounts(s resource.Session, cuda bool) []cdi.File {
	work := append([]cdi.File{{Host: s.Workspace, Container: initd.WorkDir, Writable: true}}, in.Cover(s.ID, s.Workspace, initd.WorkDir)...)
	own := in.own(s, cuda)
	return slices.Concat(own[:1], work, own[1:])
}

// own are the mounts of a session's folder, the first of them, and of what its programs write.
func (in Sessions) own(s resource.Session, cuda bool) []cdi.File {
	all := []cdi.File{{Host: in.Inside(s.ID), Container: initd.Dir}}
	writable := func(file string) {
		all = append(all, cdi.File{Host: filepath.Join(in.Inside(s.ID), file), Container: InContainer(file), Writable: true})
	}
	if cuda {
		writable(UsageFile)
	}
	if cuda && s.Emulates() {
		writable(reportFile)
	}
	if mps := (resource.MPS{Folder: s.MPS}); s.MPS != "" {
		all = append(all, cdi.File{Host: mps.Pipes(), Container: pipes, Writable: true})
	}
	return all
}

// Cover is a mount that hides the project's scratch folder, if it is in a folder that a session mounts at target. An
// empty folder covers it, and not a tmpfs, which podman fills with what it covers.
func (in Sessions) Cover(session, folder, target string) []cdi.File {
	own := in.ownFolder(folder)
	if own == "" {
		return nil
	}
	return []cdi.File{{Host: in.empty(session), Container: path.Join(target, filepath.ToSlash(own))}}
}

// scratch is the folder of a project's simulated hosts and session folders, which contain keys.
const scratch = ".cosplay"

// ownFolder is the path of the project's scratch folder in a workspace, "" if it is not there. No session should
// change it by accident.
func (in Sessions) ownFolder(workspace string) string {
	resolved := func(path string) string {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		return path
	}
	inside, err := filepath.Rel(resolved(workspace), resolved(in.Folders))
	if err != nil || !filepath.IsLocal(inside) {
		return ""
	}
	parts := strings.Split(inside, string(filepath.Separator))
	return filepath.Join(parts[:slices.Index(parts, scratch)+1]...)
}

// fronts are the facades in a session's folder, by the soname of the library that each covers.
func (in Sessions) fronts(session string, cuda bool) map[string]string {
	all := map[string]string{driver.NVML: filepath.Join(in.Inside(session), facadeFile)}
	if cuda {
		all[driver.CUDA] = filepath.Join(in.Inside(session), cudaFacadeFile)
	}
	return all
}

// Facades are the mounts of a session's facades under the names by which programs load the libraries.
func (in Sessions) Facades(session string, cuda bool) []cdi.File {
	var all []cdi.File
	for soname, front := range in.fronts(session, cuda) {
		for _, folder := range cdi.LoaderFolders() {
			all = append(all, cdi.File{Host: front, Container: path.Join(folder, soname)})
		}
	}
	return all
}

// Libraries are the driver's libraries with the facades in front, and the state of a simulated host, as mounts. cuda asks
// for the disguise of CUDA, if the host has a CUDA driver.
func (in Sessions) Libraries(session string, cuda bool) (g Grant, err error) {
	nvml, err := in.library()
	if err != nil {
		return g, err
	}
	libraries := []cdi.Library{{Path: nvml, Soname: driver.NVML}}
	if path := disguise.CUDALibrary(nvml); cuda && path != "" {
		g.CUDA = true
		libraries = append(libraries, cdi.Library{Path: path, Soname: driver.CUDA})
	}
	// By the names that the loader uses: after an update of the driver they are links to
	// other files, which the container gets when it starts again.
	for _, l := range libraries {
		if _, err := os.Stat(l.Path); err != nil {
			return g, fmt.Errorf("the host's %s: %w", l.Soname, err)
		}
	}
	g.Mounts = cdi.Mounts(libraries, in.fronts(session, cuda))
	if in.SimDir == "" {
		return g, nil
	}
	dir, err := filepath.Abs(in.SimDir)
	// Programs write into the state of the simulated host, and cannot change the libraries.
	g.Mounts = append(g.Mounts, cdi.File{Host: dir, Container: dir}, cdi.File{Host: sim.StatePath(dir), Container: sim.StatePath(dir), Writable: true})
	return g, err
}

func (in Sessions) library() (string, error) {
	if in.Library == "" {
		return disguise.SystemLibrary()
	}
	return in.Library, nil
}

// Finding are the variables by which Python finds its part of the disguise, if the session has one, and, where the
// facades are not in front of the driver's libraries, the loader finds them first. image gives the value that the image
// sets for a variable.
func (in Sessions) Finding(s resource.Session, facadesBehind bool, image func(variable string) (string, error)) (map[string]string, error) {
	value := func(variable string) (string, error) {
		if value, asked := s.Environ()[variable]; asked {
			return value, nil
		}
		return image(variable)
	}
	env := map[string]string{}
	if disguise.NeedsPython(s) {
		otherwise, err := value(disguise.PythonVariable)
		if err != nil {
			return env, err
		}
		env = disguise.PythonPath(s, initd.Dir, otherwise)
	}
	if facadesBehind {
		rest, err := value(resource.LoaderVariable)
		if err != nil {
			return env, err
		}
		env[resource.LoaderVariable] = InContainer(path.Dir(facadeFile))
		if rest != "" { // an empty part would mean the current folder
			env[resource.LoaderVariable] += ":" + rest
		}
	}
	return env, nil
}
