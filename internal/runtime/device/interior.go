package device

import (
	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Interior is what the programs of a container with the device should find.
func (r Runtime) Interior(s resource.PriorSession) (runtime.Interior, error) {
	_, err := disguise.ReadUsage(r.Inside(s.ID) + "/" + disguise.UsageFile)
	interior, failed := r.InteriorAt(initd.Dir, s.Session, err == nil)
	interior.OwnRoot, interior.Env = true, r.Given(Of(s.ID), s.Session, s.SliceID())
	return interior, failed
}
