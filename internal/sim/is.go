package sim

import (
	"os"
)

// Is reports whether a folder holds a simulated host.
func Is(dir string) bool {
	_, err := os.Stat(StatePath(dir))
	return err == nil
}
