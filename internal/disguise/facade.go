package disguise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cosplay/driver"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

// FiguresFile is the name of the figures file.
const FiguresFile = "figures"

// LibraryDir is the name of the folder with the facades, where a session's programs search first.
const LibraryDir = "lib"

// UsageFile is the name of the usage file, beside the figures file.
const UsageFile = "usage"

// facades are the facades by the name of the library that they replace for programs of a session.
var facades = map[string]struct{ file, words string }{
	driver.NVML: {driver.Facade, "NVML library"},
	driver.CUDA: {driver.CUDAFacade, "CUDA driver"},
}

// shownBeside are the facades by the same name.
var shownBeside = map[string]func() (*shared.File, error){driver.NVML: beside(driver.NVML), driver.CUDA: beside(driver.CUDA)}

// Install places or updates the disguise in a session's folder: the facades in lib, links to the driver's libraries in
// real, where no program searches, the figures file, and with CUDA the usage file and the report. A sound usage file is kept, because
// programs of the session may have it open. What other sessions have too is in a folder beside that of the session.
// given is the MIG slice or whole GPU of the session's first device; nvml and cuda are the absolute paths of the host's
// libraries, cuda "" if it has none.
func Install(dir string, s resource.Session, given resource.Handle, nvml, cuda string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	base, behind := filepath.Dir(dir), map[string]string{driver.NVML: nvml}
	if cuda != "" {
		behind[driver.CUDA] = cuda
	}
	for library, path := range behind {
		if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
			return fmt.Errorf("there is no %s at %q; name the host's own by its absolute path", facades[library].words, path)
		}
	}
	libraries, err := oneTree(RealDir, nvml+"\x00"+cuda, func() (map[string]string, error) { return behind, nil })
	if err == nil {
		err = libraries.link(base, filepath.Join(dir, RealDir))
	}
	if err != nil {
		return fmt.Errorf("linking the driver's libraries: %w", err)
	}
	if err := placePython(dir, s, func(part *tree, folder string) error { return part.link(base, folder) }); err != nil {
		return err // sessions of the same target share it
	}
	if err := WriteFigures(filepath.Join(dir, FiguresFile), s.Target, s.Devices(given)...); err != nil {
		return err
	}
	if cuda != "" {
		err := errors.Join(MakeUsage(filepath.Join(dir, UsageFile), len(s.Slices())), MakeReport(filepath.Join(dir, ReportFile), s))
		if err != nil {
			return err
		}
	}
	// The facades come last: without the files that they need they would not load, or would show the physical GPU.
	for library := range behind {
		if err := linkFacade(base, filepath.Join(dir, LibraryDir, library), library); err != nil {
			return fmt.Errorf("linking the facade: %w", err)
		}
	}
	return nil
}

// linkFacade places the facade of a library for programs that find the session's folder around its own.
func linkFacade(base, path, library string) error {
	facade, err := shownBeside[library]()
	if err != nil {
		return err
	}
	if err := shared.Lead(base, Short(path), library); err != nil {
		return err
	}
	return facade.Link(base, path)
}

// Short returns the name or path of a library without its version. numba, nvtop and other programs try that name
// first, and would otherwise find the driver's own library.
func Short(library string) string { return strings.TrimSuffix(library, ".1") }

// systemFolders are where distributions and NVIDIA's installer place the driver.
var systemFolders = []string{
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib64/nvidia", "/usr/lib", "/usr/lib/nvidia",
	"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/aarch64-linux-gnu/nvidia/current", "/usr/lib/wsl/lib", "/run/opengl-driver/lib",
}

// SystemLibrary finds the NVML library that programs of this machine use, for hosts that name none.
func SystemLibrary() (string, error) { return nvmlIn(searched()) }

func nvmlIn(folders []string) (string, error) {
	if path := libraryIn(folders, driver.NVML); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s is in none of %s; install the NVIDIA driver, or name the library in the host block: nvml = \"/path/%[1]s\"",
		driver.NVML, strings.Join(folders, ", "))
}

func searched() []string {
	return slices.Concat(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), configured("/etc/ld.so.conf", 8), systemFolders)
}

// configured are the folders that a configuration of the dynamic loader names, with those of the files that it
// includes, at most depth of them in each other: drivers outside the system's folders are found so. See ldconfig(8).
func configured(path string, depth int) (folders []string) {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && filepath.IsAbs(words[0]):
			folders = append(folders, words[0])
		case len(words) > 1 && words[0] == "include" && depth > 0:
			for _, pattern := range words[1:] {
				if !filepath.IsAbs(pattern) {
					pattern = filepath.Join(filepath.Dir(path), pattern)
				}
				files, _ := filepath.Glob(pattern)
				for _, file := range files {
					folders = append(folders, configured(file, depth-1)...)
				}
			}
		}
	}
	return folders
}

// libraryIn returns the path of a library in the first folder that has it; "" if none does.
func libraryIn(folders []string, name string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// CUDALibrary finds the CUDA driver that belongs to an NVML library: in the same folder, or in the folders that
// programs of this machine search. "" means that there is none: a session then has only the NVML part of the
// disguise, and nothing enforces its memory limit.
func CUDALibrary(nvml string) string {
	folders := []string{filepath.Dir(nvml)}
	if resolved, err := filepath.EvalSymlinks(nvml); err == nil {
		folders = append(folders, filepath.Dir(resolved))
	}
	return libraryIn(append(folders, searched()...), driver.CUDA)
}

// probes are the programs with which verify finds out what programs in a session see.
var probes = sync.OnceValues(func() (all []*shared.File, err error) {
	for _, name := range Probes {
		program, err := driver.Library(name)
		if err != nil {
			return nil, err
		}
		all = append(all, shared.NewFile(name, program, 0o755))
	}
	return all, nil
})

// Probes are their names.
var Probes = []string{driver.Who, driver.Probe}

// LinkProbes installs the programs with which verify finds out what programs in a session see. The folder must
// permit execution. base is the folder of the session folders.
func LinkProbes(base, dir string) error {
	all, err := probes()
	for i, program := range all {
		err = errors.Join(err, program.Link(base, filepath.Join(dir, Probes[i])))
	}
	return err
}
