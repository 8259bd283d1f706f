// Package sim creates simulated hosts and changes their hardware without the driver's knowledge. A host is a folder:
// the simulated NVML library, the simulated CUDA driver and one file with the state of all GPUs. Every process that
// loads a library maps that file, and so does this package; a C header of the driver defines its layout.
package sim

import (
	"os"
	"path/filepath"

	"cosplay/driver"
)

const stateName = "host"

// LibraryPath is the path of the NVML library of the host in a folder.
func LibraryPath(dir string) string { return filepath.Join(dir, driver.NVML) }

// StatePath is the path of the state of the host in a folder, which every program must be able to write.
func StatePath(dir string) string { return filepath.Join(dir, stateName) }

// Is reports whether a folder contains a simulated host.
func Is(dir string) bool {
	_, err := os.Stat(StatePath(dir))
	return err == nil
}

// Options describe a new host; the zero value is valid.
type Options struct {
	Simulates string // the user's text, "8 x h200"; kept for output
	Seed      string // the same seed gives the same UUIDs
	Driver    string // version, default "580.159.04"
	CUDA      int    // default 13000, which is 13.0
}
