package disguise

// #include "figures.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"cosplay/driver"
)

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
	usage := filepath.Join(dir, usageFile)
	if err := MakeUsage(usage); err != nil {
		return err
	}
	// Last: without what it needs it would not load, or show the GPU behind it.
	return WriteCUDAFacade(filepath.Join(dir, cudaFacadeFile), filepath.Join(dir, cudaDriverFile), filepath.Join(dir, figuresFile), usage)
}

// WriteCUDAFacade writes the CUDA facade to a file, whole or not at all, for
// programs that find the CUDA driver, the figures and the file of what is used
// at these absolute paths. They need not be there yet.
func WriteCUDAFacade(path, realLibrary, figures, usage string) error {
	return writeLibrary(path, driver.CUDAFacade, map[string]string{
		neededMark:            realLibrary,
		C.FACADE_DRIVER_MARK:  realLibrary,
		C.FACADE_FIGURES_MARK: figures,
		C.FACADE_USAGE_MARK:   usage,
	})
}
