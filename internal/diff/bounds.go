package diff

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// bound is a limit or the restart policy of a container that is another now.
type bound struct {
	Field
	stays bool // the engine lifts no limit on CPUs or memory while a container is there
}

// rebound lists what somebody has changed since a container was made.
func rebound(made resource.PriorSession, now resource.Container) []bound {
	if made.Box == nil || made.Container == nil || made.Container.Foreign || now.Bounds == nil {
		return nil
	}
	was, is := made.Box.Bounds(), *now.Bounds
	var all []bound
	add := func(name, from, to string, stays bool) {
		if from != to {
			all = append(all, bound{Field{Name: name, From: from, To: to}, stays})
		}
	}
	limit := func(n int, words string) string {
		if n == 0 {
			return "none"
		}
		return words
	}
	cpus := func(b resource.Bounds) string { return limit(b.MilliCPUs, fmt.Sprint(float64(b.MilliCPUs)/1000)) }
	memory := func(b resource.Bounds) string { return limit(b.MemoryMiB, size(b.MemoryMiB)) }
	pids := func(b resource.Bounds) string { return limit(b.PIDs, fmt.Sprint(b.PIDs)) }
	add("limits.cpus", cpus(was), cpus(is), was.MilliCPUs == 0)
	add("limits.memory", memory(was), memory(is), was.MemoryMiB == 0)
	add("limits.pids", pids(was), pids(is), false)
	add("restart", was.Restart, is.Restart, false)
	return all
}

// mendable reports whether a container has bounds that can be taken back.
func mendable(made resource.PriorSession, now resource.Container) bool {
	return slices.ContainsFunc(rebound(made, now), func(b bound) bool { return !b.stays })
}

// boundsDrift tells what docker update did. What nothing but a new container
// mends is only told: nobody loses what runs for it.
func boundsDrift(was resource.PriorSession, c resource.Container) []Drift {
	var all []Drift
	for _, b := range rebound(was, c) {
		address := was.Address
		d := Drift{Class: ContainerChanged, Host: was.Slice.Host, GPU: was.Slice.GPU, Session: &address,
			Thing: b.Name, From: b.From, To: b.To, Cause: possibly + "docker update"}
		if b.stays {
			d.Class, d.Told = ContainerLimited, true
			d.Cause = possibly + "docker update; only a recreated container is without it: cosplay apply --replace"
		}
		all = append(all, d)
	}
	return all
}
