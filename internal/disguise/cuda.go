package disguise

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"cosplay/driver"
)

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
func InstallCUDA(dir, realLibrary string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(realLibrary); err != nil || !filepath.IsAbs(realLibrary) {
		return fmt.Errorf("there is no CUDA driver at %q; name the host's own libcuda by its absolute path", realLibrary)
	}
	for _, file := range []string{cudaFacadeFile, cudaDriverFile} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			return fmt.Errorf("making the session's libraries: %w", err)
		}
	}
	if err := renameio.Symlink(realLibrary, filepath.Join(dir, cudaDriverFile)); err != nil {
		return fmt.Errorf("linking the CUDA driver: %w", err)
	}
	if err := MakeUsage(filepath.Join(dir, UsageFile)); err != nil {
		return err
	}
	if err := linkShort(dir, cudaFacadeFile); err != nil {
		return err
	}
	// The facade comes last: without the files that it needs it would not load, or would show the physical GPU.
	return WriteCUDAFacade(filepath.Join(dir, cudaFacadeFile), filepath.Join(dir, cudaDriverFile), filepath.Join(dir, FiguresFile))
}
