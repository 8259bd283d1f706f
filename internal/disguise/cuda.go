package disguise

import (
	"path/filepath"

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
	return install(dir, driver.CUDA, realLibrary, func(dir string) error { return MakeUsage(filepath.Join(dir, UsageFile)) })
}
