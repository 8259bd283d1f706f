package device

import (
	"os"
	"path/filepath"

	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the programs of a container with the device should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	_, err := os.Stat(filepath.Join(r.Inside(s.ID), disguise.UsageFile)) // programs may have damaged what it contains
	interior, failed := r.InteriorAt(initd.Dir, s.Session, err == nil)
	interior.OwnRoot, interior.Env = true, r.Given(Of(s.ID), s.Session, s.SliceID())
	return interior, failed
}
