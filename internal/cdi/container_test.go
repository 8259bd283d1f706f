package cdi

import (
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"

	"cosplay/internal/enginetest"
)

// way is a way to request the device for a container.
type way struct {
	name    string
	unknown string // part of the error message for a device that does not exist
	ask     func(device string, c *container.Config, h *container.HostConfig)
}

// byRuntime requests it from NVIDIA's container runtime.
func byRuntime(runtime string) way {
	const unknown = "failed to inject CDI devices: unresolvable CDI devices cosplay/session=unknown"
	return way{runtime, unknown, func(device string, c *container.Config, h *container.HostConfig) {
		h.Runtime = runtime
		c.Env = append(c.Env, "NVIDIA_VISIBLE_DEVICES="+device)
	}}
}

// byEngine requests it from the engine.
func byEngine() way {
	const unknown = "CDI device injection failed: unresolvable CDI devices cosplay/session=unknown"
	return way{"engine", unknown, func(device string, _ *container.Config, h *container.HostConfig) {
		h.DeviceRequests = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: []string{device}}}
	}}
}

// look prints what a container has: the devices, the environment, the mounts, and the libraries that a program loads
// by name.
const look = `find /dev -type c -o -type b; echo; env; echo; while read -r a b c d at rest; do echo "$at"; done </proc/self/mountinfo; echo; ` +
	`/probe libnvidia-ml.so.1 libnvidia-ml.so libcuda.so.1 libnvidia-ptxjitcompiler.so.1`

// seen is the output of look, sorted, in its four parts.
func seen(t *testing.T, out string) [4][]string {
	t.Helper()
	parts := strings.Split(out, "\n\n")
	if len(parts) != 4 {
		t.Fatalf("the container printed %q", out)
	}
	var all [4][]string
	for i, part := range parts {
		all[i] = strings.Split(strings.TrimSpace(part), "\n")
		slices.Sort(all[i])
	}
	return all
}

// added returns the lines of after that before does not have.
func added(before, after []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(after), func(s string) bool { return slices.Contains(before, s) }), "\n")
}

// TestContainer starts a container in every way that this machine's engine supports, and checks that it gets exactly
// what the specification contains.
func TestContainer(t *testing.T) {
	specs := t.TempDir()
	engine := enginetest.Start(t, enginetest.Options{SpecDirs: []string{specs}, Runtimes: map[string]string{
		"nvidia-cdi":  enginetest.NVIDIARuntime(t, "cdi", specs),
		"nvidia-auto": enginetest.NVIDIARuntime(t, "auto", specs),
	}})
	engine.Load(t, "tiny")
	ways := []way{byRuntime("nvidia-cdi"), byRuntime("nvidia-auto")}
	info, err := engine.Client.Info(context.Background())
	check(t, err)
	if len(info.CDISpecDirs) > 0 {
		ways = append(ways, byEngine())
	} else {
		t.Logf("engine %s takes no CDI devices itself; NVIDIA's runtime alone is tried", info.ServerVersion)
	}
	d := fakeDriver(t)
	_, err = write(specs, "worker-3", d.edits)
	check(t, err)
	config := container.Config{Image: "tiny", Cmd: []string{"sh", "-c", look}, Hostname: "tiny"}
	host := container.HostConfig{Binds: probe(t)}
	plain, err := engine.Run(t, config, host)
	check(t, err)
	before := seen(t, plain)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			c, h := config, host
			w.ask(named("worker-3").Qualified(), &c, &h)
			out, err := engine.Run(t, c, h)
			check(t, err)
			after := seen(t, out)
			for part, want := range d.want {
				if got := added(before[part], after[part]); got != strings.Join(want, "\n") {
					t.Errorf("it got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
				}
			}
			c, h = config, host
			w.ask(named("unknown").Qualified(), &c, &h)
			if _, err := engine.Run(t, c, h); err == nil || !strings.Contains(err.Error(), w.unknown) {
				t.Errorf("a device that is not there: %v, want %q", err, w.unknown)
			}
		})
	}
	t.Run("after a start of the machine", func(t *testing.T) { outlives(t, engine, ways[len(ways)-1], specs, d.edits) })
}

// outlives checks that a container works again after a reboot has removed its specification and cosplay has rewritten
// it.
func outlives(t *testing.T, engine *enginetest.Engine, w way, specs string, e Edits) {
	c, h := container.Config{Image: "tiny", Cmd: []string{"find", "/dev/nvidiactl", "/dev/nvidia1"}}, container.HostConfig{NetworkMode: "none"}
	w.ask(named("unknown").Qualified(), &c, &h)
	created, err := engine.Client.ContainerCreate(context.Background(), &c, &h, nil, nil, "")
	check(t, err)
	if out, err := engine.Restart(t, created.ID); err == nil {
		t.Errorf("it started without its device: %s", out)
	}
	for range 2 {
		_, err = write(specs, "unknown", e)
		check(t, err)
		if out, err := engine.Restart(t, created.ID); err != nil || strings.Count(out, "/dev/nvidia") != 2 {
			t.Errorf("with its device: %q, %v", out, err)
		}
		check(t, named("unknown").Remove(specs))
		if out, err := engine.Restart(t, created.ID); err == nil {
			t.Errorf("it started again without its device: %s", out)
		}
	}
}

// driver simulates a driver: the edits of a session's device, and what they should add to the four parts of what a
// container has.
type driver struct {
	edits Edits
	want  [4][]string
}

// fakeDriver returns a driver whose nodes are copies of /dev/null and whose libraries can be loaded.
func fakeDriver(t *testing.T) driver {
	t.Helper()
	d := machine(t)
	s := mig(9, 0)
	nodes, err := d.Nodes(s)
	check(t, err)
	for _, n := range nodes {
		check(t, os.Remove(n.Host))
		check(t, unix.Mknod(n.Host, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, stem := range []string{"libnvidia-ml", "libcuda", "libnvidia-ptxjitcompiler"} {
		gcc(t, "-shared", "-nostdlib", "-Wl,-soname="+stem+".so.1", "testdata/driver/driver.c", "-o", path(stem+".so."+version))
	}
	check(t, os.Symlink("libnvidia-ml.so."+version, path("libnvidia-ml.so.1")))
	real, facade := filepath.Join(Behind, "libnvidia-ml.so.1"), path("facade.so")
	gcc(t, "-shared", "-nostdlib", "-Wl,-soname="+real, "testdata/driver/driver.c", "-o", path("stub.so"))
	gcc(t, "-shared", "-nostdlib", "-Wl,-soname=libnvidia-ml.so.1", "-Wl,--no-as-needed", "testdata/driver/facade.c", path("stub.so"), "-o", facade)
	libraries, err := Libraries(path("libnvidia-ml.so.1"), version)
	check(t, err)
	mounts := append(Mounts(libraries, map[string]string{"libnvidia-ml.so.1": facade}), d.Tools()...)
	e := Edits{Nodes: nodes, Mounts: mounts}
	f := driver{edits: e}
	for _, n := range e.Nodes {
		f.want[0] = append(f.want[0], n.Container)
	}
	f.want[1] = []string{visible + "=" + void}
	for _, m := range e.Mounts {
		f.want[2] = append(f.want[2], m.Container)
	}
	folder := LoaderFolders()[0]
	for _, stem := range []string{"libcuda", "libnvidia-ptxjitcompiler"} {
		f.want[3] = append(f.want[3], stem+".so.1: front nothing, behind "+filepath.Join(folder, stem+".so.1"))
	}
	for _, name := range []string{"libnvidia-ml.so", "libnvidia-ml.so.1"} { // one file: the loader takes it once
		f.want[3] = append(f.want[3], name+": front "+filepath.Join(folder, "libnvidia-ml.so.1")+", behind "+real)
	}
	for _, part := range f.want {
		slices.Sort(part)
	}
	return f
}

// probe returns the mounts for a program that loads libraries, and for what a glibc program needs of this machine.
func probe(t *testing.T) (binds []string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "probe")
	gcc(t, "testdata/driver/probe.c", "-o", program)
	file, err := elf.Open(program)
	check(t, err)
	defer file.Close()
	loader := make([]byte, file.Section(".interp").Size-1)
	_, err = file.Section(".interp").ReadAt(loader, 0)
	check(t, err)
	libc := gcc(t, "-print-file-name=libc.so.6")
	return []string{program + ":/probe:ro", string(loader) + ":" + string(loader) + ":ro", libc + ":" + libc + ":ro"}
}
