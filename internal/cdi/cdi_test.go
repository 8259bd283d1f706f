package cdi

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	library "tags.cncf.io/container-device-interface/pkg/cdi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// edits is everything that a session's container gets.
func edits(t *testing.T, d Driver, s Slice) Edits {
	t.Helper()
	nodes, err := d.Nodes(s)
	check(t, err)
	libraries := []Library{{"/usr/lib/libcuda.so." + version, "libcuda.so.1"}, {"/usr/lib/libnvidia-ml.so." + version, "libnvidia-ml.so.1"}}
	mounts := append(Mounts(libraries, map[string]string{"libnvidia-ml.so.1": "/session/lib/libnvidia-ml.so.1"}), d.Tools()...)
	return Edits{Nodes: nodes, Mounts: mounts}
}

func TestGolden(t *testing.T) {
	if slices.Compare(LoaderFolders(), loaderFolders("amd64")) != 0 {
		t.Skip("the golden files show the folders of amd64")
	}
	for name, slice := range map[string]Slice{"mig": mig(9, 0), "whole": {GPU: "GPU-1"}} {
		d, dir := machine(t), t.TempDir()
		path, err := write(dir, "worker-3", edits(t, d, slice))
		check(t, err)
		data, err := os.ReadFile(path)
		check(t, err)
		data = bytes.ReplaceAll(data, []byte(d.Root), []byte("/ROOT"))
		golden := filepath.Join("testdata", name+".json")
		if *update {
			check(t, os.WriteFile(golden, data, 0o644))
		}
		want, err := os.ReadFile(golden)
		check(t, err)
		if !bytes.Equal(data, want) {
			t.Errorf("%s differs; go test -update rewrites it. Got:\n%s", golden, data)
		}
	}
}

// TestWriteAndRemove checks that CDI's own library finds the device.
func TestWriteAndRemove(t *testing.T) {
	d, dir := machine(t), filepath.Join(t.TempDir(), "run", "cdi")
	e := edits(t, d, mig(9, 0))
	path, err := write(dir, "worker-3", e)
	check(t, err)
	first, err := os.ReadFile(path)
	check(t, err)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 || filepath.Dir(path) != dir {
		t.Errorf("%s: %v, %v", path, info, err)
	}
	slices.Reverse(e.Nodes)
	slices.Reverse(e.Mounts)
	again, err := write(dir, "worker-3", e)
	check(t, err)
	if second, err := os.ReadFile(again); err != nil || again != path || !bytes.Equal(first, second) {
		t.Errorf("in another order: %s, %v\n%s", again, err, second)
	}
	_, err = write(dir, "worker-4", e)
	check(t, err)
	if got := devices(t, dir); !slices.Equal(got, []string{"cosplay/session=worker-3", "cosplay/session=worker-4"}) {
		t.Errorf("found: %q", got)
	}
	killed := filepath.Join(dir, "."+filepath.Base(path)+"123") // of a writer that was killed
	check(t, os.WriteFile(killed, nil, 0o600))
	for range 2 {
		check(t, named("worker-3").Remove(dir))
	}
	if _, err := os.Stat(killed); err == nil {
		t.Errorf("%s is left", killed)
	}
	if got := devices(t, dir); !slices.Equal(got, []string{named("worker-4").Qualified()}) {
		t.Errorf("after the removal: %q", got)
	}
	if err := named("../worker-4").Remove(dir); err == nil {
		t.Error("a path was taken for a name")
	}
}

func devices(t *testing.T, dir string) []string {
	t.Helper()
	cache, err := library.NewCache(library.WithSpecDirs(dir), library.WithAutoRefresh(false))
	check(t, err)
	for path, errs := range cache.GetErrors() {
		t.Errorf("%s: %v", path, errs)
	}
	return cache.ListDevices()
}

// TestEdits: a device carries variables and mounts that programs write to.
func TestEdits(t *testing.T) {
	path, err := write(t.TempDir(), "worker-3", Edits{
		Mounts: []File{{Host: "/a", Container: "/a"}, {Host: "/w", Container: "/workspace", Writable: true}},
		Env:    map[string]string{"SEED": "14", "CUDA_VISIBLE_DEVICES": "0"},
	})
	check(t, err)
	spec, err := library.ReadSpec(path, 0)
	check(t, err)
	edits := spec.Devices[0].ContainerEdits
	if want := []string{"NVIDIA_VISIBLE_DEVICES=void", "CUDA_VISIBLE_DEVICES=0", "SEED=14"}; !slices.Equal(edits.Env, want) {
		t.Errorf("the variables are %q", edits.Env)
	}
	for i, access := range []string{"ro", "rw"} {
		if m := edits.Mounts[i]; m.Options[1] != access {
			t.Errorf("%s is mounted with %q", m.ContainerPath, m.Options)
		}
	}
}

func TestRefused(t *testing.T) {
	at := func(path string) File { return File{Host: path, Container: path} }
	for name, c := range map[string]struct {
		name  string
		edits Edits
		want  string
	}{
		"a name with brackets":  {"worker[3]", Edits{}, "cannot be the name of a CDI device"},
		"no name":               {"", Edits{}, "cannot be the name of a CDI device"},
		"a relative mount":      {"w", Edits{Mounts: []File{{Host: "lib", Container: "/lib"}}}, "clean absolute path"},
		"a way out":             {"w", Edits{Mounts: []File{at("/run/../etc/passwd")}}, "clean absolute path"},
		"two in one place":      {"w", Edits{Mounts: []File{at("/a"), {Host: "/b", Container: "/a"}}}, "two things would be at /a"},
		"a node under a mount":  {"w", Edits{Mounts: []File{at("/dev/null")}, Nodes: []File{at("/dev/null")}}, "two things"},
		"cosplay's variable":    {"w", Edits{Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"}}, "cosplay's own"},
		"a node without a host": {"w", Edits{Nodes: []File{{Container: "/dev/null"}}}, "clean absolute path"},
	} {
		dir := t.TempDir()
		if path, err := write(dir, c.name, c.edits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v; want %q", name, path, err, c.want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	check(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]bool{dir: true, filepath.Join(dir, "not", "yet"): true, file: false, filepath.Join(file, "cdi"): false} {
		if got := Writable(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
