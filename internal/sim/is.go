package sim

import (
	"os"
	"path/filepath"
)

// Is reports whether a folder holds a simulated host.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateName))
	return err == nil
}
