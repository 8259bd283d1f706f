package render

import (
	"io"

	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// StatusJSON writes what exists as data.
func StatusJSON(w io.Writer, v StatusView) error {
	f := look(v)
	s := public.Status{Format: public.V1, Hosts: []public.Host{}, Sessions: f.sessionsJSON(), Missing: addresses(v.Prior.Missing),
		Drift: driftsJSON(v.Live, v.Drift), HasDrift: v.counted() > 0, Orphans: []public.Container{}}
	for _, h := range v.Live.Hosts {
		s.Hosts = append(s.Hosts, public.Host{Name: h.Name, Simulated: h.Simulated, Library: h.Library, Driver: h.Driver, BootID: h.BootID, Runtime: h.Runtime, Engine: engineOf(h),
			GPUs: list(each(h.GPUs, f.gpuJSON)), Unusable: list(each(h.Unusable, func(u resource.Unusable) public.Unusable { return public.Unusable(u) }))})
		s.Orphans = append(s.Orphans, each(v.orphans(h), containerOf)...)
	}
	return JSON(w, s)
}

func engineOf(h resource.Host) *public.Engine {
	return some(h.Engine, func(e resource.Engine) public.Engine { return public.Engine{Name: e.Name, Access: e.Access} })
}

func (f fleet) gpuJSON(g resource.GPU) public.GPU {
	_, inHand := f.Prior.GPU(g.Host, g.UUID)
	state, mhz := f.lock(g)
	out := public.GPU{
		UUID: g.UUID, Index: g.Index, PCI: g.PCI, Name: g.Model.Name,
		MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending, Persistence: g.Persistence,
		ClockLock: string(state), PowerLimitW: watts(g.PowerMW), PowerDrawW: watts(g.DrawMW), SMClockMHz: g.SMClockMHz,
		Temperature: g.TemperatureC, MemoryMiB: g.Model.MemoryMiB, MemoryUsed: g.MemoryUsedMiB, InHand: inHand,
		Slices: list(each(g.Slices, f.sliceJSON)), Processes: len(g.Processes), Holders: f.holdersJSON(g),
		Degraded: list(each(g.Degraded, func(d resource.Degradation) public.Degradation {
			return public.Degradation{Feature: string(d.Feature), Call: d.Call, Code: d.Code, Message: d.Message, Set: d.Set}
		})),
	}
	if state == lockHeld {
		out.ClockLockMHz = &mhz
	}
	return out
}

func (f fleet) sliceJSON(s resource.LiveSlice) public.GPUSlice {
	out := public.GPUSlice{UUID: s.UUID, GPUInstance: s.GPUInstance, ComputeInstance: s.ComputeInstance, Profile: s.Profile, Start: s.Start, Size: s.Size}
	if owner, ok := f.owners[s]; ok {
		out.Ours, out.Session = true, address(&owner)
	}
	return out
}

func (f fleet) sessionsJSON() []public.SessionStatus {
	used := byAddress(f.verdicts())
	return list(each(f.Prior.Sessions, func(s resource.PriorSession) public.SessionStatus {
		one := public.SessionStatus{Address: s.Address.String(), Name: s.Address.Short(), ID: s.ID, Target: s.Target.Key, Slice: public.Slice(s.Slice),
			MemoryMiB: s.Target.MemoryMiB, Fit: figuresOf(s.Fit), Runtime: s.Runtime, Image: s.Session.Spec.Image, Workspace: s.Workspace,
			State: f.sessionState(s), Unfinished: s.Incomplete(), Used: used[s.Address], Drift: driftsJSON(f.Live, f.drift[s.Address])}
		if s.Handle != nil {
			one.SliceUUID = s.Handle.UUID
		}
		if c, ok := f.Live.Container(s.Slice.Host, s.Runtime, s.ID); ok {
			one.Container, one.SSH = new(containerOf(c)), loginOf(s.Session, &c)
		}
		return one
	}))
}

// SessionsJSON writes the sessions as data.
func SessionsJSON(w io.Writer, v StatusView) error {
	return JSON(w, public.Sessions{Format: public.V1, Sessions: look(v).sessionsJSON()})
}
