package agent

import (
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
	GPU      string            `json:"gpu,omitempty"`
	Setting  *resource.Setting `json:"setting,omitempty"`
	Value    int               `json:"value,omitempty"`
	Slice    *wireSlice        `json:"slice,omitempty"`
	Creates  []wireCreation    `json:"creates,omitempty"`
	Holder   wireHolder        `json:"holder"`
	Take     *wireTake         `json:"take,omitempty"`
	AsItIs   bool              `json:"as_it_is,omitempty"`
	Abandon  bool              `json:"abandon,omitempty"`
	GPUs     []string          `json:"gpus,omitempty"`

	TimeSlices bool `json:"timeslices,omitempty"`
}

type wireResponse struct {
	Version  int           `json:"version"`
	Host     *wireHost     `json:"host,omitempty"`
	Created  []wireCreated `json:"created,omitempty"`
	Clock    *wireClock    `json:"clock,omitempty"`
	Value    int           `json:"value,omitempty"`
	Place    *wirePlace    `json:"place,omitempty"`
	Error    *Error        `json:"error,omitempty"`
	Happened bool          `json:"happened,omitempty"`
	Last     bool          `json:"last,omitempty"`
}

type wireCreation struct {
	Slice wirePlacement `json:"slice"`
	Need  wireNeed      `json:"need"`
}

type wireCreated struct {
	Slice *wireSlice `json:"slice,omitempty"`
	Error *Error     `json:"error,omitempty"`
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
	Imported bool `json:"imported,omitempty"`
	Serial   int  `json:"serial,omitempty"`
}

type wirePlacement struct {
	Host    string `json:"host"`
	GPU     string `json:"gpu"`
	Profile string `json:"profile,omitempty"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`

	ComputeStart int `json:"compute_start,omitempty"`
}

type wireHandle struct {
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	UUID            string `json:"uuid,omitempty"`
	Boot            string `json:"boot,omitempty"`
	Shared          bool   `json:"shared,omitempty"`
}

type wireNeed struct {
	SMs       int `json:"sms"`
	MemoryMiB int `json:"memory_mib"`

	Beside string `json:"beside,omitempty"`
}

type wireHolder struct {
	Lineage string      `json:"lineage"`
	State   string      `json:"state"`
	User    string      `json:"user"`
	UID     *int        `json:"uid,omitempty"`
	Since   string      `json:"since"`
	Whole   bool        `json:"whole,omitempty"`
	Slices  []wireSlice `json:"slices,omitempty"`
	Serial  int         `json:"serial,omitempty"`
}

type wireTake struct {
	Baseline   resource.Settings `json:"baseline"`
	LockBefore bool              `json:"lock_before,omitempty"`
	FromState  bool              `json:"from_state,omitempty"`
	Whole      bool              `json:"whole,omitempty"`
	Others     []string          `json:"others"`
	Slices     []wireSlice       `json:"slices,omitempty"`
}

// wireHost is what the agent reads of a host. It contains each model once: a model is long, with its clocks and
// profiles, and most hosts have one.
type wireHost struct {
	Library  string         `json:"library"`
	Driver   string         `json:"driver"`
	BootID   string         `json:"boot_id"`
	GPUs     []wireGPU      `json:"gpus"`
	Models   []wireModel    `json:"models,omitempty"`
	Unusable []wireUnusable `json:"unusable,omitempty"`
	Ledger   []wirePage     `json:"ledger,omitempty"`
	Queue    []wireWaiting  `json:"queue,omitempty"`
	Unbooked bool           `json:"unbooked,omitempty"`
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
	TimeSlice      *int              `json:"timeslice,omitempty"`
	SMClockMHz     int               `json:"sm_clock_mhz"`
	LowClockReason bool              `json:"low_clock_reason"`
	TemperatureC   int               `json:"temperature_c"`
	DrawMW         int               `json:"draw_mw"`
	MemoryUsedMiB  int               `json:"memory_used_mib"`
	Utilization    *int              `json:"utilization_percent,omitempty"`
	Slices         []wireSlice       `json:"slices,omitempty"`
	Processes      []wireProcess     `json:"processes,omitempty"`
	Degraded       []wireDegradation `json:"degraded,omitempty"`
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
	MemorySlices      int           `json:"memory_slices,omitempty"`
	ComputeSlices     int           `json:"compute_slices,omitempty"`
	Profiles          []wireProfile `json:"profiles,omitempty"`
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
	Name            string `json:"name,omitempty"`
	MemoryMiB       int    `json:"memory_mib"`
	GPUInstance     *int   `json:"gpu_instance,omitempty"`
	ComputeInstance *int   `json:"compute_instance,omitempty"`
	Session         string `json:"session,omitempty"`
}

type wireDegradation struct {
	Feature resource.Feature `json:"feature"`
	Call    string           `json:"call"`
	Code    int              `json:"code"`
	Message string           `json:"message,omitempty"`
	Set     bool             `json:"set,omitempty"`
}

type wireUnusable struct {
	Index   int    `json:"index"`
	UUID    string `json:"uuid,omitempty"`
	Call    string `json:"call"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type wireClock struct {
	MHz            int  `json:"mhz"`
	LowClockReason bool `json:"low_clock_reason,omitempty"`
}

type wirePage struct {
	UUID       string            `json:"uuid"`
	Baseline   resource.Settings `json:"baseline"`
	LockBefore bool              `json:"lock_before,omitempty"`
	Set        resource.Settings `json:"set"`
	BootID     string            `json:"boot_id,omitempty"`
	Holders    []wireHolder      `json:"holders"`
	Leaving    string            `json:"leaving,omitempty"`
	Was        resource.Settings `json:"was,omitzero"`
	Lock       *wireLock         `json:"lock,omitempty"`
	Unkept     bool              `json:"unkept,omitempty"`
	Departed   []wireDeparted    `json:"departed,omitempty"`
	Changes    []wireLeft        `json:"changes,omitempty"`
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
	UID     *int      `json:"uid,omitempty"`
	At      string    `json:"at"`
}

type wireLeft struct {
	Setting  string `json:"setting"`
	Value    string `json:"value"`
	Baseline string `json:"baseline"`
	Why      string `json:"why"`
	User     string `json:"user"`
	UID      *int   `json:"uid,omitempty"`
	At       string `json:"at"`
}

func (r request) wire() wireRequest {
	w := wireRequest{Version: r.Version, Op: r.Op, Deadline: r.Deadline, GPU: r.GPU, Setting: r.Setting, Value: r.Value, Slice: point(r.Slice, sliceToWire),
		Creates: prose.Each(r.Creates, func(c creation) wireCreation { return wireCreation{placementToWire(c.Slice), wireNeed(c.Need)} }), Holder: holderToWire(r.Holder), AsItIs: r.AsItIs, Abandon: r.Abandon, GPUs: r.GPUs, TimeSlices: r.TimeSlices}
	if t := r.Take; t != nil {
		w.Take = &wireTake{Baseline: t.Baseline, LockBefore: t.LockBefore, FromState: t.FromState, Whole: t.Whole, Others: t.Others, Slices: prose.Each(t.Slices, sliceToWire)}
	}
	return w
}

func (w wireRequest) request() request {
	r := request{Version: w.Version, Op: w.Op, Deadline: w.Deadline, GPU: w.GPU, Setting: w.Setting, Value: w.Value, Slice: point(w.Slice, wireSlice.slice),
		Creates: prose.Each(w.Creates, func(c wireCreation) creation { return creation{c.Slice.placement(), resource.Need(c.Need)} }), Holder: w.Holder.holder(), AsItIs: w.AsItIs, Abandon: w.Abandon, GPUs: w.GPUs, TimeSlices: w.TimeSlices}
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

func holderToWire(h resource.Holder) wireHolder {
	return wireHolder{Lineage: h.Lineage, State: h.State, User: h.User, UID: h.UID, Since: h.Since, Whole: h.Whole, Slices: prose.Each(h.Slices, sliceToWire), Serial: h.Serial}
}

func (w wireHolder) holder() resource.Holder {
	return resource.Holder{Lineage: w.Lineage, State: w.State, User: w.User, UID: w.UID, Since: w.Since, Whole: w.Whole, Slices: prose.Each(w.Slices, wireSlice.slice), Serial: w.Serial}
}

func hostToWire(h resource.Host) wireHost {
	w := wireHost{Library: h.Library, Driver: h.Driver, BootID: h.BootID, Ledger: prose.Each(h.Ledger, pageToWire), Unbooked: h.Unbooked,
		Queue:    prose.Each(h.Queue, func(q resource.Waiting) wireWaiting { return wireWaiting(q) }),
		Unusable: prose.Each(h.Unusable, func(u resource.Unusable) wireUnusable { return wireUnusable(u) })}
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
		GPUs: prose.Each(w.GPUs, func(g wireGPU) resource.GPU {
			gpu := g.gpu()
			if g.Model >= 0 && g.Model < len(models) {
				gpu.Model = models[g.Model]
			}
			return gpu
		})}
}

func gpuToWire(g resource.GPU, model int) wireGPU {
	return wireGPU{Index: g.Index, UUID: g.UUID, PCI: g.PCI, Model: model, MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending,
		Persistence: g.Persistence, PowerMW: g.PowerMW, ComputeMode: g.ComputeMode, TimeSlice: g.TimeSlice, SMClockMHz: g.SMClockMHz, LowClockReason: g.LowClockReason, TemperatureC: g.TemperatureC, Utilization: g.UtilizationPercent,
		DrawMW: g.DrawMW, MemoryUsedMiB: g.MemoryUsedMiB, Slices: prose.Each(g.Slices, sliceToWire),
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
	return wirePage{UUID: p.UUID, Baseline: p.Baseline, LockBefore: p.LockBefore, Set: p.Set, BootID: p.BootID, Holders: prose.Each(p.Holders, holderToWire),
		Leaving: p.Leaving, Was: p.Was, Lock: (*wireLock)(p.Lock), Unkept: p.Unkept,
		Departed: prose.Each(p.Departed, func(d resource.Departed) wireDeparted {
			return wireDeparted{Slice: sliceToWire(d.LiveSlice), Lineage: d.Lineage, User: d.User, UID: d.UID, At: d.At}
		}),
		Changes: prose.Each(p.Changes, func(l resource.Left) wireLeft { return wireLeft(l) })}
}

func (w wirePage) page() resource.Page {
	return resource.Page{UUID: w.UUID, Baseline: w.Baseline, LockBefore: w.LockBefore, Set: w.Set, BootID: w.BootID, Holders: prose.Each(w.Holders, wireHolder.holder),
		Leaving: w.Leaving, Was: w.Was, Lock: (*resource.ClockLock)(w.Lock), Unkept: w.Unkept,
		Departed: prose.Each(w.Departed, func(d wireDeparted) resource.Departed {
			return resource.Departed{LiveSlice: d.Slice.slice(), Lineage: d.Lineage, User: d.User, UID: d.UID, At: d.At}
		}),
		Changes: prose.Each(w.Changes, func(l wireLeft) resource.Left { return resource.Left(l) })}
}
