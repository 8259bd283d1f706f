package agent

import (
	"cmp"
	"reflect"
	"slices"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// The types of the protocol. No other format shares them, so that a change of the state or of the ledger does not
// change what goes between a user and root. Where a struct has the fields of a type of resource, Go converts one into
// the other, and does not compile if a field is added to only one of them.

type wireRequest struct {
	Version  int               `json:"version"`
	Op       string            `json:"op"`
	Deadline int64             `json:"deadline"`
	GPU      string            `json:"gpu,omitzero"`
	Setting  *resource.Setting `json:"setting,omitzero"`
	Value    int               `json:"value,omitzero"`
	Slice    *wireSlice        `json:"slice,omitzero"`
	Creates  []wireCreation    `json:"creates,omitzero"`
	Holder   wireHolder        `json:"holder"`
	Take     *wireTake         `json:"take,omitzero"`
	AsItIs   bool              `json:"as_it_is,omitzero"`
	Abandon  bool              `json:"abandon,omitzero"`
	GPUs     []string          `json:"gpus,omitzero"`
	Room     []int             `json:"room,omitzero"`

	TimeSlices bool `json:"timeslices,omitzero"`
}

type wireResponse struct {
	Version  int           `json:"version"`
	Host     *wireHost     `json:"host,omitzero"`
	Created  []wireCreated `json:"created,omitzero"`
	Clock    *wireClock    `json:"clock,omitzero"`
	Value    int           `json:"value,omitzero"`
	Place    *wirePlace    `json:"place,omitzero"`
	Error    *Error        `json:"error,omitzero"`
	Happened bool          `json:"happened,omitzero"`
	Last     bool          `json:"last,omitzero"`
}

type wireCreation struct {
	Slice wirePlacement `json:"slice"`
	Need  wireNeed      `json:"need"`
}

type wireCreated struct {
	Slice *wireSlice `json:"slice,omitzero"`
	Error *Error     `json:"error,omitzero"`
}

type wirePlace struct {
	Number int64 `json:"number"`
	Ahead  int   `json:"ahead"`
}

type wireWaiting struct {
	Number int64    `json:"number"`
	User   string   `json:"user"`
	GPUs   []string `json:"gpus"`
}

type wireSlice struct {
	wirePlacement
	wireHandle
	Imported bool `json:"imported,omitzero"`
	Serial   int  `json:"serial,omitzero"`
}

type wirePlacement struct {
	Host    string `json:"host,omitzero"`
	GPU     string `json:"gpu,omitzero"`
	Profile string `json:"profile,omitzero"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`

	ComputeStart int `json:"compute_start,omitzero"`
}

type wireHandle struct {
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance,omitzero"`
	UUID            string `json:"uuid,omitzero"`
	Boot            string `json:"boot,omitzero"`
	Shared          bool   `json:"shared,omitzero"`
}

type wireNeed struct {
	SMs       int `json:"sms"`
	MemoryMiB int `json:"memory_mib"`

	Beside string `json:"beside,omitzero"`
}

type wireHolder struct {
	Lineage string      `json:"lineage"`
	State   string      `json:"state"`
	User    string      `json:"user"`
	UID     *int        `json:"uid,omitzero"`
	Since   string      `json:"since"`
	Whole   bool        `json:"whole,omitzero"`
	Slices  []wireSlice `json:"slices,omitzero"`
	Serial  int         `json:"serial,omitzero"`
}

type wireTake struct {
	Baseline   resource.Settings `json:"baseline"`
	LockBefore bool              `json:"lock_before,omitzero"`
	FromState  bool              `json:"from_state,omitzero"`
	Whole      bool              `json:"whole,omitzero"`
	Others     []string          `json:"others"`
	Slices     []wireSlice       `json:"slices,omitzero"`
}

// wireHost is what the agent reads of a host. It contains each model once: a model is long, with its clocks and
// profiles, and most hosts have one.
type wireHost struct {
	Library  string         `json:"library"`
	Driver   string         `json:"driver"`
	BootID   string         `json:"boot_id"`
	GPUs     []wireGPU      `json:"gpus"`
	Models   []wireModel    `json:"models,omitzero"`
	Unusable []wireUnusable `json:"unusable,omitzero"`
	Ledger   []wirePage     `json:"ledger,omitzero"`
	Queue    []wireWaiting  `json:"queue,omitzero"`
	Unbooked bool           `json:"unbooked,omitzero"`

	ForeignMPS []wireDaemon `json:"foreign_mps,omitzero"`
}

// wireDaemon is an MPS daemon of another user.
type wireDaemon struct {
	PID  int    `json:"pid"`
	User string `json:"user"`
	Pipe string `json:"pipe,omitzero"`
	GPUs string `json:"visible,omitzero"`
}

type wireGPU struct {
	Index          int               `json:"index"`
	UUID           string            `json:"uuid"`
	PCI            string            `json:"pci"`
	Model          int               `json:"model"` // its place in Models
	MIGCapable     bool              `json:"mig_capable"`
	MIG            bool              `json:"mig"`
	MIGPending     bool              `json:"mig_pending"`
	Persistence    bool              `json:"persistence"`
	PowerMW        int               `json:"power_mw"`
	ComputeMode    int               `json:"compute_mode"`
	TimeSlice      *int              `json:"timeslice,omitzero"`
	SMClockMHz     int               `json:"sm_clock_mhz"`
	LowClockReason bool              `json:"low_clock_reason"`
	TemperatureC   int               `json:"temperature_c"`
	DrawMW         int               `json:"draw_mw"`
	MemoryUsedMiB  int               `json:"memory_used_mib"`
	Utilization    *int              `json:"utilization_percent,omitzero"`
	Slices         []wireSlice       `json:"slices,omitzero"`
	Processes      []wireProcess     `json:"processes,omitzero"`
	Degraded       []wireDegradation `json:"degraded,omitzero"`
}

type wireModel struct {
	Name              string        `json:"name"`
	ComputeCapability string        `json:"compute_capability"`
	SMs               int           `json:"sms"`
	MemoryMiB         int           `json:"memory_mib"`
	BandwidthGBs      float64       `json:"bandwidth_gbs"`
	L2MiB             float64       `json:"l2_mib"`
	ClocksMHz         []int         `json:"clocks_mhz"`
	PowerMinMW        int           `json:"power_min_mw"`
	PowerDefaultMW    int           `json:"power_default_mw"`
	PowerMaxMW        int           `json:"power_max_mw"`
	FP32PerSM         float64       `json:"fp32_per_sm"`
	TensorPerSM       float64       `json:"tensor_per_sm"`
	MemorySlices      int           `json:"memory_slices,omitzero"`
	ComputeSlices     int           `json:"compute_slices,omitzero"`
	Profiles          []wireProfile `json:"profiles,omitzero"`
}

type wireProfile struct {
	Name          string `json:"name"`
	ID            int    `json:"id"`
	SMs           int    `json:"sms"`
	MemoryMiB     int    `json:"memory_mib"`
	MemorySlices  int    `json:"memory_slices"`
	ComputeSlices int    `json:"compute_slices"`
	MaxInstances  int    `json:"max_instances"`
	Starts        []int  `json:"starts"`
}

type wireProcess struct {
	PID             int    `json:"pid"`
	Name            string `json:"name,omitzero"`
	MemoryMiB       int    `json:"memory_mib"`
	GPUInstance     *int   `json:"gpu_instance,omitzero"`
	ComputeInstance *int   `json:"compute_instance,omitzero"`
	Session         string `json:"session,omitzero"`
}

type wireDegradation struct {
	Feature resource.Feature `json:"feature"`
	Call    string           `json:"call"`
	Code    int              `json:"code"`
	Message string           `json:"message,omitzero"`
	Set     bool             `json:"set,omitzero"`
}

type wireUnusable struct {
	Index   int    `json:"index"`
	UUID    string `json:"uuid,omitzero"`
	Call    string `json:"call"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type wireClock struct {
	MHz            int  `json:"mhz"`
	LowClockReason bool `json:"low_clock_reason,omitzero"`
}

type wirePage struct {
	UUID       string            `json:"uuid"`
	Baseline   resource.Settings `json:"baseline"`
	LockBefore bool              `json:"lock_before,omitzero"`
	Set        resource.Settings `json:"set"`
	BootID     string            `json:"boot_id,omitzero"`
	Holders    []wireHolder      `json:"holders"`
	Leaving    string            `json:"leaving,omitzero"`
	Was        resource.Settings `json:"was,omitzero"`
	Lock       *wireLock         `json:"lock,omitzero"`
	Unkept     bool              `json:"unkept,omitzero"`
	Departed   []wireDeparted    `json:"departed,omitzero"`
	Changes    []wireLeft        `json:"changes,omitzero"`
}

type wireLock struct {
	MHz    int    `json:"mhz"`
	BootID string `json:"boot_id"`
	Done   bool   `json:"done"`
}

type wireDeparted struct {
	Slice   wireSlice `json:"slice"`
	Lineage string    `json:"lineage"`
	User    string    `json:"user"`
	UID     *int      `json:"uid,omitzero"`
	At      string    `json:"at"`
}

type wireLeft struct {
	Setting  string `json:"setting"`
	Value    string `json:"value"`
	Baseline string `json:"baseline"`
	Why      string `json:"why"`
	User     string `json:"user"`
	UID      *int   `json:"uid,omitzero"`
	At       string `json:"at"`
}

func (r request) wire() wireRequest {
	w := wireRequest{Version: r.Version, Op: r.Op, Deadline: r.Deadline, GPU: r.GPU, Setting: r.Setting, Value: r.Value, Slice: point(r.Slice, sliceToWire),
		Creates: prose.Each(r.Creates, func(c creation) wireCreation { return wireCreation{placementToWire(c.Slice), wireNeed(c.Need)} }), Holder: holderToWire(r.Holder), AsItIs: r.AsItIs, Abandon: r.Abandon, GPUs: r.GPUs, Room: r.Room, TimeSlices: r.TimeSlices}
	if t := r.Take; t != nil {
		w.Take = &wireTake{Baseline: t.Baseline, LockBefore: t.LockBefore, FromState: t.FromState, Whole: t.Whole, Others: t.Others, Slices: prose.Each(t.Slices, sliceToWire)}
	}
	return w
}

func (w wireRequest) request() request {
	r := request{Version: w.Version, Op: w.Op, Deadline: w.Deadline, GPU: w.GPU, Setting: w.Setting, Value: w.Value, Slice: point(w.Slice, wireSlice.slice),
		Creates: prose.Each(w.Creates, func(c wireCreation) creation { return creation{c.Slice.placement(), resource.Need(c.Need)} }), Holder: w.Holder.holder(), AsItIs: w.AsItIs, Abandon: w.Abandon, GPUs: w.GPUs, Room: w.Room, TimeSlices: w.TimeSlices}
	if t := w.Take; t != nil {
		r.Take = &ledger.Take{Baseline: t.Baseline, LockBefore: t.LockBefore, FromState: t.FromState, Whole: t.Whole, Others: t.Others, Slices: prose.Each(t.Slices, wireSlice.slice)}
	}
	return r
}

func (r response) wire() wireResponse {
	return wireResponse{Version: r.Version, Host: point(r.Host, hostToWire), Created: prose.Each(r.Created, func(c created) wireCreated { return wireCreated{point(c.slice, sliceToWire), c.err} }), Clock: (*wireClock)(r.Clock),
		Value: r.Value, Place: (*wirePlace)(r.Place), Happened: r.Happened, Error: r.Error, Last: r.Last}
}

func (w wireResponse) response() response {
	return response{Version: w.Version, Host: point(w.Host, wireHost.host), Created: prose.Each(w.Created, func(c wireCreated) created { return created{point(c.Slice, wireSlice.slice), c.Error} }), Clock: (*resource.ClockSample)(w.Clock),
		Value: w.Value, Place: (*Place)(w.Place), Happened: w.Happened, Error: w.Error, Last: w.Last}
}

// point converts what a pointer points to; nil stays nil.
func point[T, R any](value *T, of func(T) R) *R {
	if value == nil {
		return nil
	}
	result := of(*value)
	return &result
}

func sliceToWire(s resource.LiveSlice) wireSlice {
	return wireSlice{wirePlacement: placementToWire(s.Slice), wireHandle: wireHandle(s.Handle), Imported: s.Imported, Serial: s.Serial}
}

func placementToWire(s resource.Slice) wirePlacement {
	return wirePlacement{Host: s.Host, GPU: s.GPU, Profile: s.Profile, Start: s.Start, Size: s.Size, ComputeStart: s.ComputeStart}
}

func (w wirePlacement) placement() resource.Slice {
	return resource.Slice{Host: w.Host, GPU: w.GPU, Profile: w.Profile, Start: w.Start, Size: w.Size, ComputeStart: w.ComputeStart}
}

func (w wireSlice) slice() resource.LiveSlice {
	return resource.LiveSlice{Slice: w.placement(), Handle: resource.Handle(w.wireHandle), Imported: w.Imported, Serial: w.Serial}
}

// sameBoot replaces the boot of a slice that is the one of its page.
const sameBoot = "="

// within returns slices of a GPU without what is the same for all of them: a host has thousands.
func within(gpu, boot string, all []wireSlice) []wireSlice {
	for i := range all {
		if all[i].GPU == gpu {
			all[i].GPU = ""
		}
		if boot != "" && all[i].Boot == boot {
			all[i].Boot = sameBoot
		}
	}
	return all
}

// outside is the reverse of within.
func outside(gpu, boot string, all []resource.LiveSlice) {
	for i := range all {
		all[i].GPU = cmp.Or(all[i].GPU, gpu)
		if all[i].Boot == sameBoot {
			all[i].Boot = boot
		}
	}
}

func holderToWire(h resource.Holder) wireHolder {
	return wireHolder{Lineage: h.Lineage, State: h.State, User: h.User, UID: h.UID, Since: h.Since, Whole: h.Whole, Slices: prose.Each(h.Slices, sliceToWire), Serial: h.Serial}
}

func (w wireHolder) holder() resource.Holder {
	return resource.Holder{Lineage: w.Lineage, State: w.State, User: w.User, UID: w.UID, Since: w.Since, Whole: w.Whole, Slices: prose.Each(w.Slices, wireSlice.slice), Serial: w.Serial}
}

func hostToWire(h resource.Host) wireHost {
	w := wireHost{Library: h.Library, Driver: h.Driver, BootID: h.BootID, Ledger: prose.Each(h.Ledger, pageToWire), Unbooked: h.Unbooked,
		Queue:    prose.Each(h.Queue, func(q resource.Waiting) wireWaiting { return wireWaiting(q) }),
		Unusable: prose.Each(h.Unusable, func(u resource.Unusable) wireUnusable { return wireUnusable(u) }),

		ForeignMPS: prose.Each(h.MPS.Foreign, func(d resource.ForeignDaemon) wireDaemon { return wireDaemon(d) })}
	var models []resource.Model
	for _, g := range h.GPUs {
		kind := slices.IndexFunc(models, func(m resource.Model) bool { return reflect.DeepEqual(m, g.Model) })
		if kind < 0 {
			kind = len(models)
			models = append(models, g.Model)
		}
		w.GPUs = append(w.GPUs, gpuToWire(g, kind))
	}
	w.Models = prose.Each(models, modelToWire)
	return w
}

func (w wireHost) host() resource.Host {
	models := prose.Each(w.Models, wireModel.model)
	return resource.Host{Library: w.Library, Driver: w.Driver, BootID: w.BootID, Ledger: prose.Each(w.Ledger, wirePage.page), Unbooked: w.Unbooked,
		Queue:    prose.Each(w.Queue, func(q wireWaiting) resource.Waiting { return resource.Waiting(q) }),
		Unusable: prose.Each(w.Unusable, func(u wireUnusable) resource.Unusable { return resource.Unusable(u) }),
		MPS:      resource.MPSService{Foreign: prose.Each(w.ForeignMPS, func(d wireDaemon) resource.ForeignDaemon { return resource.ForeignDaemon(d) })},
		GPUs: prose.Each(w.GPUs, func(g wireGPU) resource.GPU {
			gpu := g.gpu()
			outside(g.UUID, "", gpu.Slices)
			if g.Model >= 0 && g.Model < len(models) {
				gpu.Model = models[g.Model]
			}
			return gpu
		})}
}

func gpuToWire(g resource.GPU, model int) wireGPU {
	return wireGPU{Index: g.Index, UUID: g.UUID, PCI: g.PCI, Model: model, MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending,
		Persistence: g.Persistence, PowerMW: g.PowerMW, ComputeMode: g.ComputeMode, TimeSlice: g.TimeSlice, SMClockMHz: g.SMClockMHz, LowClockReason: g.LowClockReason, TemperatureC: g.TemperatureC, Utilization: g.UtilizationPercent,
		DrawMW: g.DrawMW, MemoryUsedMiB: g.MemoryUsedMiB, Slices: within(g.UUID, "", prose.Each(g.Slices, sliceToWire)),
		Processes: prose.Each(g.Processes, func(p resource.Process) wireProcess { return wireProcess(p) }),
		Degraded:  prose.Each(g.Degraded, func(d resource.Degradation) wireDegradation { return wireDegradation(d) })}
}

func (w wireGPU) gpu() resource.GPU {
	return resource.GPU{Index: w.Index, UUID: w.UUID, PCI: w.PCI, MIGCapable: w.MIGCapable, MIG: w.MIG, MIGPending: w.MIGPending,
		Persistence: w.Persistence, PowerMW: w.PowerMW, ComputeMode: w.ComputeMode, TimeSlice: w.TimeSlice, SMClockMHz: w.SMClockMHz, LowClockReason: w.LowClockReason, TemperatureC: w.TemperatureC, UtilizationPercent: w.Utilization,
		DrawMW: w.DrawMW, MemoryUsedMiB: w.MemoryUsedMiB, Slices: prose.Each(w.Slices, wireSlice.slice),
		Processes: prose.Each(w.Processes, func(p wireProcess) resource.Process { return resource.Process(p) }),
		Degraded:  prose.Each(w.Degraded, func(d wireDegradation) resource.Degradation { return resource.Degradation(d) })}
}

func modelToWire(m resource.Model) wireModel {
	return wireModel{Name: m.Name, ComputeCapability: m.ComputeCapability, SMs: m.SMs, MemoryMiB: m.MemoryMiB, BandwidthGBs: m.BandwidthGBs, L2MiB: m.L2MiB,
		ClocksMHz: m.ClocksMHz, PowerMinMW: m.PowerMinMW, PowerDefaultMW: m.PowerDefaultMW, PowerMaxMW: m.PowerMaxMW, FP32PerSM: m.FP32PerSM,
		TensorPerSM: m.TensorPerSM, MemorySlices: m.MemorySlices, ComputeSlices: m.ComputeSlices,
		Profiles: prose.Each(m.Profiles, func(p resource.Profile) wireProfile { return wireProfile(p) })}
}

func (w wireModel) model() resource.Model {
	return resource.Model{Name: w.Name, ComputeCapability: w.ComputeCapability, SMs: w.SMs, MemoryMiB: w.MemoryMiB, BandwidthGBs: w.BandwidthGBs, L2MiB: w.L2MiB,
		ClocksMHz: w.ClocksMHz, PowerMinMW: w.PowerMinMW, PowerDefaultMW: w.PowerDefaultMW, PowerMaxMW: w.PowerMaxMW, FP32PerSM: w.FP32PerSM,
		TensorPerSM: w.TensorPerSM, MemorySlices: w.MemorySlices, ComputeSlices: w.ComputeSlices,
		Profiles: prose.Each(w.Profiles, func(p wireProfile) resource.Profile { return resource.Profile(p) })}
}

func pageToWire(p resource.Page) wirePage {
	w := wirePage{UUID: p.UUID, Baseline: p.Baseline, LockBefore: p.LockBefore, Set: p.Set, BootID: p.BootID, Holders: prose.Each(p.Holders, holderToWire),
		Leaving: p.Leaving, Was: p.Was, Lock: (*wireLock)(p.Lock), Unkept: p.Unkept,
		Departed: prose.Each(p.Departed, func(d resource.Departed) wireDeparted {
			return wireDeparted{Slice: sliceToWire(d.LiveSlice), Lineage: d.Lineage, User: d.User, UID: d.UID, At: d.At}
		}),
		Changes: prose.Each(p.Changes, func(l resource.Left) wireLeft { return wireLeft(l) })}
	for _, h := range w.Holders {
		within(p.UUID, p.BootID, h.Slices)
	}
	return w
}

func (w wirePage) page() resource.Page {
	p := resource.Page{UUID: w.UUID, Baseline: w.Baseline, LockBefore: w.LockBefore, Set: w.Set, BootID: w.BootID, Holders: prose.Each(w.Holders, wireHolder.holder),
		Leaving: w.Leaving, Was: w.Was, Lock: (*resource.ClockLock)(w.Lock), Unkept: w.Unkept,
		Departed: prose.Each(w.Departed, func(d wireDeparted) resource.Departed {
			return resource.Departed{LiveSlice: d.Slice.slice(), Lineage: d.Lineage, User: d.User, UID: d.UID, At: d.At}
		}),
		Changes: prose.Each(w.Changes, func(l wireLeft) resource.Left { return resource.Left(l) })}
	for _, h := range p.Holders {
		outside(w.UUID, w.BootID, h.Slices)
	}
	return p
}
