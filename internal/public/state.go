package public

import "encoding/json"

// State is what show writes: all that the state records, without its key.
type State struct {
	Format
	Lineage   string            `json:"lineage"`             // identifies the state for ever; "" before the first apply
	Serial    int               `json:"serial"`              // number of times that it was written
	BootIDs   map[string]string `json:"boot_ids,omitempty"`  // by host: boot ID when the state was written
	GPUs      []StateGPU        `json:"gpus,omitempty"`      // by host and UUID
	Sessions  []StateSession    `json:"sessions,omitempty"`  // by address
	Outputs   []StateOutput     `json:"outputs,omitempty"`   // by name
	LastRun   int               `json:"last_run,omitempty"`  // serial after the last run that changed hosts
	Missing   []string          `json:"missing,omitempty"`   // addresses of sessions that an interrupted run had to create
	Expired   []Expired         `json:"expired,omitempty"`   // sessions that have expired and were ended
	Forgotten []string          `json:"forgotten,omitempty"` // UUIDs and IDs of what exists and that the state has given up
}

// Expired is a session that has expired and was ended.
type Expired struct {
	Session    string `json:"session"`               // address
	At         string `json:"at"`                    // when it expired, RFC 3339
	Why        string `json:"why"`                   // ttl, idle_timeout or stop_at
	ExtendedTo string `json:"extended_to,omitempty"` // an apply brings it up again, until then, RFC 3339; missing if cosplay extend was not used
}

// StateGPU is a GPU that the project has acquired.
type StateGPU struct {
	Host            string   `json:"host"`                        // name of the host
	UUID            string   `json:"uuid"`                        // of the GPU
	Baseline        Settings `json:"baseline"`                    // settings before cosplay, which destroy restores
	Applied         Settings `json:"applied"`                     // settings that cosplay set
	AskedPowerMW    *int     `json:"asked_power_mw,omitempty"`    // power limit that cosplay set and the driver rounded, mW
	LockBefore      bool     `json:"lock_before,omitempty"`       // the clock looked locked before cosplay
	ClockUnsure     bool     `json:"clock_unsure,omitempty"`      // a run was interrupted while it set the clock lock
	ClockRefutedMHz int      `json:"clock_refuted_mhz,omitempty"` // SM clock that verify measured and the lock does not allow, MHz
	MPS             *MPS     `json:"mps,omitempty"`               // the MPS daemon that cosplay runs for the whole GPU
	SliceMPS        []MPS    `json:"slice_mps,omitempty"`         // those for its MIG slices
}

// MPS is a control daemon of NVIDIA's Multi-Process Service, with the defaults for programs that set no limit.
type MPS struct {
	Folder    string `json:"folder"`            // with its pipes and its logs
	Percent   int    `json:"percent,omitempty"` // of the SMs; missing where the GPU has no such limit
	MemoryMiB int    `json:"memory_mib"`        // that one program can allocate, MiB
	Profile   string `json:"profile,omitempty"` // of the MIG slice; missing for the whole GPU
	Start     int    `json:"start,omitempty"`   // first slot of the slice
	GPUs      string `json:"gpus,omitempty"`    // UUIDs of the GPUs, with commas, where it serves several
}

// StateSession is a session of the state.
type StateSession struct {
	Session
	Handle     *Handle    `json:"handle,omitempty"`      // its slice; missing while there is none, and on a whole GPU
	Container  *Container `json:"container,omitempty"`   // missing while there is none
	Unfinished bool       `json:"unfinished,omitempty"`  // a run was interrupted while it created or removed the container
	UpAt       string     `json:"up_at,omitempty"`       // when it came up, RFC 3339; missing if an older cosplay created it
	ExtendedTo string     `json:"extended_to,omitempty"` // it does not expire before, RFC 3339; missing if cosplay extend was not used
}

// StateOutput is an output that the last apply stored.
type StateOutput struct {
	Name      string          `json:"name"`                // of its block
	Sensitive bool            `json:"sensitive,omitempty"` // its value is not stored
	Value     json.RawMessage `json:"value,omitempty"`     // value and type
	Sealed    string          `json:"sealed,omitempty"`    // keyed hash of a sensitive value
}

// StateList is what state list writes.
type StateList struct {
	Format
	Lineage  string   `json:"lineage"`  // of the state
	Serial   int      `json:"serial"`   // of the state
	Sessions []string `json:"sessions"` // addresses
	GPUs     []string `json:"gpus"`     // UUIDs
}

// StateItem is what state show writes.
type StateItem struct {
	Format
	Session *StateSession `json:"session"` // null for a GPU
	GPU     *StateGPU     `json:"gpu"`     // null for a session
}

// Moved is what state mv writes.
type Moved struct {
	Format
	DryRun bool      `json:"dry_run"` // nothing was changed
	Serial int       `json:"serial"`  // of the state now
	Moved  []Renamed `json:"moved"`   // sessions
}

// Renamed is a session that got another address.
type Renamed struct {
	From string `json:"from"` // address before
	To   string `json:"to"`   // address now
}

// Forgotten is what state rm writes.
type Forgotten struct {
	Format
	DryRun   bool               `json:"dry_run"`  // nothing was changed
	Serial   int                `json:"serial"`   // of the state now
	Sessions []ForgottenSession `json:"sessions"` // that the state no longer has
	GPUs     []ForgottenGPU     `json:"gpus"`     // that the state no longer has
}

// ForgottenSession is a session that the state no longer has.
type ForgottenSession struct {
	Address   string     `json:"address"`   // that it had
	Slice     Slice      `json:"slice"`     // where it is
	Handle    *Handle    `json:"handle"`    // null without a slice
	Container *Container `json:"container"` // null without one
	Removal   []string   `json:"removal"`   // commands that remove its slice and container
}

// ForgottenGPU is a GPU that the state no longer has.
type ForgottenGPU struct {
	StateGPU
	Restoring []string `json:"restoring"` // commands that restore its settings
}

// Imported is what import writes.
type Imported struct {
	Format
	State     string     `json:"state"`     // path of the state
	Serial    int        `json:"serial"`    // of the state now
	Address   string     `json:"address"`   // of the session
	Slice     Slice      `json:"slice"`     // that the session has now
	Handle    *Handle    `json:"handle"`    // null without a slice
	Container *Container `json:"container"` // null without one
	Foreign   bool       `json:"foreign"`   // cosplay did not create it
	Unproven  bool       `json:"unproven"`  // only its labels say that cosplay created it: the next apply replaces it
	Users     []Process  `json:"users"`     // processes in the slice
	Notes     []string   `json:"notes"`     // in words
}

// Rebuilt is what state rebuild writes.
type Rebuilt struct {
	Format
	State    string      `json:"state"`       // path of the state
	Fault    string      `json:"fault"`       // what was wrong with the old state, in words; "" where there was none
	Lineage  string      `json:"lineage"`     // of the new state
	Serial   int         `json:"serial"`      // of the new state
	Sessions []string    `json:"sessions"`    // addresses
	GPUs     []string    `json:"gpus"`        // UUIDs
	Unproven []Container `json:"unproven"`    // which the next apply replaces
	Notes    []string    `json:"notes"`       // in words
	Aside    []string    `json:"moved_aside"` // paths to which files of the old state were moved
}

// Unlocked is what force-unlock writes. A lock that a process holds is an error instead.
type Unlocked struct {
	Format
	State       string          `json:"state"`   // path of the state
	Locked      bool            `json:"locked"`  // always false
	Note        *LockNote       `json:"note"`    // that an ended process left; null without one
	Removed     bool            `json:"removed"` // the note was removed
	Interrupted *InterruptedRun `json:"cut_off"` // interrupted run that the next command recovers; null without one
}

// LockNote names the process that held a lock.
type LockNote struct {
	User    string `json:"user"`    // who ran it
	PID     int    `json:"pid"`     // process ID
	Command string `json:"command"` // apply
	Since   string `json:"since"`   // when it acquired the lock, RFC 3339
}

// InterruptedRun is a run that was interrupted.
type InterruptedRun struct {
	Begun string `json:"begun"` // when it began, RFC 3339
	Done  int    `json:"done"`  // number of steps that succeeded
	Open  int    `json:"open"`  // number of steps that began and whose end is not known
}
