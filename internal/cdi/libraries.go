package cdi

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Behind is the folder, in a container, of the driver's own libraries that a facade replaces. No loader searches it.
const Behind = "/run/cosplay/driver"

// Library is a file of the driver's user space.
type Library struct {
	Path   string // on the host
	Soname string // the name by which programs and other libraries load it
}

// LoaderFolders are the folders that the loader of any glibc image searches by default: the first in images of the
// Debian family, the second in those of Red Hat.
func LoaderFolders() []string { return loaderFolders(runtime.GOARCH) }

func loaderFolders(architecture string) []string {
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[architecture]
	if triplet == "" {
		return []string{"/usr/lib64"}
	}
	return []string{"/usr/lib/" + triplet, "/usr/lib64"}
}

// needless are the libraries, after libnvidia-, for drawing, encoding, display or network switches. All others are
// mounted: a later driver may split libcuda's dependencies differently, and an unused library does no harm.
var needless = []string{"api", "egl", "encode", "fbc", "gl", "gtk", "ifr", "ngx", "nscq", "opticalflow", "present", "rtcore",
	"tls", "vksc", "vulkan", "wayland"}

// Libraries lists the driver's libraries for computing and for NVML. They are in the folder of the NVML library, and
// their names end with the driver's version as NVML reports it.
func Libraries(nvml, version string) ([]Library, error) {
	resolved, err := filepath.EvalSymlinks(nvml)
	if err != nil {
		return nil, fmt.Errorf("looking for the driver's libraries: %w", err)
	}
	found := map[string]Library{}
	for _, folder := range []string{filepath.Dir(resolved), filepath.Dir(nvml)} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("looking for the driver's libraries: %w", err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if _, ok := found[name]; ok || !wanted(name, version) {
				continue
			}
			if found[name], err = read(filepath.Join(folder, name)); err != nil {
				return nil, err
			}
		}
	}
	for _, needed := range []string{"libcuda.so.", "libnvidia-ml.so."} {
		if _, ok := found[needed+version]; !ok {
			return nil, fmt.Errorf("there is no %s%s beside %s; install the libraries of the running driver, all of one version", needed, version, nvml)
		}
	}
	all := slices.Collect(maps.Values(found))
	return sorted(all, func(l Library) string { return l.Soname }), nil
}

// wanted reports whether a file name is that of a library to mount. One compiler of drivers before 535 has its own
// version number.
func wanted(name, version string) bool {
	if name == "libnvidia-nvvm70.so.4" {
		return true
	}
	stem, ok := strings.CutSuffix(name, ".so."+version)
	if !ok || version == "" {
		return false
	}
	if rest, ok := strings.CutPrefix(stem, "libnvidia-"); ok {
		return !slices.ContainsFunc(needless, func(n string) bool { return strings.HasPrefix(rest, n) })
	}
	return strings.HasPrefix(stem, "libcuda")
}

func read(path string) (Library, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Library{}, err
	}
	file, err := elf.Open(path)
	if err != nil {
		return Library{}, fmt.Errorf("reading the driver's library %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	names, err := file.DynString(elf.DT_SONAME)
	if err != nil || len(names) != 1 || names[0] != filepath.Base(names[0]) {
		return Library{}, fmt.Errorf("the driver's library %s has no soname; reinstall the driver", path)
	}
	return Library{Path: path, Soname: names[0]}, nil
}

// Mounts places libraries in a container so that any glibc program finds them by name without ldconfig or environment
// variables: each file under its soname in both loader folders. fronts has the facades by soname: a facade takes the
// place of its library, and the driver's own file is mounted in Behind.
func Mounts(libraries []Library, fronts map[string]string) []File {
	var mounts []File
	for _, l := range libraries {
		shown := l.Path
		if front, ok := fronts[l.Soname]; ok {
			shown = front
			mounts = append(mounts, File{Host: l.Path, Container: filepath.Join(Behind, l.Soname)})
		}
		for _, folder := range LoaderFolders() {
			for _, name := range names(l.Soname) {
				mounts = append(mounts, File{Host: shown, Container: filepath.Join(folder, name)})
			}
		}
	}
	return mounts
}

// names returns a library's soname and, for the two libraries that numba and nvtop first open without a version
// number, the name without it.
func names(soname string) []string {
	if soname == "libcuda.so.1" || soname == "libnvidia-ml.so.1" {
		return []string{soname, strings.TrimSuffix(soname, ".1")}
	}
	return []string{soname}
}

// Tools mounts the driver's programs that a session's user may run, as far as this machine has them.
func (d Driver) Tools() []File {
	var mounts []File
	for _, name := range []string{"nvidia-smi", "nvidia-debugdump"} {
		for _, folder := range []string{"/usr/bin", "/usr/local/bin", "/bin", "/opt/bin", "/run/current-system/sw/bin"} {
			path, err := filepath.EvalSymlinks(d.host(filepath.Join(folder, name)))
			if err == nil {
				mounts = append(mounts, File{Host: path, Container: filepath.Join("/usr/bin", name)})
				break
			}
		}
	}
	return mounts
}
