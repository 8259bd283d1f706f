// Package diff compares the three views of GPUs and sessions. Drift is the difference between prior and live, change
// the difference between desired and live. Each is computed on its own. Pure.
package diff

import (
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Diff is the whole difference, sorted, the same for the same inputs.
type Diff struct {
	Drift    []Drift         `json:"drift"`
	Unproven []UnprovenLock  `json:"unproven_clock_locks,omitempty"` // informational: no drift, and no reason for a change
	Unowned  []UnprovenSlice `json:"unproven_slices,omitempty"`      // likewise
	GPUs     []GPUChange     `json:"gpus"`
	Sessions []SessionChange `json:"sessions"`

	// Outputs are those that will have other values. Only the state is written for them.
	Outputs []OutputChange `json:"outputs,omitempty"`

	// Unfinished are the sessions that an interrupted or failed run left missing or incomplete. Unwanted are the
	// missing ones that the configuration does not have any more.
	Unfinished []resource.Address `json:"unfinished,omitempty"`

	// Stuck are the unfinished sessions that are part of the plan, and that it cannot complete.
	Stuck    []resource.Address `json:"stuck,omitempty"`
	Unwanted []resource.Address `json:"unwanted,omitempty"`

	// Down are the expired sessions that stay down. Dropped are those that no block names any more.
	Down    []resource.Expired `json:"down,omitempty"`
	Dropped []resource.Address `json:"dropped,omitempty"`

	// Leftovers are of interrupted runs, of sessions that the state does not know. They are removed.
	Leftovers []resource.Body `json:"leftovers,omitempty"`
}

// Action is what happens to a session or a GPU.
type Action string

const (
	NoOp    Action = "no-op"
	Create  Action = "create"
	Update  Action = "update"
	Replace Action = "replace"
	Delete  Action = "delete"
	Move    Action = "move"   // it gets another address, and no other change
	Import  Action = "import" // a slice or container that exists becomes the session's
	Forget  Action = "forget" // it is not touched, and the state no longer has it
)

// Part is what happens to a session's slice or to its body.
type Part string

const (
	Keep   Part = "keep"
	Make   Part = "make"   // it does not exist
	Remake Part = "remake" // the old one is removed first
	Remove Part = "remove"
	Refit  Part = "refit" // it stays and is brought up to date
)

// SessionChange is what happens to one session.
type SessionChange struct {
	Address   resource.Address       `json:"address"`
	MovedFrom *resource.Address      `json:"moved_from,omitempty"` // its address in the state
	Imported  string                 `json:"imported,omitempty"`   // what becomes its own, by the ID that the user gave
	Action    Action                 `json:"action"`
	Reason    resource.Reason        `json:"reason,omitzero"`
	Slice     Part                   `json:"slice"`
	Body      Part                   `json:"container"`
	Record    bool                   `json:"record,omitempty"` // only its record in the state changes
	Renew     bool                   `json:"renew,omitempty"`  // only its disguise is written again
	Fields    []Field                `json:"fields,omitempty"`
	Before    *resource.PriorSession `json:"before,omitempty"`
	After     *resource.Session      `json:"after,omitempty"`
}

// Key identifies the GPU.
func (c GPUChange) Key() resource.GPUKey { return resource.GPUKey{Host: c.Host, UUID: c.UUID} }

// Runtime is that of the session as it will be, or as it was if it is removed.
func (c SessionChange) Runtime() resource.Runtime {
	if c.After != nil {
		return resource.RuntimeNamed(c.After.Runtime)
	}
	return resource.RuntimeNamed(c.Before.Runtime)
}

// GPUChange is what happens to one physical GPU that the project has acquired, acquires or releases.
type GPUChange struct {
	Host       string             `json:"host"`
	UUID       string             `json:"uuid"`
	Action     Action             `json:"action"`             // Create acquires it, Delete releases it
	Baseline   *resource.Settings `json:"baseline,omitempty"` // to be recorded, with Create
	Holds      resource.Settings  `json:"holds"`              // desired settings that it has already, not yet in the state
	LockBefore bool               `json:"lock_before"`        // with Create: there seems to be a clock lock that is not stated
	LockLost   bool               `json:"lock_lost"`          // the clock lock that was applied is known to be lifted
	Take       bool               `json:"take"`               // the host's ledger does not have the project as a holder
	Whole      bool               `json:"whole"`              // without MIG, so that no other project can hold it
	Others     []resource.Holder  `json:"others,omitempty"`   // the other projects that hold it
	GiveBack   bool               `json:"give_back"`          // no session needs it any more
	Abandon    bool               `json:"abandon,omitempty"`  // with GiveBack: it is released even if a setting cannot be restored
	Settings   resource.Settings  `json:"settings"`           // to be set now
	RunMPS     []resource.MPS     `json:"run_mps,omitempty"`  // the daemons to be started, or to get other defaults
	StopMPS    []resource.MPS     `json:"stop_mps,omitempty"` // the daemons that no session needs any more
	Fields     []Field            `json:"fields,omitempty"`
	Kept       []Field            `json:"kept,omitempty"` // fields that stay as they are, with the reason
}

// Options are what only the configuration and the command line have.
type Options struct {
	// BaselineClockMHz is, by host, the clock lock before cosplay, which NVML cannot read.
	BaselineClockMHz map[string]int `json:"baseline_clock_mhz,omitempty"`
	// AdminClockMHz are those that the admin of this machine states, by UUID.
	AdminClockMHz map[string]int `json:"admin_clock_mhz,omitempty"`

	// AbandonBaseline releases GPUs even if a setting cannot be restored.
	AbandonBaseline bool `json:"abandon_baseline,omitempty"`

	Moved    map[resource.Address]resource.Address `json:"moved,omitempty"`    // by the address now: the address in the state
	Imported map[resource.Address]string           `json:"imported,omitempty"` // the IDs of what becomes theirs
	Forgets  map[resource.Address]bool             `json:"forgets,omitempty"`  // the state drops them, and they are not touched
	Left     map[resource.Address]bool             `json:"left,omitempty"`     // this plan does not touch them
	Replace  map[resource.Address]bool             `json:"replace,omitempty"`  // to be replaced: the user asked for it
	Triggers map[resource.Address][]Trigger        `json:"triggers,omitempty"` // what else replaces a session
	Down     map[resource.Address]bool             `json:"down,omitempty"`     // expired sessions that stay down, although their blocks exist
	Ending   map[resource.Address]resource.Expired `json:"ending,omitempty"`   // sessions that are removed because they have expired
	Grace    resource.Seconds                      `json:"grace_s,omitempty"`  // of their programs

	// Ended are the ends of the sessions whose lifetime has ended.
	Ended map[resource.Address]resource.End `json:"-"`
}

// Trigger is a change of another session that replaces one.
type Trigger struct {
	Of        resource.Reference `json:"of"`
	Attribute string             `json:"attribute,omitempty"` // "" is any
}

// Compare computes the difference. The sessions of the prior have their new addresses already.
func Compare(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) Diff {
	sessions := sessionChanges(desired, prior, live, o)
	kept := prior
	if len(o.Forgets) > 0 {
		kept = prior.Without(o.Forgets) // their slices are foreign from now on
	}
	gpus := touched(gpuChanges(desired, kept, live, o), sessions, o)
	sendLocksAgain(gpus, sessions, desired, kept, o)
	open := unfinished(prior)
	return Diff{
		Drift:     Drifts(prior, live, o.Ended),
		Unproven:  unprovenLocks(prior, live),
		Unowned:   unprovenSlices(prior, live),
		GPUs:      gpus,
		Sessions:  sessions,
		Leftovers: leftovers(desired, live, o),

		Unfinished: open,
		Stuck:      stuck(open, sessions, o),
		Unwanted:   notWanted(prior.Missing, desired, o),
		Down:       slices.DeleteFunc(slices.Clone(prior.Expired), func(e resource.Expired) bool { return !o.Down[e.Address] }),
		Dropped:    dropped(desired, prior, o),
	}
}

// dropped are the expired sessions that the configuration does not have any more. Only a plan of the whole project
// drops them.
func dropped(desired resource.Desired, prior resource.Prior, o Options) []resource.Address {
	expired := prose.Each(prior.Expired, func(e resource.Expired) resource.Address { return e.Address })
	return slices.DeleteFunc(notWanted(expired, desired, o), func(a resource.Address) bool { return o.Down[a] })
}

func unfinished(prior resource.Prior) []resource.Address {
	open := prose.Only(prior.Sessions, resource.PriorSession.Incomplete)
	all := append(resource.Prior{Sessions: open}.Addresses(), prior.Missing...)
	slices.SortFunc(all, resource.Address.Compare)
	return all
}

// stuck are the unfinished sessions that a plan includes and does not change, since their GPUs cannot be read.
func stuck(open []resource.Address, sessions []SessionChange, o Options) []resource.Address {
	return slices.DeleteFunc(slices.Clone(open), func(a resource.Address) bool {
		return o.Left[a] || !slices.ContainsFunc(sessions, func(c SessionChange) bool { return c.Address == a && c.Action == NoOp })
	})
}

// notWanted are the sessions that the configuration does not have any more. Only a plan of the whole project drops
// them.
func notWanted(all []resource.Address, desired resource.Desired, o Options) []resource.Address {
	if len(o.Left) > 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(a resource.Address) bool {
		return slices.ContainsFunc(desired.Sessions, func(s resource.Session) bool { return s.Address == a })
	})
}

// leftovers are those of sessions that the plan does not create: a created session uses its leftover. Only a plan of
// the whole project removes them.
func leftovers(desired resource.Desired, live resource.Live, o Options) []resource.Body {
	var all []resource.Body
	if len(o.Left) > 0 {
		return nil
	}
	for _, h := range live.Hosts {
		for _, c := range h.Leftovers {
			used := func(s resource.Session) bool { return s.Slice.Host == h.Name && s.ID == c.Session }
			if !slices.ContainsFunc(desired.Sessions, used) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Drifted reports whether anything that cosplay applied has changed since.
func (d Diff) Drifted() bool {
	return slices.ContainsFunc(d.Drift, func(one Drift) bool { return !one.Informational })
}

// NotAsApplied reports whether the hosts are not as the last apply had to leave them,
// by drift or because a run was interrupted or failed.
func (d Diff) NotAsApplied() bool { return d.Drifted() || len(d.Unfinished) > 0 }

// Changes reports whether the plan does anything.
func (d Diff) Changes() bool {
	return len(d.Leftovers) > 0 || slices.ContainsFunc(d.GPUs, func(g GPUChange) bool { return g.Action != NoOp }) ||
		slices.ContainsFunc(d.Sessions, func(s SessionChange) bool { return s.Action != NoOp })
}

// sessions are the session before the change and after it, as far as there is one.
func (c SessionChange) sessions() []*resource.Session {
	var all []*resource.Session
	if c.Before != nil {
		all = append(all, &c.Before.Session)
	}
	if c.After != nil {
		all = append(all, c.After)
	}
	return all
}

// gpusOf are the GPUs that the matching sessions are on, before and after.
func gpusOf(changes []SessionChange, matches func(SessionChange) bool) map[resource.GPUKey]bool {
	on := map[resource.GPUKey]bool{}
	for _, c := range changes {
		for _, s := range c.sessions() {
			for _, gpu := range s.On() {
				on[gpu] = on[gpu] || matches(c)
			}
		}
	}
	return on
}
