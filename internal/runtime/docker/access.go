package docker

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"cosplay/internal/cdi"
	"cosplay/internal/inside"
	"cosplay/internal/resource"
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

// access is the chosen way, with its name in plan and doctor, and where there is none, what fixes that.
type access struct {
	way   way
	words string
	fix   string
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
		return access{way: byMount, words: "simulated library by mount"}
	case e.ignoresDevices():
		return access{words: "none: " + e.Name() + " ignores requests for devices",
			fix: "install podman " + podmanDevices + " or later. " + withoutDocker}
	case e.injects(r.Specs) && cdi.Writable(r.Specs):
		return access{way: byEngine, words: "CDI by the engine"}
	case registered && cdi.Writable(r.Specs):
		return access{way: byRuntime, words: "CDI by NVIDIA's runtime"}
	case hookInstalled() && !e.podman:
		return access{way: byHook, words: "--gpus (NVIDIA's hook), disguised by LD_LIBRARY_PATH"}
	case (registered || e.podman || len(e.info.CDISpecDirs) > 0) && !cdi.Writable(r.Specs):
		return access{words: "none: " + r.Specs + " cannot be written", fix: "run cosplay as root, " +
			"or install the hook of NVIDIA's container toolkit: apt-get install nvidia-container-toolkit"}
	}
	return access{words: "none: NVIDIA's container toolkit is not installed", fix: installToolkit}
}

// injects reports whether the engine reads CDI devices from the folder in which cosplay writes them.
func (e *Engine) injects(specs string) bool {
	dirs := e.info.CDISpecDirs
	if e.podman {
		dirs = podmanFolders
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return sameFolder(dir, specs) })
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
	if a.way != noWay {
		return nil
	}
	return fmt.Errorf("containers have no access to slices here (%s). Fix: %s", a.words, a.fix)
}

// Reaches returns an error if containers have no access to slices.
func (r Runtime) Reaches() error { return r.Engine.reword(r.access().usable()) }

// grant is what a container is created with for its slice.
type grant struct {
	inside.Grant
	visible string // NVIDIA_VISIBLE_DEVICES of the container itself; "" leaves it to the engine
	runtime string // "" is the engine's default
	devices []container.DeviceRequest
}

// grant writes the specification of the CDI device if the way needs one, and returns what the container is created
// with. cuda asks for the disguise of CUDA, if the host has a CUDA driver.
func (r Runtime) grant(ctx context.Context, a access, s resource.Session, given resource.Handle, cuda bool) (grant, error) {
	// If NVIDIA's runtime is the engine's default, it injects the GPUs that the image
	// names in this variable; "void" means none.
	g := grant{visible: "void"}
	// NVIDIA's hook mounts the driver's libraries over the facades.
	env, err := r.Finding(s, a.way == byHook, func(variable string) (string, error) { return r.imageValue(ctx, s, variable) })
	if err != nil {
		return g, err
	}
	switch device := r.device(s.ID); a.way {
	case byEngine, byRuntime:
		g.CUDA, err = cuda, r.WriteDevice(device, s, given, cuda)
		if a.way == byRuntime {
			g.runtime, g.visible = nvidiaRuntime, device.Qualified()
		} else {
			g.devices = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: []string{device.Qualified()}}}
		}
	case byHook:
		g.visible = ""
		g.devices = []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: uuids(s.Devices(given)),
			Capabilities: [][]string{{"gpu", "compute", "utility"}}}}
		fallthrough
	case byMount, noWay: // the libraries alone
		g.Grant, err = r.Libraries(s.ID, cuda)
	}
	g.Env = env
	return g, err
}

// imageValue is the value that the image of a session sets for a variable. A missing image is reported when the
// container is created.
func (e *Engine) imageValue(ctx context.Context, s resource.Session, variable string) (value string, err error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	image, err := e.image(ctx, s.Spec.Image)
	if err != nil && !errdefs.IsNotFound(err) {
		return "", e.explain("looking at the image "+s.Spec.Image, err, about(s, 0))
	}
	for _, set := range image.env {
		if v, is := strings.CutPrefix(set, variable+"="); is {
			value = v
		}
	}
	return value, nil
}

// bind is a mount of a container as the engine takes it.
func bind(f cdi.File) mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: f.Host, Target: f.Container, ReadOnly: !f.Writable}
}

// device is the name of the CDI device of a session. It contains the lineage, since all projects of a machine share
// the folder of specifications, and may have sessions with equal names.
func (r Runtime) device(session string) cdi.Device {
	return cdi.Device{Vendor: cdi.Own, Name: r.called(session) + "-" + short(r.Owner.Lineage)}
}

func uuids(devices []resource.Handle) []string {
	var all []string
	for _, d := range devices {
		all = append(all, d.UUID)
	}
	return all
}
