package cdi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLibraries(t *testing.T) {
	nvml := install(t)
	all, err := Libraries(nvml, version)
	check(t, err)
	got := map[string]string{}
	for _, l := range all {
		got[l.Soname] = strings.TrimPrefix(l.Path, filepath.Dir(nvml)+"/")
	}
	const own = "nvidia/current/"
	want := map[string]string{
		"libcuda.so.1":                    own + "libcuda.so." + version,
		"libnvidia-gpucomp.so." + version: own + "libnvidia-gpucomp.so." + version,
		"libnvidia-ml.so.1":               own + "libnvidia-ml.so." + version,
		"libnvidia-nvvm.so.4":             "libnvidia-nvvm.so." + version,
		"libnvidia-nvvm70.so.4":           own + "libnvidia-nvvm70.so.4",
		"libnvidia-ptxjitcompiler.so.1":   own + "libnvidia-ptxjitcompiler.so." + version,
	}
	for soname, path := range want {
		if got[soname] != path {
			t.Errorf("%s is %q, want %q", soname, got[soname], path)
		}
	}
	if len(all) != len(want) {
		t.Errorf("got %v", got)
	}
	if !slices.IsSortedFunc(all, func(a, b Library) int { return strings.Compare(a.Soname, b.Soname) }) {
		t.Errorf("not in order: %v", all)
	}
}

func TestLibrariesThatAreWanting(t *testing.T) {
	nvml := install(t)
	own := filepath.Join(filepath.Dir(nvml), "nvidia", "current")
	for name, c := range map[string]struct{ nvml, version, want string }{
		"another version":  {nvml, "570.1", "no libcuda.so.570.1 beside"},
		"no version":       {nvml, "", "all of one version"},
		"no NVML":          {nvml + ".2", version, "looking for the driver's libraries"},
		"only half of one": {nvml, "535.1", "535.1"},
	} {
		if all, err := Libraries(c.nvml, c.version); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want %q", name, all, err, c.want)
		}
	}
	for _, text := range []string{"", "not a library"} {
		path := filepath.Join(own, "libnvidia-broken.so."+version)
		check(t, os.WriteFile(path, []byte(text), 0o644))
		if _, err := Libraries(nvml, version); err == nil || !strings.Contains(err.Error(), "libnvidia-broken.so") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestLoaderFolders(t *testing.T) {
	for architecture, want := range map[string]string{
		"amd64": "/usr/lib/x86_64-linux-gnu /usr/lib64", "arm64": "/usr/lib/aarch64-linux-gnu /usr/lib64", "riscv64": "/usr/lib64",
	} {
		if got := strings.Join(loaderFolders(architecture), " "); got != want {
			t.Errorf("%s: %s, want %s", architecture, got, want)
		}
	}
}

// TestMounts checks that no loader finds the driver's own library if it has a facade.
func TestMounts(t *testing.T) {
	libraries := []Library{{"/host/libcuda.so.550", "libcuda.so.1"}, {"/host/libnvidia-ml.so.550", "libnvidia-ml.so.1"}, {"/host/libnvidia-nvvm.so.550", "libnvidia-nvvm.so.4"}}
	got := map[string]string{}
	for _, m := range Mounts(libraries, map[string]string{"libnvidia-ml.so.1": "/session/facade"}) {
		if got[m.Container] != "" {
			t.Errorf("%+v", m)
		}
		got[m.Container] = m.Host
	}
	want := map[string]string{Behind + "/libnvidia-ml.so.1": "/host/libnvidia-ml.so.550"}
	for _, folder := range LoaderFolders() {
		want[folder+"/libcuda.so"] = "/host/libcuda.so.550"
		want[folder+"/libcuda.so.1"] = "/host/libcuda.so.550"
		want[folder+"/libnvidia-ml.so"] = "/session/facade"
		want[folder+"/libnvidia-ml.so.1"] = "/session/facade"
		want[folder+"/libnvidia-nvvm.so.4"] = "/host/libnvidia-nvvm.so.550"
	}
	for container, host := range want {
		if got[container] != host {
			t.Errorf("at %s is %q, want %q", container, got[container], host)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestTools(t *testing.T) {
	d := machine(t)
	store := d.host("/nix/nvidia-debugdump")
	d.write(t, "/nix/nvidia-debugdump", "")
	check(t, os.Symlink(store, d.host("/run/current-system/sw/bin/nvidia-debugdump")))
	want := []File{{Host: d.host("/usr/bin/nvidia-smi"), Container: "/usr/bin/nvidia-smi"}, {Host: store, Container: "/usr/bin/nvidia-debugdump"}}
	if got := d.Tools(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Driver{Root: t.TempDir()}).Tools(); len(got) != 0 {
		t.Errorf("on a machine without any: %v", got)
	}
}
