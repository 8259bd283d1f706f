// Package config turns the text of a project's *.hcl files into an Intent: the evaluated configuration, with the
// source range of every value. It reads no file, no environment and no hardware; Options provides what it needs of
// them. Load reports all mistakes of all files at once, each with its place and a fix.
package config

import (
	"slices"
	"sort"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/resource"
)

// LocalHost is the name of the host of a project that declares none: this machine.
const LocalHost = "local"

// Intent is the evaluated configuration.
type Intent struct {
	State    string    `json:"state,omitempty"` // absolute path of the state file; "" if the files do not set it
	Hosts    []Host    `json:"hosts"`           // by name; never empty
	Sessions []Session `json:"sessions"`        // by address

	Variables []Variable `json:"-"`                  // by name
	Missed    []string   `json:"-"`                  // variables without a value, by name
	Moves     []Move     `json:"moves,omitempty"`    // without a cycle, no two from or to the same
	Removals  []Removal  `json:"removals,omitempty"` // of sessions that the files do not declare
	Imports   []Import   `json:"imports,omitempty"`  // into sessions that the files declare

	Files map[string]*hcl.File `json:"-"` // the parsed files, to show diagnostics with their source

	l *loader // evaluates outputs and checks, once live attributes are known
}

// Host is a machine with GPUs, and what cosplay may change on it.
type Host struct {
	Name             string        `json:"name"`
	Simulate         string        `json:"simulate,omitempty"`   // what to simulate: "8 x h200"; "" is real hardware
	Connect          string        `json:"connect,omitempty"`    // "ssh://ada@gpu1"; "" is this machine
	Kubernetes       string        `json:"kubernetes,omitempty"` // absolute path of a captured cluster; "" is a machine
	Namespace        string        `json:"namespace,omitempty"`  // of the sessions of a cluster
	Compute          string        `json:"compute,omitempty"`    // "" where the block has none; only of a simulated host
	NVML             string        `json:"nvml,omitempty"`       // absolute path of the NVML library; "" is the system's
	Runtime          string        `json:"runtime"`              // RuntimeAuto, or the name of a registered one
	GPUs             []GPUSelector `json:"gpus,omitempty"`       // the only GPUs to use; empty means all
	Manage           Manage        `json:"manage"`
	BaselineClockMHz *int          `json:"baseline_clock_mhz,omitempty"` // the clock lock that the user states was set before cosplay
	SlowNeighbours   bool          `json:"slow_neighbours"`

	Sharing []resource.Sharing `json:"sharing,omitempty"` // what sessions may have; empty is everything

	TimeSlice string `json:"timeslice,omitempty"` // one of resource.TimeSlices; "" leaves it

	Open []string `json:"-"` // attributes with an unknown value, because a variable has none

	Ranges Ranges `json:"-"` // empty for the implicit host
}

// Unsaid is the kind of sharing of a session of the host whose block does not state it. One with a fraction has no whole
// GPU; where MIG has no room, it shares one by time slices.
func (h Host) Unsaid(s Session) resource.Sharing {
	may, fraction := h.Sharing, s.Fraction > 0
	mig, whole := slices.Contains(may, resource.SharingMIG), slices.Contains(may, resource.SharingExclusive) && !fraction
	switch {
	case len(may) == 0, mig && (whole || fraction && slices.Contains(may, resource.SharingTime)):
		return resource.SharingAuto
	case mig:
		return resource.SharingMIG
	case whole:
		return resource.SharingExclusive
	case fraction: // neither has a part of the host's own GPU
		for _, kind := range may {
			if kind != resource.SharingExclusive && kind != resource.SharingCompute {
				return kind
			}
		}
	}
	return may[0]
}

// Host is the host of a name; nil without one.
func (i *Intent) Host(name string) *Host {
	return first(i.Hosts, func(h *Host) bool { return h.Name == name })
}

// Session is the session of an address; nil without one.
func (i *Intent) Session(a resource.Address) *Session {
	at, found := sort.Find(len(i.Sessions), func(n int) int { return a.Compare(i.Sessions[n].Address) })
	if !found {
		return nil
	}
	return &i.Sessions[at]
}

// UsesMPS reports whether a session of a host gets its part of a GPU by MPS.
func (i *Intent) UsesMPS(h Host) bool {
	return slices.ContainsFunc(i.Sessions, func(s Session) bool {
		return s.MayBeOn(h.Name) && (s.Sharing == resource.SharingMPS || s.Sharing == resource.SharingAuto && s.Slice == "" && h.Unsaid(s) == resource.SharingMPS)
	})
}

// MayBeOn reports whether a session is on a host, or may be.
func (s Session) MayBeOn(host string) bool {
	return s.Host == host || s.Host == "" && slices.Contains(s.Hosts, host)
}

// mayHave are the hosts on which a session is, or may be.
func (s Session) mayHave() []string {
	if s.Host == "" {
		return s.Hosts
	}
	return []string{s.Host}
}

// RuntimeAuto lets cosplay choose the runtime.
const RuntimeAuto = "auto"

// What a simulated host does where a program computes.
const (
	ComputeCPU = "cpu" // the default: PyTorch's device "cuda" computes on the CPU; a launch of a kernel fails
	// ComputeShapes is ComputeCPU without computing: the tensors of the device have shapes and memory, and no values.
	ComputeShapes = "shapes"
	ComputeNone   = "none" // a launch of a kernel succeeds, and nothing is computed
)

// Computes are the values of compute.
func Computes() []string { return []string{ComputeCPU, ComputeShapes, ComputeNone} }

// Manage states what cosplay may change on a host's GPUs.
type Manage struct {
	Settings resource.SettingSet
	Slices   bool
}

// ManageAll is the permission of a host without "manage".
func ManageAll() (m Manage) {
	for _, word := range resource.ManageWords() {
		m.permit(word)
	}
	return m
}

// permit adds what a word of "manage" permits.
func (m *Manage) permit(word string) {
	m.Slices = m.Slices || word == resource.SlicesWord
	for _, s := range resource.AllSettings {
		m.Settings[s] = m.Settings[s] || word == s.ManageWord()
	}
}

// Session is one instance of a session block. Instances of one block share equal Command, Env and Keys values:
// callers must not modify them.
type Session struct {
	Address resource.Address `json:"address"`
	Target  resource.Target  `json:"target"`
	Host    string           `json:"host"`            // name of one of the Intent's hosts; "" until one of Hosts is chosen
	Hosts   []string         `json:"hosts,omitempty"` // of which cosplay chooses one; nil where the block says which, or there is one
	GPU     *GPUSelector     `json:"gpu,omitempty"`   // nil leaves the choice to placement
	resource.Program
	Fit resource.FitOptions `json:"fit"`

	Fraction float64          `json:"fraction,omitempty"` // of the host's own GPU, which becomes the target; 0 for a target
	Sharing  resource.Sharing `json:"sharing,omitempty"`
	GPUs     int              `json:"gpus,omitempty"` // 0 is one

	Oversubscribe bool `json:"oversubscribe,omitempty"`

	Slice string `json:"slice,omitempty"` // the profile of its MIG slice; "" leaves the choice to placement

	// Secret is the sensitive part of the environment, by name. If Sealed has the hash of a value, comparisons use
	// the hash.
	Secret map[string]string `json:"-"`
	Sealed map[string]string `json:"-"`

	// Spec applies if the session runs in a container. Its User and SSH.AuthorizedKeys are empty: the files do not state
	// them.
	Spec resource.ContainerSpec `json:"box"`

	// Keys are the keys that may log in: absolute paths of .pub files, which start with /, and public keys with one
	// line each. If there are none, cosplay chooses.
	Keys []string `json:"authorized_keys,omitempty"`

	// DependsOn has the names of other session blocks, in order and without a cycle.
	DependsOn []string `json:"depends_on,omitempty"`

	Lifecycle Lifecycle `json:"lifecycle,omitzero"`

	Open []string `json:"-"` // attributes with an unknown value, because a variable has none

	Ranges Ranges `json:"-"`
}

// Ranges gives the source ranges of a block and its values.
type Ranges struct {
	Decl   hcl.Range // the block's header: session "worker"
	values []valueRange
}

// valueRange is where a block has the value of an attribute, "target" or "fit.tolerance", or a block inside, "fit".
type valueRange struct {
	of string
	at hcl.Range
}

// At returns the source range of an attribute's value, for a path like "fit.tolerance" or, counted from 0 if there
// can be several, "volume[0].source". For a nested block, like "fit", it returns the range of that word. For an
// attribute that the block leaves out, it returns the block's header.
func (r Ranges) At(attribute string) hcl.Range {
	if i := r.index(attribute); i >= 0 {
		return r.values[i].at
	}
	return r.Decl
}

// Of is At for a diagnostic: nil in a block that no file has.
func (r Ranges) Of(attribute string) *hcl.Range {
	if at := r.At(attribute); at != (hcl.Range{}) {
		return &at
	}
	return nil
}

// index finds the value of an attribute, of which a block has few; -1 if it leaves the attribute out.
func (r Ranges) index(attribute string) int {
	return slices.IndexFunc(r.values, func(v valueRange) bool { return v.of == attribute })
}

// without does the same for a block that leaves an attribute out.
func (r Ranges) without(attribute string) Ranges {
	return Ranges{Decl: r.Decl, values: slices.DeleteFunc(slices.Clone(r.values), func(v valueRange) bool { return v.of == attribute })}
}

// has reports whether the block sets an attribute.
func (r Ranges) has(attribute string) bool {
	return r.index(attribute) >= 0
}
