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

// DesiredGPU has the settings that a GPU must have for its sessions.
type DesiredGPU struct {
	Host     string             `json:"host"`
	UUID     string             `json:"uuid"`
	Settings Settings           `json:"settings"`
	Why      map[Setting]Reason `json:"why,omitempty"` // the reasons behind the settings
	Daemons
}

// GPU finds a GPU.
func (d Desired) GPU(key GPUKey) (DesiredGPU, bool) {
	return findOrdered(d.GPUs, func(g *DesiredGPU) int { return key.Compare(g.Key()) })
}

// Key identifies the GPU.
func (d DesiredGPU) Key() GPUKey { return GPUKey{d.Host, d.UUID} }

// Prior is what the state file records.
type Prior struct {
	Lineage  string            `json:"lineage"`
	Key      string            `json:"key,omitempty"` // secret; hashes that others can read are made with it
	Serial   int               `json:"serial"`
	BootIDs  map[string]string `json:"boot_ids,omitempty"` // by host: the boot in which the state was last true
	GPUs     []PriorGPU        `json:"gpus,omitempty"`
	Sessions []PriorSession    `json:"sessions,omitempty"` // by address
	Outputs  []Output          `json:"outputs,omitempty"`  // by name

	// LastRun is the serial after the last run on the hosts. Commands that only edit the state do not change it. The
	// state knows what runs created on the hosts up to this serial.
	LastRun int `json:"last_run,omitempty"`

	// Missing are the sessions that an interrupted run had to create and did not.
	Missing []Address `json:"missing,omitempty"`

	// Expired are the sessions that were ended since their lifetime had ended, by address. They stay down until their
	// block is edited or the user extends them.
	Expired []Expired `json:"expired,omitempty"`

	// Forgotten names what the state has given up although it still exists: UUIDs of GPUs and slices, IDs of
	// bodies. Without it, an older state that lacks them could not be distinguished from this one.
	Forgotten []string `json:"forgotten,omitempty"`
}

// Output is the value of an output block as the last apply left it.
type Output struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`  // with its type; nothing of a sensitive one
	Sealed    string          `json:"sealed,omitempty"` // of a sensitive one: a hash that only the state's key can make
}

// PriorGPU is a GPU that the project has acquired.
type PriorGPU struct {
	Host     string   `json:"host"`
	UUID     string   `json:"uuid"`
	Baseline Settings `json:"baseline"` // before cosplay first touched it; what destroy restores
	Applied  Settings `json:"applied"`  // what cosplay set and keeps

	// AskedPowerMW is the power limit that the driver rounded to the applied one; nil if it did not round.
	AskedPowerMW *int `json:"asked_power_mw,omitempty"`

	// LockBefore says that the GPU seems to have had a clock lock before cosplay, which neither the configuration nor
	// the admin states. NVML cannot read a lock, so cosplay cannot restore it.
	LockBefore bool `json:"lock_before,omitempty"`

	// ClockUnsure says that a run was interrupted while it set or lifted the clock lock. NVML cannot read whether it
	// did, so the next apply does it again.
	ClockUnsure bool `json:"clock_unsure,omitempty"`

	// ClockRefutedMHz is the SM clock that verify read under load where the lock
	// does not allow it; 0 where verify did not refute the lock.
	ClockRefutedMHz int `json:"clock_refuted_mhz,omitempty"`

	Daemons // that the project runs for it
}

// PriorSession is a session that cosplay has created, wholly or in part.
type PriorSession struct {
	Session
	Handle *Handle `json:"handle,omitempty"`    // of its MIG slice; nil while there is none, or on a whole GPU
	Body   *Body   `json:"container,omitempty"` // nil while there is none

	// Unfinished says that a run was interrupted while it created or removed the body. The next apply does that again.
	Unfinished bool `json:"unfinished,omitempty"`

	UpAt       Moment `json:"up_at,omitempty"`       // when it came up; 0 if an older cosplay created it
	ExtendedTo Moment `json:"extended_to,omitempty"` // it does not expire before; 0 if the user has not extended it
}

// Expired is a session that has ended by itself.
type Expired struct {
	Address Address `json:"address"`
	At      Moment  `json:"at"`
	Why     string  `json:"why"`             // the attribute by which it expired
	Block   string  `json:"block,omitempty"` // hash of what its block said, that only the state's key can make

	ExtendedTo Moment `json:"extended_to,omitempty"` // the user extended it since: it may come up again; 0 if not
}

// Incomplete reports whether there is something that an apply has to complete.
func (s PriorSession) Incomplete() bool { return s.Body == nil || s.Unfinished }

// Live is what NVML and the runtimes of the hosts report.
type Live struct {
	Hosts []Host `json:"hosts"` // by name
}

// UnknownDriver is the version of a driver that does not report it.
const UnknownDriver = "unknown"

// Host is a machine with GPUs, as read.
type Host struct {
	Name      string  `json:"name"`
	Simulated string  `json:"simulated,omitempty"` // what is simulated: "8 x h200"
	Library   string  `json:"library"`             // path of the NVML library
	Driver    string  `json:"driver"`              // driver version, or UnknownDriver
	BootID    string  `json:"boot_id"`
	Runtime   string  `json:"runtime"`             // where new sessions run: "process", "docker"
	Elsewhere bool    `json:"elsewhere,omitempty"` // it is another machine
	Engine    *Engine `json:"engine,omitempty"`    // nil where no session needs one, or it does not answer
	Silent    string  `json:"silent,omitempty"`    // why the sessions could not be read: they are as the state has them

	// Unreachable is why nothing of a host on another machine could be read: it has no GPUs, and its sessions are as the
	// state has them. Remedy is what to do.
	Unreachable string `json:"unreachable,omitempty"`
	Remedy      string `json:"remedy,omitempty"`

	GPUs      []GPU      `json:"gpus"`
	Unusable  []Unusable `json:"unusable,omitempty"` // GPUs that do not answer
	Ledger    []Page     `json:"ledger,omitempty"`   // GPUs that projects hold
	Queue     []Waiting  `json:"queue,omitempty"`    // who waits for room, in order
	Released  []string   `json:"released,omitempty"` // UUIDs of GPUs that the state has and that its project has released
	MPS       MPSService `json:"mps,omitzero"`
	Unbooked  bool       `json:"unbooked,omitempty"` // no ledger is kept, since nothing of the host may be changed
	Admin     Admin      `json:"admin,omitzero"`
	Bodies    []Body     `json:"bodies,omitempty"`    // by session
	Leftovers []Body     `json:"leftovers,omitempty"` // of interrupted runs: containers that never ran, or without an ID their folders

	positions map[string]int // in GPUs, by UUID, as Index left them
}

// Index makes it fast to find the GPUs of a host. A host without an index, or whose GPUs have changed since, is as correct.
func (h *Host) Index() {
	h.positions = make(map[string]int, len(h.GPUs))
	for i := range h.GPUs {
		h.positions[h.GPUs[i].UUID] = i
	}
}

// Engine is a container engine.
type Engine struct {
	Name   string            `json:"name"`             // "Docker 20.10.24"
	Access string            `json:"access"`           // how a slice comes into a container, in words: "CDI by NVIDIA's runtime"
	Images map[string]string `json:"images,omitempty"` // by name with tag: their IDs
	Names  []string          `json:"names,omitempty"`  // of containers that other states of cosplay have
	Lifted []string          `json:"lifted,omitempty"` // what of the engine's isolation sessions run without, in words

	// Offered is, for a name whose image is always pulled and to which the registry gives another image than the engine,
	// that image: its name with its digest.
	Offered map[string]string `json:"offered,omitempty"`
}

// find returns the first element that matches.
func find[T any](all []T, matches func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(all, matches)
	if i < 0 {
		return found, false
	}
	return all[i], true
}

// findOrdered finds an element of a list that is in order, as the lists of a host and of a state are. In another list it
// takes longer.
func findOrdered[T any](all []T, compare func(*T) int) (found T, ok bool) {
	i, ok := indexOrdered(all, compare)
	if !ok {
		return found, false
	}
	return all[i], true
}

func indexOrdered[T any](all []T, compare func(*T) int) (i int, ok bool) {
	i, ok = sort.Find(len(all), func(i int) int { return compare(&all[i]) })
	for n := 0; !ok && n < len(all); n++ {
		i, ok = n, compare(&all[n]) == 0
	}
	return i, ok
}

// Host finds a host by name.
func (l Live) Host(name string) (Host, bool) {
	h := l.host(name)
	return *h, h.Name != ""
}

// host returns an empty host if there is none with the name.
func (l Live) host(name string) *Host {
	i, ok := indexOrdered(l.Hosts, func(h *Host) int { return cmp.Compare(name, h.Name) })
	if !ok {
		return &Host{}
	}
	return &l.Hosts[i]
}

// GPU finds a GPU by its host's name and its UUID.
func (l Live) GPU(host, uuid string) (GPU, bool) {
	h := l.host(host)
	gpus := h.GPUs
	if i, known := h.positions[uuid]; known && i < len(gpus) && gpus[i].UUID == uuid {
		return gpus[i], true
	}
	for i := range gpus { // without a copy of each GPU, which is large
		if gpus[i].UUID == uuid {
			return gpus[i], true
		}
	}
	return GPU{}, false
}

// Unusable finds the error of a GPU that does not answer. A GPU that does not report its UUID may be any that is
// missing.
func (l Live) Unusable(host, uuid string) (Unusable, bool) {
	if _, answers := l.GPU(host, uuid); answers {
		return Unusable{}, false
	}
	unusable := l.host(host).Unusable
	u, is := find(unusable, func(u Unusable) bool { return u.UUID == uuid })
	if !is {
		u, is = find(unusable, func(u Unusable) bool { return u.UUID == "" })
	}
	return u, is
}

// NoGPU is the advice on a GPU that Live.GPU does not find, to follow "the GPU is".
func (l Live) NoGPU(host, uuid string) prose.Advice {
	if u, is := l.Unusable(host, uuid); is {
		return u.Advice()
	}
	return MissingGPU
}

// MissingGPU is the advice on a GPU that no driver lists.
var MissingGPU = prose.Advice{What: "missing", Fix: "read dmesg: the GPU was removed, fell off the bus, or is hidden by the driver"}

// Sliced finds a GPU whose slices can be read.
func (l Live) Sliced(host, uuid string) (GPU, bool) {
	g, there := l.GPU(host, uuid)
	return g, there && !g.Unread(FeatureMIG)
}

// Body finds the body of a session by runtime and the session's ID.
func (l Live) Body(host, runtime, session string) (Body, bool) {
	bodies := l.host(host).Bodies
	i, found := slices.BinarySearchFunc(bodies, Body{Runtime: runtime, Session: session}, Body.Compare)
	if !found {
		return Body{}, false
	}
	return bodies[i], true
}

// Compare orders the bodies of a host by session, then by runtime.
func (c Body) Compare(o Body) int {
	return cmp.Or(cmp.Compare(c.Session, o.Session), cmp.Compare(c.Runtime, o.Runtime))
}

// Owner identifies what a state owns: a body is its own if it has the state's lineage and hashes that only the
// state's key can make, or if the state has its ID.
type Owner struct {
	Lineage  string
	Key      string
	Serial   int      // of the state after this run
	Bodies   []string // IDs of bodies that the state has
	Imported []Body   // bodies in the state that cosplay did not create

	Users   map[string]User   // of the sessions in them, by the body's ID
	Names   map[string]string // of bodies that the configuration names, by session ID
	Stamped map[string]*Body  // bodies with a stamp, by session ID
}

// Owner identifies what the state owns.
func (p Prior) Owner() Owner {
	o := Owner{Lineage: p.Lineage, Key: p.Key, Serial: p.Serial + 1, Users: map[string]User{}, Names: map[string]string{}, Stamped: map[string]*Body{}}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		if s.Spec.Name != "" {
			o.Names[s.ID] = s.Spec.Name
		}
		if s.Body == nil {
			continue
		}
		o.Bodies = append(o.Bodies, s.Body.ID)
		if s.Body.Foreign {
			o.Imported, o.Users[s.Body.ID] = append(o.Imported, *s.Body), s.Spec.User
		}
		if s.Body.Stamp != "" {
			o.Stamped[s.ID] = s.Body
		}
	}
	return o
}

// GPU finds a GPU that the project has acquired.
func (p Prior) GPU(host, uuid string) (PriorGPU, bool) {
	key := GPUKey{host, uuid}
	return findOrdered(p.GPUs, func(g *PriorGPU) int { return key.Compare(g.Key()) })
}

// Holds reports whether the state has a GPU or a session on a host.
func (p Prior) Holds(host string) bool {
	return slices.ContainsFunc(p.GPUs, func(g PriorGPU) bool { return g.Host == host }) ||
		slices.ContainsFunc(p.Sessions, func(s PriorSession) bool { return s.Slice.Host == host })
}

// Bodies are the bodies of the sessions on a host, as they were recorded. They are not nil.
func (p Prior) Bodies(host string) []Body {
	all := []Body{}
	for _, s := range p.Sessions {
		if s.Slice.Host == host && s.Body != nil {
			all = append(all, *s.Body)
		}
	}
	return all
}

// Placements are the sessions of a state by the GPU that they are on.
type Placements map[GPUKey][]*PriorSession

// Placements returns the sessions by their GPUs, for callers that go through all GPUs.
func (p Prior) Placements() Placements {
	placements := Placements{}
	for i := range p.Sessions {
		s := &p.Sessions[i]
		for _, gpu := range s.On() {
			placements[gpu] = append(placements[gpu], s)
		}
	}
	return placements
}

// On returns the sessions on a GPU.
func (p Placements) On(g GPU) []*PriorSession { return p[GPUKey{g.Host, g.UUID}] }

// Addresses are those of the sessions.
func (p Prior) Addresses() []Address {
	return prose.Each(p.Sessions, func(s PriorSession) Address { return s.Address })
}

// Session finds a session by address.
func (p Prior) Session(a Address) (PriorSession, bool) {
	s := p.Lookup(a)
	if s == nil {
		return PriorSession{}, false
	}
	return *s, true
}

// Lookup finds a session by address without a copy, which is large; nil if there is none.
func (p Prior) Lookup(a Address) *PriorSession {
	i, found := sort.Find(len(p.Sessions), func(i int) int { return a.Compare(p.Sessions[i].Address) })
	if !found {
		return nil
	}
	return &p.Sessions[i]
}

// HasExpired finds the record of a session that has ended by itself.
func (p Prior) HasExpired(a Address) (Expired, bool) {
	return find(p.Expired, func(e Expired) bool { return e.Address == a })
}

// Expire records that a session has ended by itself.
func (p Prior) Expire(e Expired) Prior {
	p = p.Unexpire(e.Address)
	p.Expired = append(p.Expired, e)
	slices.SortFunc(p.Expired, func(a, b Expired) int { return a.Address.Compare(b.Address) })
	return p
}

// Unexpire drops such a record.
func (p Prior) Unexpire(a Address) Prior {
	p.Expired = slices.DeleteFunc(slices.Clone(p.Expired), func(e Expired) bool { return e.Address == a })
	return p
}

// GPUKey identifies a GPU. It can be a map key.
type GPUKey struct{ Host, UUID string }

// Compare orders GPUs by host and UUID.
func (k GPUKey) Compare(o GPUKey) int {
	return cmp.Or(cmp.Compare(k.Host, o.Host), cmp.Compare(k.UUID, o.UUID))
}

// Key identifies the GPU.
func (g PriorGPU) Key() GPUKey { return GPUKey{g.Host, g.UUID} }

// Compare orders GPUs by host and UUID.
func (g PriorGPU) Compare(o PriorGPU) int { return g.Key().Compare(o.Key()) }

// On identifies the GPU of the slice.
func (s Slice) On() GPUKey { return GPUKey{s.Host, s.GPU} }
