// Package diff compares the three views of the world. Drift is what the state remembers against what is there; change
// is what the file wants against what is there. They are computed apart and never mixed. Pure.
package diff

import (
	"slices"

	"cosplay/internal/resource"
)

// Diff is the whole difference, sorted, the same for the same inputs.
type Diff struct {
	Drift    []Drift         `json:"drift"`
	Unproven []UnprovenLock  `json:"unproven_clock_locks,omitempty"` // information: no drift, and no reason to change anything
	Unowned  []UnprovenSlice `json:"unproven_slices,omitempty"`      // likewise
	GPUs     []GPUChange     `json:"gpus"`
	Sessions []SessionChange `json:"sessions"`

	// Outputs are those that will have other values; nothing is done for them but to write the state.
	Outputs []OutputChange `json:"outputs,omitempty"`

	// Unfinished are the sessions that an interrupted or failed run left missing or incomplete. Of these, the missing
	// that are not to be created any more are unwanted.
	Unfinished []resource.Address `json:"unfinished,omitempty"`

	// Stuck are those of them that the plan is about and cannot complete.
	Stuck    []resource.Address `json:"stuck,omitempty"`
	Unwanted []resource.Address `json:"unwanted,omitempty"`

	// Leftovers are of interrupted runs, of sessions that the state does not know. They are removed.
	Leftovers []resource.Body `json:"strays,omitempty"`
}

// Action is what happens to a session or a GPU.
type Action string

// The actions.
const (
	NoOp    Action = "no-op"
	Create  Action = "create"
	Update  Action = "update"
	Replace Action = "replace"
	Delete  Action = "delete"
	Move    Action = "move"   // another address, and nothing else
	Import  Action = "import" // what exists becomes a session's, and nothing else
	Forget  Action = "forget" // it is left as it is, and the state no longer has it
)

// Part is what happens to a session's slice or to its container.
type Part string

// The fates of a part.
const (
	Keep   Part = "keep"
	Make   Part = "make"   // it is not there
	Remake Part = "remake" // the old one goes first
	Remove Part = "remove"
	Refit  Part = "refit" // it stays and gets new content
)

// SessionChange is what happens to one session.
type SessionChange struct {
	Address   resource.Address       `json:"address"`
	MovedFrom *resource.Address      `json:"moved_from,omitempty"` // the address that the state still has
	Imported  string                 `json:"imported,omitempty"`   // what becomes its own, by the ID that was asked for
	Action    Action                 `json:"action"`
	Reason    resource.Reason        `json:"reason,omitzero"`
	Slice     Part                   `json:"slice"`
	Body      Part                   `json:"container"`
	Record    bool                   `json:"record,omitempty"` // only what the state knows of it changes
	Renew     bool                   `json:"renew,omitempty"`  // only its disguise is made anew, by another cosplay or for another driver
	Fields    []Field                `json:"fields,omitempty"`
	Before    *resource.PriorSession `json:"before,omitempty"`
	After     *resource.Session      `json:"after,omitempty"`
}

// Runtime is that of the session as it will be, or as it was if it is removed.
func (c SessionChange) Runtime() resource.Runtime {
	if c.After != nil {
		return resource.RuntimeNamed(c.After.Runtime)
	}
	return resource.RuntimeNamed(c.Before.Runtime)
}

// GPUChange is what happens to one physical GPU that cosplay has, takes or gives back.
type GPUChange struct {
	Host       string             `json:"host"`
	UUID       string             `json:"uuid"`
	Action     Action             `json:"action"`             // Create takes it, Delete gives it back for good
	Baseline   *resource.Settings `json:"baseline,omitempty"` // to be recorded, with Create
	Holds      resource.Settings  `json:"holds"`              // wanted and so already, not yet in the state
	LockBefore bool               `json:"lock_before"`        // there seems to be a clock lock that nobody told, with Create
	LockLost   bool               `json:"lock_lost"`          // the clock lock that was applied is known to be gone
	Take       bool               `json:"take"`               // the host's ledger does not have us as a holder
	Whole      bool               `json:"whole"`              // wanted without MIG, so for us alone
	Others     []resource.Holder  `json:"others,omitempty"`   // who holds it as well
	GiveBack   bool               `json:"give_back"`          // we do not need it any more
	Abandon    bool               `json:"abandon,omitempty"`  // with GiveBack: it is released whatever cannot be restored
	Settings   resource.Settings  `json:"settings"`           // to be set now
	Fields     []Field            `json:"fields,omitempty"`
	Kept       []Field            `json:"kept,omitempty"` // not changed though one would expect it, with the reason
}

// Options tell what only the configuration and the command line know.
type Options struct {
	// BaselineClockMHz is, by host, a clock lock that was there before cosplay: it cannot be read.
	BaselineClockMHz map[string]int `json:"baseline_clock_mhz,omitempty"`
	// AdminClockMHz are those that the admin of this machine states, by UUID.
	AdminClockMHz map[string]int `json:"admin_clock_mhz,omitempty"`

	// AbandonBaseline releases GPUs also where a setting cannot be restored.
	AbandonBaseline bool `json:"abandon_baseline,omitempty"`

	Moved    map[resource.Address]resource.Address `json:"moved,omitempty"`    // by the address now: the one that the state still has
	Imported map[resource.Address]string           `json:"imported,omitempty"` // what becomes theirs
	Forgets  map[resource.Address]bool             `json:"forgets,omitempty"`  // the state is to forget them; the world stays
	Left     map[resource.Address]bool             `json:"left,omitempty"`     // this plan does not touch them
	Replace  map[resource.Address]bool             `json:"replace,omitempty"`  // to be replaced: the user asked for it
	Triggers map[resource.Address][]Trigger        `json:"triggers,omitempty"` // what else replaces a session
}

// Trigger is a change of another session that replaces one.
type Trigger struct {
	Of        resource.Reference `json:"of"`
	Attribute string             `json:"attribute,omitempty"` // "" is any
}

// Compare computes the difference. The prior has its sessions at the addresses that they have now.
func Compare(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) Diff {
	sessions := sessionChanges(desired, prior, live, o)
	kept := prior
	if len(o.Forgets) > 0 {
		kept = prior.Without(o.Forgets) // their slices are somebody else's from now on
	}
	gpus := touched(gpuChanges(desired, kept, live, o), sessions, o)
	sendLocksAgain(gpus, sessions, desired, kept, o)
	open := unfinished(prior)
	return Diff{
		Drift:     drifts(prior, live),
		Unproven:  unprovenLocks(prior, live),
		Unowned:   unprovenSlices(prior, live),
		GPUs:      gpus,
		Sessions:  sessions,
		Leftovers: leftovers(desired, live, o),

		Unfinished: open,
		Stuck:      stuck(open, sessions, o),
		Unwanted:   unwanted(desired, prior, o),
	}
}

func unfinished(prior resource.Prior) []resource.Address {
	var all []resource.Address
	for _, s := range prior.Sessions {
		if s.Incomplete() {
			all = append(all, s.Address)
		}
	}
	all = append(all, prior.Missing...)
	slices.SortFunc(all, resource.Address.Compare)
	return all
}

// stuck are the unfinished sessions that a plan leaves as they are, though it is about
// them: their GPUs cannot be read.
func stuck(open []resource.Address, sessions []SessionChange, o Options) []resource.Address {
	return slices.DeleteFunc(slices.Clone(open), func(a resource.Address) bool {
		return o.Left[a] || !slices.ContainsFunc(sessions, func(c SessionChange) bool { return c.Address == a && c.Action == NoOp })
	})
}

// unwanted are the missing sessions that are not to be created any more. A plan of
// a part leaves them to one of the whole.
func unwanted(desired resource.Desired, prior resource.Prior, o Options) []resource.Address {
	if len(o.Left) > 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(prior.Missing), func(a resource.Address) bool {
		return slices.ContainsFunc(desired.Sessions, func(s resource.Session) bool { return s.Address == a })
	})
}

// strays are those of sessions that are not about to be made, which make use of
// them. A plan of a part leaves them to one of the whole.
func leftovers(desired resource.Desired, live resource.Live, o Options) []resource.Body {
	var all []resource.Body
	if len(o.Left) > 0 {
		return nil
	}
	for _, h := range live.Hosts {
		for _, c := range h.Leftovers {
			if !slices.ContainsFunc(desired.Sessions, func(s resource.Session) bool { return s.Slice.Host == h.Name && s.ID == c.Session }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Drifted reports whether something that cosplay answers for was changed outside of it.
func (d Diff) Drifted() bool {
	for _, one := range d.Drift {
		if !one.Informational {
			return true
		}
	}
	return false
}

// NotAsApplied reports whether the hosts are not as the last apply had to leave them,
// by drift or because a run was interrupted or failed.
func (d Diff) NotAsApplied() bool { return d.Drifted() || len(d.Unfinished) > 0 }

// Changes reports whether anything is to be done.
func (d Diff) Changes() bool {
	for _, g := range d.GPUs {
		if g.Action != NoOp {
			return true
		}
	}
	for _, s := range d.Sessions {
		if s.Action != NoOp {
			return true
		}
	}
	return len(d.Leftovers) > 0
}
