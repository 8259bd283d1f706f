package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sys/unix"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// way is how a container gets access to a slice.
type way int

const (
	noWay way = iota
	byMount
	byEngine  // a CDI device, injected by the engine
	byRuntime // a CDI device, injected by NVIDIA's container runtime
	byHook    // what docker run --gpus does
)

// access is the chosen way, with its name in plan and doctor.
type access struct {
	way   way
	words string
}

// nvidiaRuntime is the name under which NVIDIA's toolkit registers its runtime.
const nvidiaRuntime = "nvidia"

// access chooses how containers get access to slices. cosplay's own CDI device is preferred: after an update of the
// driver or a reboot, cosplay only writes the device's specification again, and the container stays.
func (r Runtime) access() access {
	e := r.Engine
	_, registered := e.info.Runtimes[nvidiaRuntime]
	switch {
	case r.SimDir != "":
		return access{byMount, "simulated library by mount"}
	case e.ignoresDevices():
		return access{noWay, "none: " + e.Name() + " ignores requests for devices"}
	case e.injects() && cdi.Writable(e.specs):
		return access{byEngine, "CDI by the engine"}
	case registered && cdi.Writable(e.specs):
		return access{byRuntime, "CDI by NVIDIA's runtime"}
	case hookInstalled() && !e.podman:
		return access{byHook, "--gpus (NVIDIA's hook), disguised by LD_LIBRARY_PATH"}
	case (registered || e.podman || len(e.info.CDISpecDirs) > 0) && !cdi.Writable(e.specs):
		return access{noWay, "none: " + e.specs + " cannot be written"}
	}
	return access{noWay, "none: NVIDIA's container toolkit is not installed"}
}

// injects reports whether the engine reads CDI devices from the folder in which cosplay writes them.
func (e *Engine) injects() bool {
	dirs := e.info.CDISpecDirs
	if e.podman {
		dirs = podmanFolders
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return sameFolder(dir, e.specs) })
}

// sameFolder compares paths of folders that may not exist: /var/run is a link to /run.
func sameFolder(a, b string) bool {
	resolve := func(path string) string {
		if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			return filepath.Join(parent, filepath.Base(path))
		}
		return filepath.Clean(path)
	}
	return resolve(a) == resolve(b)
}

// hookInstalled reports whether NVIDIA's toolkit is on this machine. An engine that was
// started before the toolkit was installed reports an error at create.
func hookInstalled() bool {
	_, err := exec.LookPath("nvidia-container-runtime-hook")
	return err == nil
}

// usable is an error in words where there is no way.
func (a access) usable() error {
	switch {
	case a.way != noWay:
		return nil
	case strings.Contains(a.words, "cannot be written"):
		return fmt.Errorf("containers have no access to slices here (%s). Fix: run cosplay as root, "+
			"or install the hook of NVIDIA's container toolkit: apt-get install nvidia-container-toolkit", a.words)
	}
	fix := installToolkit
	if strings.Contains(a.words, "ignores") {
		fix = "install podman " + podmanDevices + " or later. " + withoutDocker
	}
	return errors.New("containers have no access to slices here (" + a.words + "). Fix: " + fix)
}

// Reaches returns an error if containers have no access to slices.
func (r Runtime) Reaches() error { return r.Engine.reword(r.access().usable()) }

// grant is what a container is created with for its slice.
type grant struct {
	mounts  []mount.Mount
	visible string // NVIDIA_VISIBLE_DEVICES of the container itself; "" leaves it to the engine
	runtime string // "" is the engine's default
	devices []container.DeviceRequest
	env     map[string]string // for every program of the session
	cuda    bool              // the container gets the CUDA driver, too, behind a facade
}

// grant writes the specification of the CDI device if the way needs one, and returns what the container is created
// with. cuda asks for the disguise of CUDA, if the host has a CUDA driver.
func (r Runtime) grant(ctx context.Context, a access, s resource.Session, given resource.Handle, cuda bool) (grant, error) {
	// If NVIDIA's runtime is the engine's default, it injects the GPUs that the image
	// names in this variable; "void" means none.
	g := grant{visible: "void"}
	library, err := r.library()
	if err == nil {
		g.env, err = r.python(ctx, s)
	}
	if err != nil {
		return g, err
	}
	fronts := map[string]string{driver.NVML: filepath.Join(r.inside(s.ID), facadeFile)}
	if cuda {
		fronts[driver.CUDA] = filepath.Join(r.inside(s.ID), cudaFacadeFile)
	}
	switch a.way {
	case byEngine, byRuntime:
		device := cdi.Qualified(r.device(s.ID))
		if err := r.writeDevice(s, given, library, fronts); err != nil {
			return g, err
		}
		g.cuda = cuda
		if a.way == byRuntime {
			g.runtime, g.visible = nvidiaRuntime, device
		} else {
			g.devices = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: []string{device}}}
		}
		return g, nil
	case byHook:
		g.visible = ""
		g.devices = []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: uuids(s.Devices(given)),
			Capabilities: [][]string{{"gpu", "compute", "utility"}}}}
		// The hook mounts the driver's libraries over the facades, so the loader has to
		// find the facades in another folder first.
		path, err := r.libraryPath(ctx, s)
		if err != nil {
			return g, err
		}
		g.env[loaderPath] = path
	case byMount, noWay: // the libraries alone
	}
	libraries := []cdi.Library{{Path: library, Soname: driver.NVML}}
	if path := disguise.CUDALibrary(library); cuda && path != "" {
		g.cuda = true
		libraries = append(libraries, cdi.Library{Path: path, Soname: driver.CUDA})
	}
	g.mounts, err = r.driverMounts(libraries, fronts)
	return g, err
}

// driverMounts are libraries of the driver with the facades in front, and the state of a simulated host.
func (r Runtime) driverMounts(libraries []cdi.Library, fronts map[string]string) ([]mount.Mount, error) {
	// By the names that the loader uses: after an update of the driver they are links to
	// other files, which the container gets when it starts again.
	for _, l := range libraries {
		if _, err := os.Stat(l.Path); err != nil {
			return nil, fmt.Errorf("the host's %s: %w", l.Soname, err)
		}
	}
	var all []mount.Mount
	for _, m := range cdi.Mounts(libraries, fronts) {
		all = append(all, bind(m.Host, m.Container, true))
	}
	if r.SimDir == "" {
		return all, nil
	}
	dir, err := filepath.Abs(r.SimDir)
	// Programs write into the state of the simulated host, and cannot change the libraries.
	return append(all, bind(dir, dir, true), bind(sim.StatePath(dir), sim.StatePath(dir), false)), err
}

// loaderPath is the variable with the folders where the loader looks first.
const loaderPath = "LD_LIBRARY_PATH"

// libraryPath is the facade's folder, followed by the value of the variable that the user or the image sets.
func (r Runtime) libraryPath(ctx context.Context, s resource.Session) (string, error) {
	facades := inContainer(path.Dir(facadeFile))
	rest, err := r.otherwise(ctx, s, loaderPath)
	if err != nil || rest == "" { // an empty part would mean the current folder
		return facades, err
	}
	return facades + ":" + rest, nil
}

// otherwise is the value of a variable without cosplay: the user's, or else the image's. A
// missing image is reported when the container is created.
func (r Runtime) otherwise(ctx context.Context, s resource.Session, variable string) (string, error) {
	if value, asked := s.Environ()[variable]; asked {
		return value, nil
	}
	ctx, cancel := soon(ctx)
	defer cancel()
	image, err := r.Engine.image(ctx, s.Spec.Image)
	if err != nil && !errdefs.IsNotFound(err) {
		return "", r.Engine.explain("looking at the image "+s.Spec.Image, err, about(s, 0))
	}
	value := ""
	for _, set := range image.env {
		if v, is := strings.CutPrefix(set, variable+"="); is {
			value = v
		}
	}
	return value, nil
}

// python are the variables by which Python finds its part of the disguise, if the session has one.
func (r Runtime) python(ctx context.Context, s resource.Session) (map[string]string, error) {
	env := map[string]string{}
	if !disguise.NeedsPython(s) {
		return env, nil
	}
	otherwise, err := r.otherwise(ctx, s, disguise.PythonVariable)
	maps.Copy(env, disguise.PythonPath(s, initd.Dir, otherwise))
	return env, err
}

func (r Runtime) library() (string, error) {
	if r.Library == "" {
		return disguise.SystemLibrary()
	}
	return r.Library, nil
}

func bind(source, target string, readOnly bool) mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: readOnly}
}

// device is the name of the CDI device of a session. It contains the lineage, since all projects of a machine share
// the folder of specifications, and may have sessions with equal names.
func (r Runtime) device(session string) string {
	return r.called(session) + "-" + short(r.Owner.Lineage)
}

func uuids(devices []resource.Handle) []string {
	var all []string
	for _, d := range devices {
		all = append(all, d.UUID)
	}
	return all
}

// nodes are those of all slices of a session; what they share is there once.
func (r Runtime) nodes(s resource.Session, given resource.Handle) ([]cdi.File, error) {
	var all []cdi.File
	for _, part := range s.Slices() {
		pci, err := pciAddress(r.Engine.driver.Root, part.GPU)
		if err != nil {
			return nil, err
		}
		slice := cdi.Slice{PCI: pci}
		if !part.Whole() {
			slice.GPUInstance, slice.ComputeInstance = &given.GPUInstance, &given.ComputeInstance
		}
		nodes, err := r.Engine.driver.Nodes(slice)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(nodes, func(n cdi.File) bool { return slices.Contains(all, n) })...)
	}
	return all, nil
}

// writeDevice writes the specification of the session's CDI device: the nodes of its
// slices, the driver's libraries with the facades in front, its programs.
func (r Runtime) writeDevice(s resource.Session, given resource.Handle, library string, fronts map[string]string) error {
	d := r.Engine.driver
	nodes, err := r.nodes(s, given)
	if err != nil {
		return err
	}
	version, err := driverVersion(d.Root, library)
	if err != nil {
		return err
	}
	libraries, err := cdi.Libraries(library, version)
	if err != nil {
		return err
	}
	_, err = cdi.Write(r.Engine.specs, r.device(s.ID), cdi.Edits{Nodes: nodes, Mounts: append(cdi.Mounts(libraries, fronts), d.Tools()...)})
	return err
}

// removeDevice removes the specification of a session's device, if there is one.
func (r Runtime) removeDevice(session string) error {
	if r.SimDir != "" {
		return nil
	}
	if err := unix.Access(r.Engine.specs, unix.F_OK); err != nil {
		return nil
	}
	return cdi.Remove(r.Engine.specs, r.device(session))
}

// pciAddress finds a GPU among those that the driver shows in the kernel's files.
func pciAddress(root, uuid string) (string, error) {
	files, err := filepath.Glob(filepath.Join("/", root, "proc/driver/nvidia/gpus/*/information"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("find GPU %s: %w", uuid, err)
		}
		for line := range strings.Lines(string(data)) {
			if key, value, _ := strings.Cut(line, ":"); key == "GPU UUID" && strings.TrimSpace(value) == uuid {
				return filepath.Base(filepath.Dir(file)), nil
			}
		}
	}
	return "", fmt.Errorf("the NVIDIA driver shows no GPU %s in /proc/driver/nvidia/gpus; nvidia-smi -L lists the GPUs", uuid)
}

// driverVersion is in the name of the NVML library's file, or else in a file of the kernel.
func driverVersion(root, library string) (string, error) {
	if version := disguise.DriverVersion(library); version != "" {
		return version, nil
	}
	data, err := os.ReadFile(filepath.Join("/", root, "sys/module/nvidia/version"))
	if err != nil {
		return "", fmt.Errorf("the version of the NVIDIA driver cannot be read: %w. Fix: load the driver (nvidia-smi shows whether it is)", err)
	}
	return cmp.Or(strings.TrimSpace(string(data)), "unknown"), nil
}
