package resource

import (
	"slices"
	"strings"
)

// Page is what the ledger of a host has on record of a GPU that projects hold.
type Page struct {
	UUID       string   `json:"uuid"`
	Baseline   Settings `json:"baseline"`              // before cosplay first touched it
	LockBefore bool     `json:"lock_before,omitempty"` // as in PriorGPU
	Set        Settings `json:"set"`                   // what cosplay set, whichever project did
	BootID     string   `json:"boot_id,omitempty"`     // the boot in which it was last changed
	Holders    []Holder `json:"holders"`
	Leaving    string   `json:"leaving,omitempty"` // lineage of the last holder, while it restores the baseline

	Was      Settings   `json:"was,omitzero"`       // what cosplay had set before a change that is under way, or that failed
	Undone   Settings   `json:"undone,omitzero"`    // what cosplay had set before a reboot, until a holder sets it again
	Lock     *ClockLock `json:"lock,omitempty"`     // the last lock that cosplay set or lifted; nil without any
	Unkept   bool       `json:"unkept,omitempty"`   // persistence mode was switched off against the baseline: the driver keeps no other setting then
	Departed []Departed `json:"departed,omitempty"` // slices of holders that were released, while they exist
	Changes  []Left     `json:"changes,omitempty"`  // settings that releases did not restore
}

// ClockLock is a command to the driver, which has no getter for its effect.
type ClockLock struct {
	MHz    int    `json:"mhz"` // 0 lifts a lock
	BootID string `json:"boot_id"`
	Done   bool   `json:"done"` // the driver has confirmed it
}

// Departed is a slice whose holder was released.
type Departed struct {
	LiveSlice
	Lineage string `json:"lineage"`
	User    string `json:"user"`
	UID     *int   `json:"uid,omitempty"`
	At      string `json:"at"` // RFC 3339, of the release
}

// Left is a setting that did not have its baseline when its GPU was released.
type Left struct {
	Setting  string `json:"setting"`
	Value    string `json:"value"`
	Baseline string `json:"baseline"`
	Why      string `json:"why"`
	User     string `json:"user"` // who released the GPU
	UID      *int   `json:"uid,omitempty"`
	At       string `json:"at"` // RFC 3339
}

// Holder is a project that has sessions on a GPU.
type Holder struct {
	Lineage string      `json:"lineage"`
	State   string      `json:"state"`             // path of its state file
	Machine string      `json:"machine,omitempty"` // on which that file is; "" where it is unknown
	User    string      `json:"user"`
	UID     *int        `json:"uid,omitempty"`    // of the user, who alone may act for the project; root may, too
	Since   string      `json:"since"`            // RFC 3339
	Whole   bool        `json:"whole,omitempty"`  // it has the GPU without MIG
	Slices  []LiveSlice `json:"slices,omitempty"` // that it has created; without a UUID while one is being created
	Serial  int         `json:"serial,omitempty"` // of its state after the last run that wrote this page; 0 where an older cosplay did
}

// Waiting is a project that waits for room on a host.
type Waiting struct {
	Number int64    `json:"number"` // of its ticket
	User   string   `json:"user"`
	GPUs   []string `json:"gpus"` // UUIDs of the GPUs on which it could get room
}

// Holder finds a holder by its lineage.
func (h Page) Holder(lineage string) (Holder, bool) {
	return find(h.Holders, func(o Holder) bool { return o.Lineage == lineage })
}

// Has reports whether a slice that exists is one that the holder has on record.
func (o Holder) Has(live LiveSlice) bool {
	return slices.ContainsFunc(o.Slices, func(s LiveSlice) bool { return s.Match(live) != OtherSlice })
}

// Others are the holders except one.
func (h Page) Others(lineage string) []Holder {
	return slices.DeleteFunc(slices.Clone(h.Holders), func(o Holder) bool { return o.Lineage == lineage })
}

// Binding are the holders except one whose sessions would change with the settings of the GPU, or who chose the settings:
// those with slices, with the whole GPU, or that held the GPU no later. A project that joined later and has nothing there
// binds no other.
func (h Page) Binding(lineage string) []Holder {
	us, holds := h.Holder(lineage)
	return slices.DeleteFunc(h.Others(lineage), func(o Holder) bool {
		return holds && !o.Whole && len(o.Slices) == 0 && us.Since != "" && o.Since > us.Since
	})
}

// Moving reports whether a holder with another lineage is about to set the GPU up or to leave it, so that its settings
// change.
func (h Page) Moving(lineage string) bool {
	if h.Leaving != "" && h.Leaving != lineage {
		return true
	}
	return slices.ContainsFunc(h.Binding(lineage), func(o Holder) bool {
		return !o.Whole && !slices.ContainsFunc(o.Slices, func(s LiveSlice) bool { return s.UUID != "" })
	})
}

// Page finds a GPU in a host's ledger.
func (l Live) Page(host, uuid string) (Page, bool) {
	return findOrdered(l.host(host).Ledger, func(e *Page) int { return strings.Compare(uuid, e.UUID) })
}
