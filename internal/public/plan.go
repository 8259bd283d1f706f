package public

import "encoding/json"

// Plan is what plan writes.
type Plan struct {
	Format
	Differences
	Config       string           `json:"config"`             // name of the configuration
	Destroy      bool             `json:"destroy"`            // the plan removes all sessions
	Saved        string           `json:"saved,omitempty"`    // path of the file in which the plan is saved
	Stale        string           `json:"stale,omitempty"`    // what has changed since it was saved, in words
	HasChanges   bool             `json:"has_changes"`        // a GPU or session changes
	Summary      Tally            `json:"summary"`            // what the plan does
	Hosts        []PlanHost       `json:"hosts"`              // where sessions run
	Images       []Image          `json:"images"`             // images to pull or build
	Changes      Changes          `json:"changes"`            // difference between the configuration and the hosts
	Steps        []Step           `json:"steps"`              // in their order
	Fits         []SessionFigures `json:"fits"`               // by address of the session
	Warnings     []Diagnostic     `json:"warnings"`           // of the configuration and of checks
	NotCompleted []string         `json:"not_completed"`      // addresses of unfinished sessions that the plan leaves as they are
	Expired      []Expired        `json:"expired,omitempty"`  // expired sessions that stay down
	Clusters     *ClustersPlan    `json:"clusters,omitempty"` // sessions of Kubernetes clusters, which apply leaves alone; missing without any
}

// ClustersPlan is where the sessions of Kubernetes clusters would run.
type ClustersPlan struct {
	Hosts []string     `json:"hosts"` // names of the clusters
	Fits  []ClusterFit `json:"fits"`  // by address of the session
}

// ClusterFit is where a session of a cluster would run, and how close it comes to its target.
type ClusterFit struct {
	SessionFigures
	Node string `json:"node"` // of the GPU
}

// DriftReport is what drift and plan --refresh-only write.
type DriftReport struct {
	Format
	Differences
	Unfinished []string `json:"unfinished"` // addresses of sessions that an interrupted or failed run left missing or incomplete
}

// Differences are the differences between the last apply and the hosts.
type Differences struct {
	HasDrift       bool            `json:"has_drift"`            // something that cosplay manages was changed outside of it
	Drift          []Drift         `json:"drift"`                // what differs from the last apply
	Notes          []string        `json:"notes"`                // what cosplay did while it read the state, in words
	UnprovenLocks  []UnprovenLock  `json:"unproven_clock_locks"` // information: no drift
	UnprovenSlices []UnprovenSlice `json:"unproven_slices"`      // information: no drift
}

// Tally counts what a plan does.
type Tally struct {
	Create   int `json:"create"`              // sessions to create
	Change   int `json:"change"`              // sessions to change in place
	Replace  int `json:"replace"`             // sessions to replace
	Destroy  int `json:"destroy"`             // sessions to remove
	Move     int `json:"move"`                // sessions that get another address
	Forget   int `json:"forget"`              // sessions to drop from the state, without a change of the host
	Import   int `json:"import"`              // sessions that get a slice or container that exists
	SetUp    int `json:"gpus_to_set_up"`      // GPUs to acquire or change
	GiveBack int `json:"gpus_to_give_back"`   // GPUs to release
	Build    int `json:"images_to_build"`     // images
	Pull     int `json:"images_to_pull"`      // images
	Sweep    int `json:"leftovers_to_remove"` // leftovers of interrupted runs
}

// PlanHost is a host of a plan.
type PlanHost struct {
	Name      string  `json:"name"`                // of its block
	Simulated string  `json:"simulated,omitempty"` // 8 x h200; missing on hardware
	Driver    string  `json:"driver"`              // version, or unknown
	Runtime   string  `json:"runtime"`             // of new sessions: docker or process
	Engine    *Engine `json:"engine"`              // null where no session needs one

	Unreachable string `json:"unreachable,omitempty"` // why nothing of a host on another machine could be read; missing if it was read
}

// Image is an image that a plan gets.
type Image struct {
	Host  string `json:"host"`  // name of the host
	Image string `json:"image"` // name with tag
	How   string `json:"how"`   // build or pull
	There bool   `json:"there"` // the host has an image of that name
}

// Changes are the differences between the configuration and the hosts.
type Changes struct {
	GPUs     []GPUChange     `json:"gpus"`     // by host and UUID
	Sessions []SessionChange `json:"sessions"` // by address
	Outputs  []OutputChange  `json:"outputs"`  // by name
}

// Field is one difference: its values in their own types, and the same in words.
type Field struct {
	Kind       string `json:"kind"`                  // attribute of the language, or a setting: persistence, mig, power, clock, compute-mode, time-slice-length
	Name       string `json:"name"`                  // what differs, in words
	From       string `json:"from"`                  // value before, in words
	To         string `json:"to"`                    // value after, in words
	Before     Value  `json:"before"`                // null for none
	After      Value  `json:"after"`                 // null for none
	Reason     string `json:"reason,omitempty"`      // in words
	ReasonKind string `json:"reason_kind,omitempty"` // the same for programs: best-clock
	Left       bool   `json:"left,omitempty"`        // cosplay changed the setting and cannot restore it now
}

// Value is one side of a difference. Powers are in mW, memory in MiB, ratios as numbers: 0.07 is 7 %.
type Value any

// MIGMode is MIG mode as a value.
type MIGMode struct {
	Now     bool `json:"now"`     // it is on
	Pending bool `json:"pending"` // it is on after the next reset
}

// ClockLock is a lock of the SM clock as a value.
type ClockLock struct {
	MHz  int    `json:"mhz"`                // 0 is unlocked
	As   string `json:"as,omitempty"`       // how it is known: seen, other, lifted or unknown; missing for one that cosplay set
	Read int    `json:"read_mhz,omitempty"` // SM clock that verify measured under load, MHz
}

// GPUChange is what happens to a GPU.
type GPUChange struct {
	Host       string    `json:"host"`               // name of the host
	UUID       string    `json:"uuid"`               // of the GPU
	Action     string    `json:"action"`             // create (acquire), update, delete (release) or no-op
	Baseline   *Settings `json:"baseline,omitempty"` // settings to record before the first change
	Holds      Settings  `json:"holds"`              // wanted settings that the GPU has and that the state does not have yet
	LockBefore bool      `json:"lock_before"`        // the clock looks locked before the first change
	LockLost   bool      `json:"lock_lost"`          // the clock lock that cosplay set is lost
	Take       bool      `json:"take"`               // the project is not in the ledger of the host yet
	Whole      bool      `json:"whole"`              // it is wanted without MIG, for this project alone
	Others     []Holder  `json:"others,omitempty"`   // other projects that hold it
	GiveBack   bool      `json:"give_back"`          // the project does not need it any more
	Abandon    bool      `json:"abandon,omitempty"`  // it is released even where a setting cannot be restored
	Settings   Settings  `json:"settings"`           // to set
	Fields     []Field   `json:"fields,omitempty"`   // what changes
	Kept       []Field   `json:"kept,omitempty"`     // what does not change, with the reason
}

// SessionChange is what happens to a session.
type SessionChange struct {
	Address    string        `json:"address"`               // session.worker[0]
	MovedFrom  *string       `json:"moved_from,omitempty"`  // address that the state has
	Imported   string        `json:"imported,omitempty"`    // ID of what the session gets
	Action     string        `json:"action"`                // no-op, create, update, replace, delete, move, import or forget
	Slice      string        `json:"slice"`                 // keep, make, remake (remove it first), remove, or "" for none
	Container  string        `json:"container"`             // keep, make, remake, remove, refit (change it in place), or "" for none
	Record     bool          `json:"record,omitempty"`      // only the state changes
	Renew      bool          `json:"renew,omitempty"`       // only its disguise is made again, for this cosplay or driver
	Before     *StateSession `json:"before,omitempty"`      // as the state has it
	After      *Session      `json:"after,omitempty"`       // as it will be
	Reason     string        `json:"reason,omitempty"`      // in words
	ReasonKind string        `json:"reason_kind,omitempty"` // the same for programs: slice-missing
	Fields     []Field       `json:"fields,omitempty"`      // what differs
}

// OutputChange is an output that gets another value. A sensitive one has neither value.
type OutputChange struct {
	Name      string          `json:"name"`                // of its block
	Action    string          `json:"action"`              // create, update or delete
	Sensitive bool            `json:"sensitive,omitempty"` // its value is not shown
	Before    json.RawMessage `json:"before,omitempty"`    // value and type
	After     json.RawMessage `json:"after,omitempty"`     // value and type; missing if known after apply
}

// Drift is one thing that is not as the last apply left it.
type Drift struct {
	Class   string  `json:"class"`             // gpu-gone, mig-mode, slice-replaced, container-stopped
	Host    string  `json:"host"`              // name of the host
	GPU     string  `json:"gpu,omitempty"`     // UUID, for drift of a GPU
	Session *string `json:"session,omitempty"` // address, for drift of a session
	Kind    string  `json:"kind,omitempty"`    // what differs, where the class does not say it
	Name    string  `json:"name,omitempty"`    // of the image, or of the check that failed
	Runtime string  `json:"runtime,omitempty"` // of the session
	Informs bool    `json:"told,omitempty"`    // informational: it does not affect the exit code
	Thing   string  `json:"thing"`             // what differs, in words
	From    string  `json:"from"`              // value after the last apply, in words
	To      string  `json:"to"`                // value now, in words
	Before  Value   `json:"before"`            // value after the last apply
	After   Value   `json:"after"`             // value now
	Cause   string  `json:"cause,omitempty"`   // in words; one that is not known begins with "possible cause:"
	Apply   string  `json:"apply,omitempty"`   // what cosplay apply would do about it, in words

	ByReboot bool   `json:"by_reboot,omitempty"` // a reboot of the host explains it: the drift host-rebooted stands for it
	Since    string `json:"since,omitempty"`     // when an earlier drift or watch first found it, RFC 3339; missing where none did
}

// DatedDrift is drift with its end.
type DatedDrift struct {
	Drift
	Ended string `json:"ended,omitempty"` // RFC 3339; when drift no longer found it
}

// UnprovenLock is a clock lock that cosplay set and that no reading proves: the clock of an idle GPU does not show
// it.
type UnprovenLock struct {
	Host string `json:"host"` // name of the host
	GPU  string `json:"gpu"`  // UUID
	MHz  int    `json:"mhz"`  // of the lock
}

// UnprovenSlice is a slice that the driver names by its place, so that another one in the same place could not be
// distinguished from it.
type UnprovenSlice struct {
	Session  string `json:"session"`   // address
	Slice    Slice  `json:"slice"`     // where it is
	UUID     string `json:"uuid"`      // of the MIG device
	SameBoot bool   `json:"same_boot"` // the host was not rebooted since cosplay created it
}

// Step is one step of a plan.
type Step struct {
	ID    string     `json:"id"`              // unique in the plan
	Group string     `json:"group"`           // steps of a group are undone together when one of them fails
	Title string     `json:"title"`           // for people
	Needs []string   `json:"needs,omitempty"` // IDs of steps that must have succeeded before
	After []string   `json:"after,omitempty"` // IDs of steps that must have ended before
	Do    Operation  `json:"do"`              // what it does
	Undo  *Operation `json:"undo"`            // what takes it back; null where nothing can
}

// Operation is what a step does. The step's title and the changes of the plan have its values.
type Operation struct {
	Kind string `json:"kind"` // create-slice, prepare, set-power
}

// SessionFigures is the fit of a session.
type SessionFigures struct {
	Session string  `json:"session"`               // address
	Target  string  `json:"target"`                // key of the target
	Slice   Slice   `json:"slice"`                 // where it is
	More    []Slice `json:"more_slices,omitempty"` // of its other devices: other GPUs
	Sharers int     `json:"sharers,omitempty"`     // sessions that share its slice, its GPU instance or its GPU, with it. By time slices, each has this part of the rates when all are busy; otherwise, of the bandwidth
	Figures
}

// Applied is what apply and destroy write.
type Applied struct {
	Format
	Destroy      bool         `json:"destroy"`          // all sessions were to be removed
	Summary      Achieved     `json:"summary"`          // what was done
	Done         []string     `json:"done"`             // IDs of the steps that succeeded
	Sessions     []Made       `json:"sessions"`         // all sessions of the project, also those that did not change
	Ended        []Ended      `json:"ended"`            // removed sessions that used GPU memory
	Failures     []Failure    `json:"failures"`         // steps that failed
	NotTried     []string     `json:"not_tried"`        // IDs of the steps that did not run
	Unrestored   []Unrestored `json:"unrestored"`       // settings that cosplay changed and cannot restore
	Interrupted  bool         `json:"interrupted"`      // a signal stopped the run
	TookSeconds  float64      `json:"took_seconds"`     // duration, s
	Serial       int          `json:"serial"`           // of the state now
	Error        string       `json:"error,omitempty"`  // why the run failed as a whole
	Verify       *Verify      `json:"verify,omitempty"` // with --verify
	NotCompleted []string     `json:"not_completed"`    // addresses of unfinished sessions that the plan left as they are
	Outputs      []Output     `json:"outputs"`          // by name
	Diagnostics  []Diagnostic `json:"diagnostics"`      // check blocks that failed
}

// Achieved counts what a run did.
type Achieved struct {
	Create   int `json:"created"`           // sessions
	Change   int `json:"changed"`           // sessions, in place
	Replace  int `json:"replaced"`          // sessions
	Destroy  int `json:"destroyed"`         // sessions
	Move     int `json:"moved"`             // sessions that got another address
	Forget   int `json:"forgotten"`         // sessions that were dropped from the state
	Import   int `json:"imported"`          // sessions that got a slice or container that existed
	SetUp    int `json:"gpus_set_up"`       // GPUs
	GiveBack int `json:"gpus_given_back"`   // GPUs
	Build    int `json:"images_built"`      // images
	Pull     int `json:"images_pulled"`     // images
	Sweep    int `json:"leftovers_removed"` // leftovers of interrupted runs
}

// Made is a session with its slice and container, as it is now.
type Made struct {
	Address   string     `json:"address"`               // session.worker[0]
	Name      string     `json:"name"`                  // short address, as users type it: worker-0
	Slice     Slice      `json:"slice"`                 // where it is
	More      []Slice    `json:"more_slices,omitempty"` // of its other devices: other GPUs
	SliceUUID string     `json:"slice_uuid"`            // of its MIG device; "" on a whole GPU
	Runtime   string     `json:"runtime"`               // docker, process or cdi
	Device    string     `json:"device,omitempty"`      // name of its CDI device, as engines take it; missing without one
	Image     string     `json:"image,omitempty"`       // name with tag; missing without a container
	Container *Container `json:"container"`             // null while there is none
	SSH       *Login     `json:"ssh"`                   // null where no user can log in
}

// Usage is what a session used of its GPU memory. Targets are keys of the catalog.
type Usage struct {
	PeakMiB     int    `json:"peak_mib"`               // peak GPU memory, MiB
	OutOfMemory int    `json:"out_of_memory"`          // how often its programs asked for more than there was
	Overcome    int    `json:"overcome,omitempty"`     // how often of these they got as much after they had freed some
	WentOn      bool   `json:"went_on,omitempty"`      // no program ended because of the others: it asked for less
	NeedMiB     int    `json:"need_mib,omitempty"`     // if memory ran out: what is needed at least, MiB, where PyTorch's error shows it
	Fits        string `json:"fits,omitempty"`         // the smallest target with room for the peak
	FitsAlike   string `json:"fits_alike,omitempty"`   // the smallest for the use of the session's target, gaming or professional, if it is another
	DoesNotFit  string `json:"does_not_fit,omitempty"` // the largest target that is too small; absent where none is, or it is not known
	NextLarger  string `json:"next_larger,omitempty"`  // if memory ran out: the smallest target with more, which can still be too small
	Words       string `json:"words"`                  // the same in a sentence
}

// Ended is a session that a run removed.
type Ended struct {
	Address string `json:"address"` // session.worker[0]
	Name    string `json:"name"`    // short address, as users type it: worker-0
	Usage
}

// Failure is a step that failed.
type Failure struct {
	Step   string `json:"step"`                // its ID
	Title  string `json:"title"`               // for people
	Error  string `json:"error"`               // in words
	Undone bool   `json:"undone"`              // what its group had done was taken back
	Left   string `json:"left,omitempty"`      // why it could not be taken back
	Code   int    `json:"nvml_code,omitempty"` // NVML's code, for an error of NVML
}

// Unrestored is a setting of a GPU that does not get its baseline.
type Unrestored struct {
	Host   string `json:"host"`   // name of the host
	GPU    string `json:"gpu"`    // UUID
	Name   string `json:"name"`   // of the setting, in words
	Value  string `json:"value"`  // that it has, in words
	Reason string `json:"reason"` // in words
}

// Reset is what reset writes.
type Reset struct {
	Format
	State    string         `json:"state"`       // path of the state
	Fault    string         `json:"fault"`       // what is wrong with the state, in words; "" for nothing
	Projects []ResetProject `json:"projects"`    // that were released
	Failures []string       `json:"failures"`    // in words
	Aside    []string       `json:"moved_aside"` // paths to which files of the state were moved
	Left     bool           `json:"left"`        // the files of the state were left where they are
}

// ResetProject is a project that reset releases.
type ResetProject struct {
	Lineage  string      `json:"lineage"`   // of its state
	User     string      `json:"user"`      // who acquired the GPUs
	State    string      `json:"state"`     // path of its state
	Own      bool        `json:"own"`       // it is the project of the configuration
	Sessions []string    `json:"sessions"`  // addresses
	GPUs     []GPUChange `json:"gpus"`      // what happens to its GPUs
	Unproven []Container `json:"unproven"`  // only their labels say that they are the project's: they stay
	Notes    []string    `json:"notes"`     // in words
	Done     []string    `json:"done"`      // IDs of the steps that succeeded
	NotTried []string    `json:"not_tried"` // IDs of the steps that did not run
}
