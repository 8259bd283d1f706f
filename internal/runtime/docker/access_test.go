package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cosplay/internal/cdi"
	"cosplay/internal/enginetest"
	"cosplay/internal/inside"
	"cosplay/internal/need"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

func TestAccess(t *testing.T) {
	writable, locked := t.TempDir(), "/dev/null/cdi"
	registered := system.Info{Runtimes: map[string]system.RuntimeWithStatus{nvidiaRuntime: {}}}
	hook := t.TempDir()
	check(t, os.WriteFile(filepath.Join(hook, "nvidia-container-runtime-hook"), nil, 0o755))
	for _, c := range []struct {
		name   string
		info   system.Info
		specs  string
		path   string
		simDir string
		way    way
		words  string
		next   string // of the error
	}{
		{"simulated", registered, writable, hook, "/sim", byMount, "simulated library by mount", ""},
		{"engine", system.Info{CDISpecDirs: []string{"/etc/cdi", writable}, Runtimes: registered.Runtimes}, writable, hook, "", byEngine, "CDI by the engine", ""},
		{"engine with another folder", system.Info{CDISpecDirs: []string{"/etc/cdi"}}, writable, hook, "", byHook, "--gpus (NVIDIA's hook), disguised by LD_LIBRARY_PATH", ""},
		{"runtime", registered, writable, hook, "", byRuntime, "CDI by NVIDIA's runtime", ""},
		{"runtime and no right to write", registered, locked, hook, "", byHook, "--gpus (NVIDIA's hook), disguised by LD_LIBRARY_PATH", ""},
		{"runtime alone and no right to write", registered, locked, "", "", noWay, "none: /dev/null/cdi cannot be written", "run cosplay as root"},
		{"hook", system.Info{}, writable, hook, "", byHook, "--gpus (NVIDIA's hook), disguised by LD_LIBRARY_PATH", ""},
		{"nothing", system.Info{}, writable, "", "", noWay, "none: NVIDIA's container toolkit is not installed", "nvidia-ctk runtime configure"},
	} {
		t.Setenv("PATH", c.path)
		r := Runtime{Engine: &Engine{info: c.info}, Sessions: inside.Sessions{Host: runtime.Host{SimDir: c.simDir}, Specs: c.specs}}
		got := r.access()
		if got.way != c.way || got.words != c.words {
			t.Errorf("%s: %+v", c.name, got)
		}
		if err := got.usable(); (err == nil) != (c.next == "") || (err != nil && !strings.Contains(err.Error(), c.next)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	podman := Runtime{Engine: &Engine{podman: true, info: system.Info{ServerVersion: "4.3.1"}}, Sessions: inside.Sessions{Specs: cdi.Dir}}
	if got := podman.access().usable(); got == nil || !strings.Contains(got.Error(), "Podman 4.3.1 ignores requests for devices). Fix: install podman 5.4") {
		t.Errorf("an old podman: %v", got)
	}
	podman.Engine.info.ServerVersion = "5.4.2"
	if got := podman.Engine.injects(cdi.Dir); !got {
		t.Error("podman, which does not report its folders, counts as an engine without CDI")
	}
	t.Setenv("PATH", hook)
	podman.Specs = locked
	if got := podman.access(); got.way != noWay {
		t.Errorf("podman ignores requests for NVIDIA's hook, and gets %+v", got)
	}
	if err := podman.Reaches(); err == nil || !strings.Contains(err.Error(), "run cosplay as root") || strings.Contains(err.Error(), "hook") {
		t.Errorf("it says %v", err)
	}
	if !sameFolder("/var/run/cdi", "/run/cdi") || sameFolder("/var/run/cdi", "/etc/cdi") {
		t.Error("folders are not distinguished")
	}
}

const driverRelease = "550.163.01"

// hardware is onMachine with a separate engine.
func hardware(t *testing.T, e *enginetest.Engine, specs string) *world {
	t.Helper()
	e.Load(t, "tiny")
	connected, err := connect(context.Background(), endpoint{host: e.Host})
	check(t, err)
	t.Cleanup(func() { connected.Close() })
	w := onMachine(t, connected, specs)
	w.s.Spec.Image = "tiny"
	return w
}

// onMachine is a runtime with an engine, on a machine with the files of a GPU and a MIG slice.
func onMachine(t *testing.T, connected *Engine, specs string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{Runtime: Runtime{Engine: connected, Sessions: inside.Sessions{
		Host: runtime.Host{Folders: filepath.Join(dir, "sessions"), Name: hostName, Shown: inside.Dir,
			Owner: resource.Owner{Lineage: random(), Key: "key"}, Library: install(t, filepath.Join(dir, "lib"))},
		Specs: specs, Driver: cdi.Driver{Root: filepath.Join(dir, "root")},
	}}}
	t.Cleanup(func() { w.sweep(t) })
	const gpu, caps = "proc/driver/nvidia/gpus/0000:84:00.0/information", "proc/driver/nvidia/capabilities/gpu1/mig/gi9/"
	for path, text := range map[string]string{
		gpu:                 "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-0\nDevice Minor: \t 1\n",
		caps + "access":     "DeviceFileMinor: 84\n",
		caps + "ci0/access": "DeviceFileMinor: 85\n",
	} {
		path = filepath.Join(w.Driver.Root, path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for _, node := range []string{"nvidiactl", "nvidia-uvm", "nvidia1", "nvidia-caps/nvidia-cap84", "nvidia-caps/nvidia-cap85"} {
		path := filepath.Join(w.Driver.Root, "dev", node)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))) // as /dev/null
	}
	w.s = w.session(t, "one")
	w.s.Spec.SSH.Enabled = false
	w.given = resource.Handle{GPUInstance: 9, ComputeInstance: 0, UUID: "MIG-1"}
	return w
}

// install makes a driver's libraries and gives the path of NVML's.
func install(t *testing.T, folder string) string {
	t.Helper()
	check(t, os.MkdirAll(folder, 0o755))
	for _, name := range []string{"libcuda", "libnvidia-ml"} {
		out, err := exec.Command("gcc", "-nostdlib", "-shared", "-Wl,-soname="+name+".so.1", "-x", "c", "/dev/null", "-o", filepath.Join(folder, name+".so."+driverRelease)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	link := filepath.Join(folder, "libnvidia-ml.so.1")
	check(t, os.Symlink("libnvidia-ml.so."+driverRelease, link))
	return link
}

// TestDevice: NVIDIA's own runtime gives a container its slice by our device; it
// lives on when the device's specification was lost, and the last is removed with it.
func TestDevice(t *testing.T) {
	specs := t.TempDir()
	e := enginetest.Start(t, enginetest.Options{Runtimes: map[string]string{nvidiaRuntime: enginetest.NVIDIARuntime(t, "cdi", specs)}})
	w := hardware(t, e, specs)
	made := w.prepare(t)
	look := func() {
		t.Helper()
		out, failed, code := w.exec(t, nil, "sh", "-c", `ls /dev/nvidia* /dev/nvidia-caps; for f in /usr/lib64 /usr/lib/x86_64-linux-gnu; do cmp $f/libnvidia-ml.so.1 /run/cosplay/lib/libnvidia-ml.so.1; done; ls /usr/lib64; stat -c %s /run/cosplay/driver/libnvidia-ml.so.1; env`)
		if code != 0 || failed != "" {
			t.Errorf("%d, %s", code, failed)
		}
		real, err := os.Stat(w.Library)
		check(t, err)
		lines := strings.Fields(out)
		for _, want := range []string{"/dev/nvidiactl", "/dev/nvidia1", "nvidia-cap84", "nvidia-cap85", "libcuda.so.1", "NVIDIA_VISIBLE_DEVICES=MIG-1", fmt.Sprint(real.Size())} {
			if !slices.Contains(lines, want) {
				t.Errorf("no %s in %s", want, out)
			}
		}
	}
	look()
	files, err := filepath.Glob(filepath.Join(specs, "*"))
	if err != nil || len(files) != 1 || !strings.Contains(files[0], w.s.BodyName()) {
		t.Fatalf("specifications: %v, %v", files, err)
	}
	check(t, w.Engine.client.ContainerKill(context.Background(), made.ID, "KILL"))
	check(t, os.Remove(files[0]))
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("after the loss of the specification: %+v, was %+v", again, made)
	}
	look()
	check(t, unprepare(context.Background(), w.Runtime, w.s.ID))
	if left, _ := filepath.Glob(filepath.Join(specs, "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}

	// An engine that injects devices itself is asked for the same one.
	g, err := w.grant(context.Background(), access{way: byEngine}, w.s, w.given, true)
	check(t, err)
	if len(g.devices) != 1 || g.devices[0].Driver != "cdi" || !slices.Equal(g.devices[0].DeviceIDs, []string{w.device(w.s.ID).Qualified()}) || g.runtime != "" || len(g.Mounts) != 0 {
		t.Errorf("granted: %+v", g)
	}

	// Another project's session of the same name has another device.
	other := w.Runtime
	other.Owner.Lineage = "0123456789abcdef"
	_, err = other.grant(context.Background(), access{way: byEngine}, w.s, w.given, true)
	check(t, err)
	if files, _ := filepath.Glob(filepath.Join(specs, "*-0123456789ab.json")); len(files) != 1 {
		t.Errorf("another project's is not there")
	}
	check(t, other.RemoveDevice(other.device(w.s.ID)))
	if files, _ := filepath.Glob(filepath.Join(specs, "*")); len(files) != 1 || !strings.Contains(files[0], w.Owner.Lineage) {
		t.Errorf("there are %v", files)
	}
	check(t, w.RemoveDevice(w.device(w.s.ID)))

	w.s.Slice.GPU = "GPU-elsewhere"
	_, err = w.Prepare(context.Background(), w.s, w.given)
	if err == nil || !strings.Contains(err.Error(), "shows no GPU GPU-elsewhere") || len(w.labelled(t)) != 0 {
		t.Errorf("a GPU that is not there: %v", err)
	}
}

// TestEngineDevice: an engine that injects devices gives a container its slice by cosplay's device.
func TestEngineDevice(t *testing.T) {
	e := engine(t)
	if !e.injects(cdi.Dir) || e.ignoresDevices() || !cdi.Writable(cdi.Dir) {
		t.Skip("this engine injects no devices")
	}
	busybox(t, e)
	w := onMachine(t, e, cdi.Dir)
	w.prepare(t)
	out, failed, _ := w.exec(t, nil, "sh", "-c", "echo /dev/nvidia* /dev/nvidia-caps/*; ls /usr/lib64")
	for _, want := range []string{"/dev/nvidiactl", "/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap84", "/dev/nvidia-caps/nvidia-cap85", "libcuda.so.1", "libnvidia-ml.so.1"} {
		if !slices.Contains(strings.Fields(out), want) {
			t.Errorf("no %s in %s%s", want, out, failed)
		}
	}
}

// TestHook: without devices NVIDIA's hook is asked, as docker run --gpus does.
func TestHook(t *testing.T) {
	hook := enginetest.RecordingHook(t)
	e := enginetest.Start(t, enginetest.Options{Path: []string{hook.Dir}})
	t.Setenv("PATH", hook.Dir+":"+os.Getenv("PATH"))
	w := hardware(t, e, "/dev/null/cdi")
	w.prepare(t)
	if got := hook.Requests(t); !slices.Equal(got, []string{"MIG-1"}) {
		t.Errorf("the hook was asked for %q", got)
	}
	if _, failed, code := w.exec(t, nil, "cmp", "/usr/lib64/libnvidia-ml.so.1", "/run/cosplay/lib/libnvidia-ml.so.1"); code != 0 {
		t.Errorf("the facade: %s", failed)
	}
	// NVIDIA's hook mounts its libraries over that, so the loader needs the variable.
	path := func() string {
		t.Helper()
		out, _, _ := w.exec(t, nil, "sh", "-c", "echo $LD_LIBRARY_PATH; ls ${LD_LIBRARY_PATH%%:*}")
		path, files, _ := strings.Cut(strings.TrimSpace(out), "\n")
		if files != "libnvidia-ml.so.1" {
			t.Errorf("in the first folder of %s: %s", path, files)
		}
		return path
	}
	if got := path(); got != "/run/cosplay/lib" {
		t.Errorf("neither image nor user has one: %s", got)
	}
	e.Load(t, "pathed", "ENV LD_LIBRARY_PATH=/image")
	w.s.Spec.Image = "pathed"
	w.prepare(t)
	if got := path(); got != "/run/cosplay/lib:/image" {
		t.Errorf("the image has one: %s", got)
	}
	w.s.Env[resource.LoaderVariable] = "/mine"
	w.prepare(t)
	if got := path(); got != "/run/cosplay/lib:/mine" {
		t.Errorf("the user has one: %s", got)
	}
	w.s.Env, w.s.Spec.Image = nil, "nowhere"
	if _, err := w.Prepare(context.Background(), w.s, w.given); err == nil || !strings.Contains(err.Error(), "there is no image nowhere") {
		t.Errorf("no image: %v", err)
	}
}

func TestHookThatFails(t *testing.T) {
	hook := enginetest.FailingHook(t, "MIG-1")
	e := enginetest.Start(t, enginetest.Options{Path: []string{hook.Dir}})
	t.Setenv("PATH", hook.Dir+":"+os.Getenv("PATH"))
	w := hardware(t, e, "/dev/null/cdi")
	_, err := w.Prepare(context.Background(), w.s, w.given)
	if err == nil || !strings.Contains(err.Error(), "NVIDIA's hook refuses the slice (device error: MIG-1: unknown device") || len(w.labelled(t)) != 0 {
		t.Errorf("%v, left %v", err, w.labelled(t))
	}
}

// TestNoDriver: an engine that was started before the toolkit was there.
func TestNoDriver(t *testing.T) {
	w := newWorld(t)
	e := w.Engine
	hook := t.TempDir()
	check(t, os.WriteFile(filepath.Join(hook, "nvidia-container-runtime-hook"), nil, 0o755))
	t.Setenv("PATH", hook+":"+os.Getenv("PATH"))
	if _, knows := e.info.Runtimes[nvidiaRuntime]; knows {
		need.Lacking(t, "this machine has NVIDIA's toolkit")
	}
	w.SimDir, w.Specs = "", "/dev/null/cdi"
	_, err := w.Prepare(context.Background(), w.s, w.given)
	words := "no way to give a container a GPU"
	if e.ignoresDevices() {
		t.Skip("this engine gives no devices")
	}
	if e.podman { // it ignores the request, so cosplay must not make it
		words = "containers have no access to slices here (none: /dev/null/cdi cannot be written). Fix: run cosplay as root"
	}
	if err == nil || !strings.Contains(err.Error(), words) || len(w.labelled(t)) != 0 {
		t.Errorf("%v, left %v", err, w.labelled(t))
	}
	w.Engine.info.Runtimes[nvidiaRuntime], w.Specs = system.RuntimeWithStatus{}, t.TempDir()
	w.Driver.Root = t.TempDir()
	if _, err := w.Prepare(context.Background(), w.s, w.given); err == nil || !strings.Contains(err.Error(), "the NVIDIA driver shows no GPU") {
		t.Errorf("without a driver: %v", err)
	}
}

// TestHookOfSeveralGPUs: NVIDIA's hook is asked for all GPUs of a session.
func TestHookOfSeveralGPUs(t *testing.T) {
	s := resource.Session{
		ID: "one", Slice: resource.Slice{Host: hostName, GPU: "GPU-2"}, More: []resource.Slice{{Host: hostName, GPU: "GPU-0"}},
		Program: resource.Program{Env: map[string]string{resource.LoaderVariable: "/mine"}},
	}
	r := Runtime{Engine: &Engine{}, Sessions: inside.On(runtime.Host{Folders: t.TempDir(), Library: install(t, t.TempDir())})}
	g, err := r.grant(context.Background(), access{way: byHook}, s, resource.Handle{UUID: "GPU-2"}, true)
	check(t, err)
	if len(g.devices) != 1 || !slices.Equal(g.devices[0].DeviceIDs, []string{"GPU-2", "GPU-0"}) {
		t.Errorf("the hook is asked for %+v", g.devices)
	}
}
