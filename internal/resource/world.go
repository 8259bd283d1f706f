package resource

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"

	"cosplay/internal/prose"
)

// Desired is what the configuration asks for, all choices made.
type Desired struct {
	GPUs     []DesiredGPU `json:"gpus"`
	Sessions []Session    `json:"sessions"`
}

// DesiredGPU is how a GPU that sessions sit on has to be set.
type DesiredGPU struct {
	Host     string             `json:"host"`
	UUID     string             `json:"uuid"`
	Settings Settings           `json:"settings"`
	Why      map[Setting]Reason `json:"why,omitempty"` // the reasons behind the settings
}

// Prior is what the state file remembers.
type Prior struct {
	Lineage  string            `json:"lineage"`
	Key      string            `json:"key,omitempty"` // secret; hashes that others can read are made with it
	Serial   int               `json:"serial"`
	BootIDs  map[string]string `json:"boot_ids,omitempty"` // by host: the boot in which the state was last true
	GPUs     []PriorGPU        `json:"gpus,omitempty"`
	Sessions []PriorSession    `json:"sessions,omitempty"` // by address
	Outputs  []Output          `json:"outputs,omitempty"`  // by name

	// LastRun is the serial after the last run on the hosts. Commands that only edit
	// the state leave it as it is, so it tells what of the hosts the state knows.
	LastRun int `json:"last_run,omitempty"`

	// Missing are the sessions that an interrupted run had to create and did not.
	Missing []Address `json:"missing,omitempty"`

	// Forgotten names what the state has given up although it still exists: UUIDs of GPUs and slices, IDs of
	// containers. Without it, an older state that lacks them could not be distinguished from this one.
	Forgotten []string `json:"forgotten,omitempty"`
}

// Output is the value of an output block as the last apply left it.
type Output struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`  // with its type; nothing of a sensitive one
	Sealed    string          `json:"sealed,omitempty"` // of a sensitive one: a hash that only the state's key can make
}

// PriorGPU is a GPU that cosplay has in hand.
type PriorGPU struct {
	Host     string   `json:"host"`
	UUID     string   `json:"uuid"`
	Baseline Settings `json:"baseline"` // before cosplay first touched it; what destroy restores
	Applied  Settings `json:"applied"`  // what cosplay set and still answers for

	// AskedPowerMW is the power limit that the driver rounded to the applied one; nil if it did not round.
	AskedPowerMW *int `json:"asked_power_mw,omitempty"`

	// LockBefore says that there seems to have been a clock lock before cosplay,
	// which nobody told: it cannot be read, and so not be brought back.
	LockBefore bool `json:"lock_before,omitempty"`

	// ClockUnsure says that a run was cut off while it set or lifted the clock
	// lock. NVML cannot tell which it was, so the next apply does it again.
	ClockUnsure bool `json:"clock_unsure,omitempty"`

	// ClockRefutedMHz is the SM clock that verify read under load where the lock
	// does not allow it; 0 where verify did not refute the lock.
	ClockRefutedMHz int `json:"clock_refuted_mhz,omitempty"`
}

// PriorSession is a session that cosplay has made, wholly or in part.
type PriorSession struct {
	Session
	Handle *Handle `json:"handle,omitempty"`    // of its MIG slice; nil while there is none, or on a whole GPU
	Body   *Body   `json:"container,omitempty"` // nil while there is none

	// Unfinished says that a run was interrupted while it created or removed the
	// container. The next apply does that again.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Incomplete reports whether there is something that an apply has to complete.
func (s PriorSession) Incomplete() bool { return s.Body == nil || s.Unfinished }

// Live is what the hosts show.
type Live struct {
	Hosts []Host `json:"hosts"`
}

// UnknownDriver is the version of a driver that does not report it.
const UnknownDriver = "unknown"

// Host is a machine with GPUs, as read.
type Host struct {
	Name      string     `json:"name"`
	Simulated string     `json:"simulated,omitempty"` // what is simulated: "8 x h200"
	Library   string     `json:"library"`             // the NVML library that was asked
	Driver    string     `json:"driver"`              // driver version, or UnknownDriver
	BootID    string     `json:"boot_id"`
	Runtime   string     `json:"runtime"`          // where new sessions run: "process", "docker"
	Engine    *Engine    `json:"engine,omitempty"` // nil where no session needs one
	GPUs      []GPU      `json:"gpus"`
	Unusable  []Unusable `json:"unusable,omitempty"`   // GPUs that do not answer
	Ledger    []Page     `json:"ledger,omitempty"`     // GPUs that projects hold
	Released  []string   `json:"released,omitempty"`   // UUIDs of GPUs that the state has and that its project has released
	Unbooked  bool       `json:"unbooked,omitempty"`   // no ledger is kept, since nothing of the host may be changed
	Bodies    []Body     `json:"containers,omitempty"` // by session
	Leftovers []Body     `json:"strays,omitempty"`     // that runs which were cut off have left: containers that never ran, or without an ID their folders
}

// Engine is a container engine.
type Engine struct {
	Name   string            `json:"name"`             // "Docker 20.10.24"
	Access string            `json:"access"`           // how a slice comes into a container, in words: "CDI by NVIDIA's runtime"
	Images map[string]string `json:"images,omitempty"` // by name with tag: their IDs
}

// Host finds a host by name.
func (l Live) Host(name string) (Host, bool) {
	if h := l.host(name); h != nil {
		return *h, true
	}
	return Host{}, false
}

func (l Live) host(name string) *Host {
	for i := range l.Hosts {
		if l.Hosts[i].Name == name {
			return &l.Hosts[i]
		}
	}
	return nil
}

// GPU finds a GPU by its host's name and its UUID.
func (l Live) GPU(host, uuid string) (GPU, bool) {
	if h := l.host(host); h != nil {
		for i := range h.GPUs {
			if h.GPUs[i].UUID == uuid {
				return h.GPUs[i], true
			}
		}
	}
	return GPU{}, false
}

// Unusable finds why a GPU that GPU does not find does not answer. One that does not
// report its UUID may be any that is missing.
func (l Live) Unusable(host, uuid string) (Unusable, bool) {
	h := l.host(host)
	if h == nil || slices.ContainsFunc(h.GPUs, func(g GPU) bool { return g.UUID == uuid }) {
		return Unusable{}, false
	}
	for _, name := range []string{uuid, ""} {
		if i := slices.IndexFunc(h.Unusable, func(u Unusable) bool { return u.UUID == name }); i >= 0 {
			return h.Unusable[i], true
		}
	}
	return Unusable{}, false
}

// NoGPU says what is wrong with a GPU that GPU does not find, to follow "the GPU is", and what brings it back.
func (l Live) NoGPU(host, uuid string) prose.Advice {
	if u, is := l.Unusable(host, uuid); is {
		return u.Advice()
	}
	return MissingGPU
}

// MissingGPU is the advice on a GPU that no driver lists.
var MissingGPU = prose.Advice{What: "missing", Fix: "read dmesg: the GPU was removed, fell off the bus, or is hidden by the driver"}

// Sliced finds a GPU whose slices can be read. One that cannot be read may have any.
func (l Live) Sliced(host, uuid string) (GPU, bool) {
	g, there := l.GPU(host, uuid)
	return g, there && !g.Unread(FeatureMIG)
}

// Body finds the body of a session by runtime and the session's ID.
func (l Live) Body(host, runtime, session string) (Body, bool) {
	if h := l.host(host); h != nil {
		i, found := slices.BinarySearchFunc(h.Bodies, Body{Runtime: runtime, Session: session}, Body.Compare)
		if found {
			return h.Bodies[i], true
		}
	}
	return Body{}, false
}

// Compare orders the containers of a host by session, then by runtime.
func (c Body) Compare(o Body) int {
	return cmp.Or(cmp.Compare(c.Session, o.Session), cmp.Compare(c.Runtime, o.Runtime))
}

// Owner is whose things are looked for: what a state has made carries its
// lineage, and hashes that only its key can make; or the state has its ID.
type Owner struct {
	Lineage  string
	Key      string
	Serial   int      // that the state will have with what is made now
	Bodies   []string // IDs of containers that the state has
	Imported []Body   // that cosplay did not make, and that the state has all the same
}

// Owner is the state's own.
func (p Prior) Owner() Owner {
	o := Owner{Lineage: p.Lineage, Key: p.Key, Serial: p.Serial + 1}
	for _, s := range p.Sessions {
		if s.Body == nil {
			continue
		}
		o.Bodies = append(o.Bodies, s.Body.ID)
		if s.Body.Foreign {
			o.Imported = append(o.Imported, *s.Body)
		}
	}
	return o
}

// GPU finds a GPU in hand.
func (p Prior) GPU(host, uuid string) (PriorGPU, bool) {
	for _, g := range p.GPUs {
		if g.Host == host && g.UUID == uuid {
			return g, true
		}
	}
	return PriorGPU{}, false
}

// Holds reports whether there is anything of ours on a host.
func (p Prior) Holds(host string) bool {
	return slices.ContainsFunc(p.GPUs, func(g PriorGPU) bool { return g.Host == host }) ||
		slices.ContainsFunc(p.Sessions, func(s PriorSession) bool { return s.Slice.Host == host })
}

// Placements are the sessions of a state by host and UUID of the GPU that they are on.
type Placements map[[2]string][]*PriorSession

// Placements returns the sessions by their GPUs, for callers that go through all GPUs.
func (p Prior) Placements() Placements {
	placements := Placements{}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		at := [2]string{s.Slice.Host, s.Slice.GPU}
		placements[at] = append(placements[at], s)
	}
	return placements
}

// On returns the sessions on a GPU.
func (p Placements) On(g GPU) []*PriorSession { return p[[2]string{g.Host, g.UUID}] }

// Session finds a session by address.
func (p Prior) Session(a Address) (PriorSession, bool) {
	i, found := sort.Find(len(p.Sessions), func(i int) int { return a.Compare(p.Sessions[i].Address) })
	if !found {
		return PriorSession{}, false
	}
	return p.Sessions[i], true
}

// CompareGPU orders GPUs by host and UUID.
func CompareGPU(hostA, uuidA, hostB, uuidB string) int {
	return cmp.Or(cmp.Compare(hostA, hostB), cmp.Compare(uuidA, uuidB))
}
