// Package config turns the text of a project's *.hcl files into an Intent: what
// the user wrote, evaluated, with the place in the files that every value came
// from. It reads no file, asks no environment and knows no hardware: what it
// needs of them comes in through Options. Load tells all mistakes of all files at
// once, each with its place and what to do about it.
package config

import (
	"maps"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/resource"
)

// LocalHost is the host of a project that declares none: this machine.
const LocalHost = "local"

// Intent is what the files ask for.
type Intent struct {
	State    string    `json:"state,omitempty"` // absolute path of the state file; "" where the files say nothing of it
	Hosts    []Host    `json:"hosts"`           // by name; never empty
	Sessions []Session `json:"sessions"`        // by address

	Variables []Variable `json:"-"`                  // by name
	Missed    []string   `json:"-"`                  // variables without a value, by name
	Moves     []Move     `json:"moves,omitempty"`    // without a cycle, no two from or to the same
	Removals  []Removal  `json:"removals,omitempty"` // of sessions that are not there
	Imports   []Import   `json:"imports,omitempty"`  // into sessions that are there

	Files map[string]*hcl.File `json:"-"` // as parsed, for those who show diagnostics with their source

	l *loader // evaluates outputs and checks, once there are sessions
}

// Host is a machine with GPUs, and what cosplay may do to it.
type Host struct {
	Name             string        `json:"name"`
	Simulate         string        `json:"simulate,omitempty"` // what to simulate: "8 x h200"; "" is real hardware
	NVML             string        `json:"nvml,omitempty"`     // absolute path of the NVML library; "" is the system's
	Runtime          string        `json:"runtime"`            // RuntimeAuto, or the name of a registered one
	GPUs             []GPUSelector `json:"gpus,omitempty"`     // these only; empty means all
	Manage           Manage        `json:"manage"`
	BaselineClockMHz *int          `json:"baseline_clock_mhz,omitempty"` // the clock lock from before cosplay, where told
	SlowNeighbours   bool          `json:"slow_neighbours"`

	Open []string `json:"-"` // attributes whose value is not known, for a variable without one

	Ranges Ranges `json:"-"` // empty for the implicit host
}

// RuntimeAuto leaves it to cosplay where sessions run.
const RuntimeAuto = "auto"

// Manage says what cosplay may change on a host's GPUs.
type Manage struct {
	MIGMode     bool `json:"mig_mode"`
	Slices      bool `json:"slices"`
	Clocks      bool `json:"clocks"`
	Power       bool `json:"power"`
	Persistence bool `json:"persistence"`
}

// ManageAll is what a host without "manage" allows.
func ManageAll() Manage {
	return Manage{MIGMode: true, Slices: true, Clocks: true, Power: true, Persistence: true}
}

// Session is one instance of a session block. Instances of one block share
// their Command, Env and Keys where these are the same: they are for reading
// only.
type Session struct {
	Address resource.Address `json:"address"`
	Target  resource.Target  `json:"target"`
	Host    string           `json:"host"`          // name of one of the Intent's hosts
	GPU     *GPUSelector     `json:"gpu,omitempty"` // nil leaves the choice to placement
	resource.Program
	Fit resource.FitOptions `json:"fit"`

	// Secret is the part of the environment that is not to be shown, by name.
	// Where Sealed has its hash, that counts when it is compared.
	Secret map[string]string `json:"-"`
	Sealed map[string]string `json:"-"`

	// Box is what counts where the session runs in a container. Its User and its
	// SSH.AuthorizedKeys are empty: they take more than the files to know.
	Spec resource.ContainerSpec `json:"box"`

	// Keys are who may log in: absolute paths of .pub files, which start with /,
	// and public keys as one line each. Without any the choice is cosplay's.
	Keys []string `json:"authorized_keys,omitempty"`

	// DependsOn are names of other session blocks, in order, without a cycle.
	DependsOn []string `json:"depends_on,omitempty"`

	Lifecycle Lifecycle `json:"lifecycle,omitzero"`

	Open []string `json:"-"` // attributes whose value is not known, for a variable without one

	Ranges Ranges `json:"-"`
}

// Ranges tells where a block and its values stand in the files.
type Ranges struct {
	Decl   hcl.Range            // the block's header: session "worker"
	values map[string]hcl.Range // by attribute: "target", "fit.tolerance"; by block inside: "fit"
}

// At is where an attribute's value stands, like "fit.tolerance" or, counted
// from 0 where there can be several, "volume[0].source". For a block inside, like
// "fit", it is the word itself. What the block leaves out is at its header.
func (r Ranges) At(attribute string) hcl.Range {
	if at, ok := r.values[attribute]; ok {
		return at
	}
	return r.Decl
}

// without is the same for a block that leaves an attribute out.
func (r Ranges) without(attribute string) Ranges {
	values := maps.Clone(r.values)
	delete(values, attribute)
	return Ranges{Decl: r.Decl, values: values}
}

// has reports whether the block says anything about an attribute.
func (r Ranges) has(attribute string) bool {
	_, ok := r.values[attribute]
	return ok
}
