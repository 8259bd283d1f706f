package disguise

// #include "figures.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"cosplay/driver"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// FiguresFile is the name of the figures file.
const FiguresFile = "figures"

// UsageFile is the name of the usage file, beside the figures file.
const UsageFile = "usage"

// facades are the facades by the name of the library that they replace for programs of a session.
var facades = map[string]struct{ file, words string }{
	driver.NVML: {driver.Facade, "NVML library"},
	driver.CUDA: {driver.CUDAFacade, "CUDA driver"},
}

// Install places or updates the disguise in a session's folder: the facade in lib, a link to the driver's library in
// real, where no program searches, and the figures file. given is the MIG slice or whole GPU of the session's first
// device; realLibrary is the absolute path of the host's
// NVML library.
func Install(dir string, s resource.Session, given resource.Handle, realLibrary string) error {
	return install(dir, driver.NVML, realLibrary, func(dir string) error {
		if err := InstallPython(dir, s); err != nil {
			return err
		}
		return WriteFigures(filepath.Join(dir, FiguresFile), AllFigures(s, given)...)
	})
}

// install places a facade in a session's folder, with the files that others writes.
func install(dir, library, realLibrary string, others func(dir string) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	words := facades[library].words
	if _, err := os.Stat(realLibrary); err != nil || !filepath.IsAbs(realLibrary) {
		return fmt.Errorf("there is no %s at %q; name the host's own by its absolute path", words, realLibrary)
	}
	file, link := filepath.Join(dir, "lib", library), filepath.Join(dir, "real", library)
	for _, path := range []string{file, link} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the session's libraries: %w", err)
		}
	}
	if err := renameio.Symlink(realLibrary, link); err != nil {
		return fmt.Errorf("linking the %s: %w", words, err)
	}
	if err := others(dir); err != nil {
		return err
	}
	if err := renameio.Symlink(library, Short(file)); err != nil {
		return fmt.Errorf("linking the facade: %w", err)
	}
	// The facade comes last: without the files that it needs it would not load, or would show the physical GPU.
	return WriteFacade(file, library, link, filepath.Join(dir, FiguresFile))
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

// WriteFacade writes the facade of a library to a file in one step: see Facade.
func WriteFacade(path, library, realLibrary, figures string) error {
	facade, err := Facade(library, realLibrary, figures)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, facade, 0o755); err != nil {
		return fmt.Errorf("writing the facade: %w", err)
	}
	return nil
}

// neededMark is the placeholder for the library that a facade needs: a mark padded with dots to the length of the
// longest path.
var neededMark = C.FACADE_NEEDED_MARK + strings.Repeat(".", C.FACADE_PATH_SIZE-1-len(C.FACADE_NEEDED_MARK))

// Facade returns the facade of driver.NVML or driver.CUDA, for programs that find the driver's library and the figures
// file at these absolute paths, with the usage file beside the figures file. The files need not exist yet.
func Facade(of, realLibrary, figures string) ([]byte, error) {
	library, err := driver.Library(facades[of].file)
	if err != nil {
		return nil, err
	}
	library = bytes.Clone(library)
	for mark, to := range map[string]string{
		neededMark:            realLibrary,
		C.FACADE_DRIVER_MARK:  realLibrary,
		C.FACADE_FIGURES_MARK: figures,
		C.FACADE_USAGE_MARK:   filepath.Join(filepath.Dir(figures), UsageFile),
	} {
		if !filepath.IsAbs(to) || len(to) >= C.FACADE_PATH_SIZE {
			return nil, fmt.Errorf("the facade cannot take the path %q: it must be absolute and below %d bytes", to, C.FACADE_PATH_SIZE)
		}
		if err := overwrite(library, mark, to); err != nil {
			return nil, err
		}
	}
	return library, nil
}

func overwrite(library []byte, mark, path string) error {
	place := []byte(mark + "\x00")
	at := bytes.Index(library, place)
	if at < 0 || bytes.Count(library, place) != 1 || at+C.FACADE_PATH_SIZE > len(library) {
		return errors.New("a facade in this binary has no room for its paths; rebuild cosplay with make build")
	}
	room := library[at : at+C.FACADE_PATH_SIZE]
	clear(room)
	copy(room, path)
	return nil
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

// InstallCUDA places or updates the CUDA facade in a session's folder, in which Install has placed the NVML facade:
// the facade in lib, a link to the CUDA driver, and the usage file. A sound usage file is kept, because programs of
// the session may have it open. realLibrary is the absolute path of the host's libcuda.
func InstallCUDA(dir string, s resource.Session, realLibrary string) error {
	return install(dir, driver.CUDA, realLibrary, func(dir string) error { return MakeUsage(filepath.Join(dir, UsageFile), len(s.Slices())) })
}

// WriteProbes installs the programs with which verify finds out what programs in a session see. The folder must
// permit execution. An existing file stays, because it may be running.
func WriteProbes(dir string) error {
	for _, name := range []string{driver.Who, driver.Probe} {
		program, err := driver.Library(name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		there, err := os.ReadFile(path)
		if err == nil && bytes.Equal(there, program) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		syscall.ForkLock.RLock() // a child that another thread starts meanwhile would keep the file open: "text file busy"
		err = durable.WriteFile(path, program, 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			return err
		}
	}
	return nil
}
