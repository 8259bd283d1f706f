package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// bound is a limit or the restart policy of a container that has changed.
type bound struct {
	Field
	stays bool // the engine lifts no limit on CPUs or memory while a container exists
}

// rebound lists what docker update has changed since a container was created.
func rebound(made resource.PriorSession, now resource.Body) []bound {
	if made.Spec.IsZero() || made.Body == nil || made.Body.Foreign || now.Bounds == nil {
		return nil
	}
	was, is := made.Spec.Bounds(), *now.Bounds
	var all fields
	all.add(FieldLimitCPUs, limit(CPUs(was.MilliCPUs)/1000), limit(CPUs(is.MilliCPUs)/1000))
	all.add(FieldLimitMemory, limit(Memory(was.MemoryMiB)), limit(Memory(is.MemoryMiB)))
	all.add(FieldLimitPIDs, limit(Count(was.PIDs)), limit(Count(is.PIDs)))
	all.add(FieldRestart, Text(was.Restart), Text(is.Restart))
	var bounds []bound
	for _, f := range all {
		bounds = append(bounds, bound{f, f.From == nil && f.Kind != FieldLimitPIDs})
	}
	return bounds
}

// limit is a limit as a value; 0 is none.
func limit[T interface {
	comparable
	Value
}](n T) Value {
	var none T
	if n == none {
		return nil
	}
	return n
}

// repairable reports whether a container has bounds that can be restored.
func repairable(made resource.PriorSession, now resource.Body) bool {
	return slices.ContainsFunc(rebound(made, now), func(b bound) bool { return !b.stays })
}

// boundsDrift reports what docker update changed. What only a new container repairs is informational: cosplay does
// not stop the container's programs for it.
func boundsDrift(was resource.PriorSession, c resource.Body) []Drift {
	var all []Drift
	for _, b := range rebound(was, c) {
		d := driftOf(was, BodyChanged, b.From, b.To)
		d.GPU, d.Kind = was.Slice.GPU, b.Kind
		if b.stays {
			d.Class, d.Informational = BodyLimited, true
		}
		all = append(all, d)
	}
	return all
}
