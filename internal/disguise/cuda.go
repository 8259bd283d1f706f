package disguise

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"cosplay/driver"
)

// CUDALibrary finds the CUDA driver that goes with an NVML library: beside it, or
// else where programs of this machine look. "" says that there is none: a session
// then has the disguise of NVML alone, and nothing holds its cap.
func CUDALibrary(nvml string) string {
	folders := []string{filepath.Dir(nvml)}
	if resolved, err := filepath.EvalSymlinks(nvml); err == nil {
		folders = append(folders, filepath.Dir(resolved))
	}
	return libraryIn(append(folders, searched()...), driver.CUDA)
}

// InstallCUDA puts the CUDA facade beside the NVML facade that Install put into
// a session's folder, or brings it up to date: the facade in lib, the CUDA driver
// behind it, the file of what is used. That file stays as it is while it is of
// use, since programs of the session may have it open. realLibrary is the
// absolute path of the host's libcuda.
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
	// Last: without what it needs it would not load, or show the GPU behind it.
	return WriteCUDAFacade(filepath.Join(dir, cudaFacadeFile), filepath.Join(dir, cudaDriverFile), filepath.Join(dir, FiguresFile))
}
