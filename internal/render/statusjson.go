package render

import (
	"io"

	"cosplay/internal/resource"
)

type statusJSON struct {
	FormatVersion int                  `json:"format_version"`
	Hosts         []hostJSON           `json:"hosts"`
	Sessions      []sessionJSON        `json:"sessions"`
	Missing       []resource.Address   `json:"missing"` // that an interrupted run had to create
	Drift         []driftJSON          `json:"drift"`
	Drifted       bool                 `json:"has_drift"`
	Orphans       []resource.Container `json:"orphans"`
}

type hostJSON struct {
	Name      string      `json:"name"`
	Simulated string      `json:"simulated,omitempty"`
	Library   string      `json:"library"`
	Driver    string      `json:"driver"`
	BootID    string      `json:"boot_id"`
	Runtime   string      `json:"runtime"` // where new sessions run
	Engine    *engineJSON `json:"engine"`  // null where no session needs one
	GPUs      []gpuJSON   `json:"gpus"`

	Unusable []resource.Unusable `json:"unusable"` // GPUs that do not answer
}

// engineJSON is a container engine, and in words how slices come into its
// containers.
type engineJSON struct {
	Name   string `json:"name"`
	Access string `json:"access"`
}

func engineOf(h resource.Host) *engineJSON {
	if h.Engine == nil {
		return nil
	}
	return &engineJSON{Name: h.Engine.Name, Access: h.Engine.Access}
}

// gpuJSON is a GPU as NVML shows it. Power is in W.
type gpuJSON struct {
	UUID         string      `json:"uuid"`
	Index        int         `json:"index"`
	PCI          string      `json:"pci"`
	Name         string      `json:"name"`
	MIGCapable   bool        `json:"mig_capable"`
	MIG          bool        `json:"mig"`
	MIGPending   bool        `json:"mig_pending"`
	Persistence  bool        `json:"persistence"`
	PowerLimitW  float64     `json:"power_limit_w"`
	PowerDrawW   float64     `json:"power_draw_w"`
	SMClockMHz   int         `json:"sm_clock_mhz"`
	ClockLock    lock        `json:"clock_lock"`     // what is believed of cosplay's lock: none, held, unlocked, lifted, unknown
	ClockLockMHz *int        `json:"clock_lock_mhz"` // with held; null else
	Temperature  int         `json:"temperature_c"`
	MemoryMiB    int         `json:"memory_mib"`
	MemoryUsed   int         `json:"memory_used_mib"`
	InHand       bool        `json:"in_hand"` // cosplay answers for its settings
	Slices       []sliceJSON `json:"slices"`
	Processes    int         `json:"processes"`

	Holders []holderJSON `json:"holders"` // projects that have it in hand, this one left out

	Degraded []resource.Degradation `json:"degraded"` // what the driver does not offer; the fields that it is about are 0
}

type sliceJSON struct {
	UUID            string            `json:"uuid"`
	GPUInstance     int               `json:"gpu_instance"`
	ComputeInstance int               `json:"compute_instance"`
	Profile         string            `json:"profile"`
	Start           int               `json:"start"`
	Size            int               `json:"size"`
	Ours            bool              `json:"ours"`
	Session         *resource.Address `json:"session"`
}

// StatusJSON writes what is there as data.
func StatusJSON(w io.Writer, v StatusView) error {
	f := look(v)
	s := statusJSON{FormatVersion: formatVersion, Hosts: []hostJSON{}, Sessions: f.sessionsJSON(), Missing: list(v.Prior.Missing),
		Drift: driftsJSON(v.Live, v.Drift), Drifted: v.counted() > 0, Orphans: []resource.Container{}}
	for _, h := range v.Live.Hosts {
		host := hostJSON{Name: h.Name, Simulated: h.Simulated, Library: h.Library, Driver: h.Driver, BootID: h.BootID, Runtime: h.Runtime, Engine: engineOf(h), GPUs: []gpuJSON{}, Unusable: list(h.Unusable)}
		for _, g := range h.GPUs {
			host.GPUs = append(host.GPUs, f.gpuJSON(g))
		}
		s.Hosts = append(s.Hosts, host)
		s.Orphans = append(s.Orphans, v.orphans(h)...)
	}
	return writeJSON(w, s)
}

func (f fleet) gpuJSON(g resource.GPU) gpuJSON {
	_, inHand := f.Prior.GPU(g.Host, g.UUID)
	state, mhz := f.lock(g)
	out := gpuJSON{
		UUID: g.UUID, Index: g.Index, PCI: g.PCI, Name: g.Model.Name,
		MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending, Persistence: g.Persistence,
		ClockLock: state, PowerLimitW: watts(g.PowerMW), PowerDrawW: watts(g.DrawMW), SMClockMHz: g.SMClockMHz,
		Temperature: g.TemperatureC,
		MemoryMiB:   g.Model.MemoryMiB, MemoryUsed: g.MemoryUsedMiB, InHand: inHand,
		Slices: []sliceJSON{}, Processes: len(g.Processes),
		Holders: f.holdersJSON(g), Degraded: list(g.Degraded),
	}
	if state == lockHeld {
		out.ClockLockMHz = &mhz
	}
	for _, s := range g.Slices {
		one := sliceJSON{UUID: s.UUID, GPUInstance: s.GPUInstance, ComputeInstance: s.ComputeInstance, Profile: s.Profile, Start: s.Start, Size: s.Size}
		if owner, ok := f.owners[s]; ok {
			one.Ours, one.Session = true, &owner
		}
		out.Slices = append(out.Slices, one)
	}
	return out
}

type sessionJSON struct {
	Address    resource.Address    `json:"address"`
	Name       string              `json:"name"` // as people type it
	ID         string              `json:"id"`
	Target     string              `json:"target"`
	Slice      resource.Slice      `json:"slice"`
	SliceUUID  string              `json:"slice_uuid"`
	MemoryMiB  int                 `json:"memory_mib"`
	Fit        fitJSON             `json:"fit"`
	Runtime    string              `json:"runtime"`
	Image      string              `json:"image,omitempty"` // in a container
	Workspace  string              `json:"workspace"`
	State      string              `json:"state"`
	Unfinished bool                `json:"unfinished"` // an apply has to complete it
	Container  *resource.Container `json:"container"`
	SSH        *sshJSON            `json:"ssh"`  // null where nobody can log in
	Used       *verdictJSON        `json:"used"` // null where it is not counted, or nothing was used
	Drift      []driftJSON         `json:"drift"`
}

func (f fleet) sessionsJSON() []sessionJSON {
	all := []sessionJSON{}
	used := byAddress(f.verdicts())
	for _, s := range f.Prior.Sessions {
		one := sessionJSON{Address: s.Address, Name: s.Address.Short(), ID: s.ID, Target: s.Target.Key, Slice: s.Slice,
			MemoryMiB: s.Target.MemoryMiB, Fit: newFitJSON(s.Fit), Runtime: s.Runtime, Image: s.Session.Spec.Image, Workspace: s.Workspace,
			State: f.sessionState(s), Unfinished: s.Incomplete(), Used: used[s.Address], Drift: driftsJSON(f.Live, f.drift[s.Address])}
		if s.Handle != nil {
			one.SliceUUID = s.Handle.UUID
		}
		if c, ok := f.Live.Container(s.Slice.Host, s.Runtime, s.ID); ok {
			one.Container, one.SSH = &c, sshOf(s.Session, &c)
		}
		all = append(all, one)
	}
	return all
}

// SessionsJSON writes the sessions as data.
func SessionsJSON(w io.Writer, v StatusView) error {
	return writeJSON(w, struct {
		FormatVersion int           `json:"format_version"`
		Sessions      []sessionJSON `json:"sessions"`
	}{formatVersion, look(v).sessionsJSON()})
}
