// Package place places all sessions of a host on its GPUs at once: it chooses the GPU, the slice and the clock. It is a
// function of values: the same fleet and the same sessions give the same placement in any order, and a placement that
// is passed in again as Kept does not change.
//
// In order of importance: running sessions stay in place; those whose slots are named get these; hard limits hold (memory, max_error, legal MIG placements,
// foreign slices and processes); as few GPUs as possible, provided that a shared clock costs no session more than its
// tolerance over its error alone; the smallest error beyond a tolerance; the smallest slices; the smallest error; the
// least fragmentation.
//
// If the sessions do not fit on the GPUs within their tolerances, the error that a shared clock adds to a session may
// exceed its tolerance. The largest excess is then as small as possible, and a warning names the sessions and their
// errors. Sessions for which there is no room even then are refused.
package place

import (
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Request is a session to be placed.
type Request struct {
	Address resource.Address
	Want    resource.Request
	Target  resource.Target
	Kept    *resource.Slice // its present slice, if the request has not changed: the session stays there
	Hosts   []string        // without a host in Want: those that it may have, in their order

	KeptMore []resource.Slice // with Kept: those of its other devices
	device   int              // which of its devices this is a request for
	single   bool             // for one device of several, on a GPU that is given
}

// hosts are those that the session may have.
func (r Request) hosts() []string {
	if r.Want.Host == "" && r.Hosts != nil {
		return r.Hosts
	}
	return []string{r.Want.Host}
}

// GPU is one physical GPU, with the restrictions on its use.
type GPU struct {
	resource.GPU
	Foreign       []resource.LiveSlice    // slices that cosplay does not own: placement never changes them
	Mine          int                     // how many of these are of other projects of the same user
	FixedClockMHz *int                    // the SM clock, if cosplay may not change it
	Fixed         resource.SettingSet     // the other settings that may not be changed
	Base          resource.Settings       // those that cosplay has set, as they were before
	Again         resource.Settings       // those of Fixed that other projects have set too, and that the GPU has lost: they are set as they were
	WantTimeSlice *int                    // the length of time slices for sessions that share it by them, if the host block states one
	NoSlices      bool                    // cosplay may not create slices
	Sharing       []resource.Sharing      // the kinds that the host permits; empty is everything
	LockMHz       *int                    // the clock lock that the project holds, 0 for unlocked: kept until a new session arrives
	Busy          bool                    // foreign processes use it, so its MIG mode cannot be switched
	ForeignMPS    *resource.ForeignDaemon // an MPS daemon that the project does not run, so that it runs none there
	ofSeveral     bool                    // hosts: messages name its host
	Hindered      bool                    // without them it could have slices: only a session that states max_error gets the whole of it
}

// Placed is a session with its slice.
type Placed struct {
	Address resource.Address
	Want    resource.Request // what it was placed by
	Slice   resource.Slice
	More    []resource.Slice // of its other devices
	Fit     resource.Fit     // at the GPU's clock
	Alone   resource.Fit     // the fit if it had all GPUs to itself
}

// Setup is the settings of a GPU with sessions. A field of Settings is nil if cosplay may not change the setting or
// the card does not have it.
type Setup struct {
	Host     string
	UUID     string
	Settings resource.Settings
	Why      map[resource.Setting]resource.Reason
}

// Refusal states which sessions do not fit. Fix lists what would help; it is no imperative.
type Refusal struct {
	Addresses []resource.Address
	prose.Advice
}

// Result is a placement: sessions sorted by address, GPUs by host and index. It leaves out GPUs without sessions. It
// contains the sessions that fit even if others are refused.
type Result struct {
	Placed   []Placed
	GPUs     []Setup
	Refused  []Refusal
	Warnings []Warning
}

// Warning is what a user has to know of a placement.
type Warning struct {
	Text     string
	Sessions []resource.Address // whose fit it is about; none for another subject
	Note     string             // the same in a few words, to be shown beside each session
	Far      bool               // the fit is more than farOff worse than alone, or others use the whole GPU
}

// farOff is the error over that of the best fit alone of which users are warned again after an apply.
const farOff = 0.25

// Place places requests on gpus. It modifies neither argument.
func Place(gpus []GPU, requests []Request) Result {
	r := Result{Placed: make([]Placed, 0, len(requests))}
	for _, d := range divide(naming(gpus), requests) {
		one := placeCrowded(d.gpus, d.requests)
		r.Placed, r.GPUs = append(r.Placed, one.Placed...), append(r.GPUs, one.GPUs...)
		r.Refused, r.Warnings = append(r.Refused, one.Refused...), append(r.Warnings, one.Warnings...)
	}
	r.sort(gpus)
	return r
}

func (f *fleet) place() Result {
	f.settle()
	f.measure()
	f.pin()
	f.give(f.pack())
	return f.result()
}
