package disguise

// #include "figures.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"cosplay/driver"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// Where things are in a session's folder. Programs find only the facade: the
// folder of the driver's own library is on no search path.
const (
	facadeFile     = "lib/" + driver.NVML
	driverFile     = "real/" + driver.NVML
	cudaFacadeFile = "lib/" + driver.CUDA
	cudaDriverFile = "real/" + driver.CUDA
)

// FiguresFile is the name of the file of what the session shows.
const FiguresFile = "figures"

// UsageFile is the name of the file in which a session's programs count what they
// use, beside the figures.
const UsageFile = "usage"

// Install puts the disguise into a session's folder, or brings it up to date:
// the facade in lib, the driver's library behind it, the figures that it shows.
// given is its MIG slice or whole GPU; realLibrary is the absolute path of the
// host's NVML library.
func Install(dir string, s resource.Session, given resource.Handle, realLibrary string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(realLibrary); err != nil || !filepath.IsAbs(realLibrary) {
		return fmt.Errorf("there is no NVML library at %q; name the host's own by its absolute path", realLibrary)
	}
	for _, folder := range []string{"lib", "real"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return fmt.Errorf("making the session's libraries: %w", err)
		}
	}
	if err := renameio.Symlink(realLibrary, filepath.Join(dir, driverFile)); err != nil {
		return fmt.Errorf("linking the NVML library: %w", err)
	}
	if err := InstallPython(dir, s); err != nil {
		return err
	}
	if err := WriteFigures(filepath.Join(dir, FiguresFile), FiguresOf(s, given)); err != nil {
		return err
	}
	if err := linkShort(dir, facadeFile); err != nil {
		return err
	}
	// Last: without what it needs it would not load, or show the GPU behind it.
	return WriteFacade(filepath.Join(dir, facadeFile), filepath.Join(dir, driverFile), filepath.Join(dir, FiguresFile))
}

// Short is the name of a library without its version, or its path. Some programs
// ask for that first, and would find the driver's own: numba, nvtop.
func Short(library string) string { return strings.TrimSuffix(library, ".1") }

// linkShort gives a facade in a session's folder its short name.
func linkShort(dir, file string) error {
	if err := renameio.Symlink(filepath.Base(file), filepath.Join(dir, Short(file))); err != nil {
		return fmt.Errorf("linking the facade: %w", err)
	}
	return nil
}

// systemFolders are where distributions and NVIDIA's installer put the driver.
var systemFolders = []string{
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib64/nvidia", "/usr/lib", "/usr/lib/nvidia",
	"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/aarch64-linux-gnu/nvidia/current", "/usr/lib/wsl/lib", "/run/opengl-driver/lib",
}

// SystemLibrary finds the NVML library that programs of this machine use, for
// hosts that name none.
func SystemLibrary() (string, error) { return nvmlIn(searched()) }

func nvmlIn(folders []string) (string, error) {
	if path := libraryIn(folders, driver.NVML); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s is in none of %s; install the NVIDIA driver, or name the library in the host block: nvml = \"/path/%[1]s\"",
		driver.NVML, strings.Join(folders, ", "))
}

// searched are the folders where programs of this machine look for the driver.
func searched() []string {
	return append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), systemFolders...)
}

// libraryIn is the path of a library in the first folder that has it; "" where
// none does.
func libraryIn(folders []string, name string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// Remove takes the disguise out of a session's folder, the facades first.
func Remove(dir string) error {
	for _, file := range []string{Short(cudaFacadeFile), cudaFacadeFile, Short(facadeFile), facadeFile, cudaDriverFile, driverFile, FiguresFile, UsageFile} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the session's libraries: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, PythonDir)); err != nil {
		return fmt.Errorf("removing the session's part for Python: %w", err)
	}
	for _, folder := range []string{"lib", "real"} {
		_ = os.Remove(filepath.Join(dir, folder)) // it stays while others keep something there
	}
	return nil
}

// WriteFacade writes the NVML facade to a file, whole or not at all, for programs
// that find the driver's NVML library and the figures at these absolute paths,
// and beside the figures the file of what is used. They need not be there yet.
func WriteFacade(path, realLibrary, figures string) error {
	library, err := Facade(realLibrary, figures)
	return write(path, library, err)
}

// WriteCUDAFacade does the same for the CUDA facade and the CUDA driver.
func WriteCUDAFacade(path, realLibrary, figures string) error {
	library, err := CUDAFacade(realLibrary, figures)
	return write(path, library, err)
}

func write(path string, library []byte, err error) error {
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, library, 0o755); err != nil {
		return fmt.Errorf("writing the facade: %w", err)
	}
	return nil
}

// Facade is the NVML facade for these paths.
func Facade(realLibrary, figures string) ([]byte, error) {
	return patched(driver.Facade, realLibrary, figures)
}

// CUDAFacade is the CUDA facade for these paths.
func CUDAFacade(realLibrary, figures string) ([]byte, error) {
	return patched(driver.CUDAFacade, realLibrary, figures)
}

// neededMark is the name of the one library that a facade needs, as built: a
// mark and dots, as long as the longest path.
var neededMark = C.FACADE_NEEDED_MARK + strings.Repeat(".", C.FACADE_PATH_SIZE-1-len(C.FACADE_NEEDED_MARK))

func patched(name, realLibrary, figures string) ([]byte, error) {
	library, err := driver.Library(name)
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

// overwrite puts a path over the mark that reserves its room.
func overwrite(library []byte, mark, path string) error {
	place := []byte(mark + "\x00")
	at := bytes.Index(library, place)
	if at < 0 || bytes.Count(library, place) != 1 || at+C.FACADE_PATH_SIZE > len(library) {
		return errors.New("a facade in this binary has no place for its paths; build cosplay anew with make build")
	}
	room := library[at : at+C.FACADE_PATH_SIZE]
	clear(room)
	copy(room, path)
	return nil
}
