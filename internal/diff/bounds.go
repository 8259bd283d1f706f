package diff

import (
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// rebound lists what docker update has changed since a container was created.
func rebound(made resource.PriorSession, now resource.Body) fields {
	if made.Spec.IsZero() || made.Body == nil || made.Body.Foreign || now.Bounds == nil {
		return nil
	}
	return boundFields(made.Spec.Bounds(), *now.Bounds)
}

// boundFields lists what differs between the bounds that a container should have and those that it has.
func boundFields(was, is resource.Bounds) fields {
	var all fields
	add(&all, FieldLimitCPUs, limit(CPUs(was.MilliCPUs)/1000), limit(CPUs(is.MilliCPUs)/1000))
	add(&all, FieldLimitMemory, limit(Memory(was.MemoryMiB)), limit(Memory(is.MemoryMiB)))
	add(&all, FieldLimitPIDs, limit(Count(was.PIDs)), limit(Count(is.PIDs)))
	add(&all, FieldRestart, Text(was.Restart), Text(is.Restart))
	return all
}

// stays reports whether only a new container repairs a bound: an engine cannot remove a limit on CPUs or memory while
// the container exists.
func (f Field) stays() bool { return f.From == nil && f.Kind != FieldLimitPIDs }

// limit is a value that is none where it is 0 or "".
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

// repairable reports whether a container that runs differs in something that can be restored.
func repairable(made resource.PriorSession, now resource.Body) bool {
	return len(alterations(made, now)) > 0 || slices.ContainsFunc(rebound(made, now), func(b Field) bool { return !b.stays() })
}

// alterations lists what was altered of a container that cosplay created.
func alterations(made resource.PriorSession, now resource.Body) fields {
	if made.Body == nil || made.Body.Foreign {
		return nil
	}
	return prose.Each(now.Altered, func(a resource.Alteration) Field {
		return Field{Kind: Kind(a.Part), From: Text(a.From), To: limit(Text(a.To))}
	})
}

// fieldDrift reports each of these fields of a container.
func fieldDrift(was resource.PriorSession, class Class, all []Field) []Drift {
	return prose.Each(all, func(f Field) Drift {
		d := driftOf(was, class, f.From, f.To)
		d.GPU, d.Kind, d.Name = was.Slice.GPU, f.Kind, f.Name
		return d
	})
}

// replacedDrift reports a file or folder of the host that was replaced there: the container has the old one until it
// starts again, which no apply does by itself.
func replacedDrift(was resource.PriorSession, c resource.Body) []Drift {
	mounts := []Field{{Kind: FieldWorkspace, Name: was.Workspace, From: IsAsApplied, To: IsReplaced}}
	for _, v := range was.Spec.Volumes {
		mounts = append(mounts, Field{Kind: FieldVolumes, Name: v.Source, From: IsAsApplied, To: IsReplaced})
	}
	replaced := func(f Field) bool { return slices.Contains(c.Replaced, f.Name) }
	return fieldDrift(was, MountReplaced, prose.Only(mounts, replaced))
}

// boundsDrift reports what docker update changed. What only a new container repairs is informational: cosplay does
// not stop the container's programs for it.
func boundsDrift(was resource.PriorSession, c resource.Body) []Drift {
	bounds := rebound(was, c)
	all := fieldDrift(was, BodyChanged, bounds)
	for i, b := range bounds {
		if b.stays() {
			all[i].Class, all[i].Informational = BodyLimited, true
		}
	}
	return all
}
