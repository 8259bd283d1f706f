// Package place puts all sessions onto all GPUs at once: which GPU, which
// slice, at which clock. It is a function of values: the same fleet and the same
// sessions give the same placement in whatever order they come, and a placement
// fed back as kept gives itself.
//
// In order of importance: what runs stays where it is; hard limits (memory,
// max_error, legal MIG placements, what others use); the fewest GPUs, as long as
// sharing a clock costs no session more than its tolerance over its error alone;
// the least error beyond a tolerance; the smallest slices; the least error; the
// least fragmentation.
//
// Where the GPUs there are do not suffice at the tolerances, sharing may cost
// more, as little more as possible, and a warning says what it costs whom. What
// does not fit even then is refused.
package place

import "cosplay/internal/resource"

// Request is a session to be placed.
type Request struct {
	Address resource.Address
	Want    resource.Request
	Target  resource.Target
	Kept    *resource.Slice // where it runs now with the same request: it stays there
	Fixed   *resource.Slice // an existing slice that the user named: it goes there
}

// settled is where a request goes without a choice; nil leaves the choice.
func (r Request) settled() *resource.Slice {
	if r.Kept != nil {
		return r.Kept
	}
	return r.Fixed
}

// GPU is one physical GPU as placement may use it.
type GPU struct {
	resource.GPU
	Foreign          []resource.LiveSlice // slices that are not ours: planned around, never touched
	FixedClockMHz    *int                 // the SM clock, where it may not be changed
	FixedMIG         bool                 // the MIG mode may not be changed
	FixedPower       bool                 // the power limit may not be changed
	FixedPersistence bool                 // the persistence mode may not be changed
	NoSlices         bool                 // no slice may be made
	LockMHz          *int                 // the clock lock that we hold, 0 for unlocked: kept while nobody new comes
	Busy             bool                 // foreign processes use it: the MIG mode cannot be switched
}

// Placed is a session with its slice.
type Placed struct {
	Address resource.Address
	Slice   resource.Slice
	Fit     resource.Fit // at the GPU's clock
	Alone   resource.Fit // what it would get with the fleet to itself
}

// Setup is how a GPU with sessions has to be set. Fields of Settings are nil
// where the setting may not be changed or the card does not have it.
type Setup struct {
	Host     string
	UUID     string
	Settings resource.Settings
	Why      resource.Why
}

// Refusal says which sessions find no place, and what would help.
type Refusal struct {
	Addresses []resource.Address
	Reason    string
	Remedy    string
}

// Result is a placement: sessions by address, GPUs by host and index. GPUs on
// which nobody sits are not in it. It holds what fits even if some is refused.
type Result struct {
	Placed   []Placed
	GPUs     []Setup
	Refused  []Refusal
	Warnings []string
}

// Place puts requests onto gpus. It changes neither.
func Place(gpus []GPU, requests []Request) Result {
	f := newFleet(gpus, requests)
	f.settle()
	f.measure()
	f.give(f.pack())
	return f.result()
}
