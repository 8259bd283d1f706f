package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// Programs are the processes that use GPUs, as their drivers list them.
type Programs struct {
	live resource.Live
	at   map[placeOfProgram][]resource.Process
}

// placeOfProgram is a MIG slice, or a GPU without MIG.
type placeOfProgram struct {
	resource.GPUKey
	instance int // -1 without MIG
}

// ProgramsOf arranges the processes of a snapshot.
func ProgramsOf(live resource.Live) Programs {
	all := Programs{live, map[placeOfProgram][]resource.Process{}}
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
			for _, p := range g.Processes {
				at := placeOfProgram{resource.GPUKey{Host: h.Name, UUID: g.UUID}, -1}
				if p.GPUInstance != nil {
					at.instance = *p.GPUInstance
				}
				all.at[at] = append(all.at[at], p)
			}
		}
	}
	return all
}

// On are the processes on a session's slice or whole GPUs, whichever session they belong to.
func (p Programs) On(s resource.PriorSession) (all []resource.Process) {
	if len(p.at) == 0 {
		return nil
	}
	if own, there := OwnSlice(s, p.live); there {
		at := placeOfProgram{resource.GPUKey{Host: own.Host, UUID: own.GPU}, own.GPUInstance}
		return slices.DeleteFunc(slices.Clone(p.at[at]), func(one resource.Process) bool {
			return one.ComputeInstance != nil && *one.ComputeInstance != own.ComputeInstance
		})
	}
	if s.Slice.Whole() {
		for _, gpu := range s.On() {
			all = append(all, p.at[placeOfProgram{gpu, -1}]...)
		}
	}
	return all
}

// Of are a session's processes. On a slice or GPU that others may use, too, they are those that are known to be its.
func (p Programs) Of(s resource.PriorSession) []resource.Process {
	all := p.On(s)
	if s.Slice.Shared() && !s.Slice.Divides() {
		all = slices.DeleteFunc(slices.Clone(all), func(one resource.Process) bool { return one.Session != s.ID })
	}
	return all
}

// Lists reports whether the driver lists the processes that use the GPUs of a session.
func (p Programs) Lists(s resource.PriorSession) bool {
	return !slices.ContainsFunc(s.On(), func(at resource.GPUKey) bool {
		g, there := p.live.GPU(at.Host, at.UUID)
		return !there || g.Unread(resource.ReadingProcesses)
	})
}
