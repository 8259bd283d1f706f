package resource

// ReasonKind says why something is as it is, or why it happens.
type ReasonKind string

// Reasons of the settings of a GPU.
const (
	ForSlices        ReasonKind = "sessions-in-slices"
	ForWholeGPU      ReasonKind = "session-on-whole-gpu"
	BestClock        ReasonKind = "best-clock"  // for Targets
	FixedClock       ReasonKind = "fixed-clock" // at MHz
	SumOfTargets     ReasonKind = "sum-of-boards"
	OneTarget        ReasonKind = "one-board" // of Targets
	AboveDefault     ReasonKind = "above-default"
	BelowLeast       ReasonKind = "below-least"
	ClockNeeds       ReasonKind = "clock-needs"
	SharedByProjects ReasonKind = "shared-by-projects"
	UsedByPods       ReasonKind = "used-by-pods"
	UsedByOthers     ReasonKind = "used-by-others"
	MadeTogether     ReasonKind = "made-together"     // the projects on the GPU have set it, and a reboot has undone it
	KeepsSettings    ReasonKind = "keeps-settings"    // persistence mode: without it the driver drops limits and locks
	ForMPS           ReasonKind = "for-mps"           // compute mode: the processes of all sessions use the GPU through one
	NoMoreMPS        ReasonKind = "no-more-mps"       // compute mode: no session of the project uses the GPU by MPS any more
	SharesByTime     ReasonKind = "shares-by-time"    // time slice: sessions share the GPU by time slices
	NoMoreTime       ReasonKind = "no-more-time"      // time slice: no session of the project does any more
	UnsafeTimeSlice  ReasonKind = "unsafe-time-slice" // time slice: foreign processes or other projects may use the GPU
	OneProgram       ReasonKind = "one-program"       // MPS daemon: its limits for a program that sets none
	SentAgain        ReasonKind = "sent-again"        // a clock lock, which NVML cannot read
)

// Reasons why a setting of a GPU does not get its baseline.
const (
	GPUMissing       ReasonKind = "gpu-missing" // with Unusable if it does not answer
	GPUUnusable      ReasonKind = "gpu-unusable"
	EndedByReboot    ReasonKind = "ended-by-reboot"
	ChangedByOthers  ReasonKind = "changed-by-others" // Baseline is not restored
	LockBefore       ReasonKind = "lock-before"
	ForeignSlices    ReasonKind = "foreign-slices"
	KeepsForeign     ReasonKind = "keeps-foreign" // Setting, which another process set
	SliceOfNoSession ReasonKind = "slice-of-no-session"
)

// Reasons of what happens to a session.
const (
	NotConfigured   ReasonKind = "not-configured"
	SliceUnread     ReasonKind = "slice-unread"
	LeftOut         ReasonKind = "left-out"
	StaysBehind     ReasonKind = "stays-behind"
	WasImported     ReasonKind = "was-imported"
	SliceMissing    ReasonKind = "slice-missing"
	SliceUnfinished ReasonKind = "slice-unfinished"
	ComputeMissing  ReasonKind = "compute-instance-missing"
	BodyUnmade      ReasonKind = "body-unmade"
	BodyMissing     ReasonKind = "body-missing"
	BodyReplaced    ReasonKind = "body-replaced"
	BodyUnproven    ReasonKind = "body-unproven"
	Interrupted     ReasonKind = "interrupted"
	BodyStopped     ReasonKind = "body-stopped"
	BoundsChanged   ReasonKind = "bounds-changed"
	BodyChanged     ReasonKind = "body-changed"
	BodyPaused      ReasonKind = "body-paused"
	BodyRestarting  ReasonKind = "body-restarting"
	BodyAltered     ReasonKind = "body-altered" // its name, network or ports
	ImageMoved      ReasonKind = "image-moved"  // and is always pulled
	AskedFor        ReasonKind = "asked-for"
	TriggerValue    ReasonKind = "trigger-value"
	TriggerSession  ReasonKind = "trigger-session" // Session changes
)

// Reason is a kind with the values that its sentence mentions.
type Reason struct {
	Kind     ReasonKind    `json:"kind,omitempty"`
	Targets  []string      `json:"targets,omitempty"`  // names
	Power    []TargetPower `json:"boards,omitempty"`   // of the targets, to be added
	MHz      int           `json:"mhz,omitempty"`      // of the SM clock
	MW       int           `json:"mw,omitempty"`       // of the limit that results
	Session  *Address      `json:"session,omitempty"`  // whose change it is
	Unusable *Unusable     `json:"unusable,omitempty"` // what the GPU answered; nil for one that is missing
	Setting  *Setting      `json:"setting,omitempty"`  // that persistence mode keeps
}

// TargetPower is how many targets have the same power.
type TargetPower struct {
	Count int `json:"count"`
	W     int `json:"w"` // of each
}

// NoteKind is what recovery found on a host after an interrupted run, or for a state that is lost or old.
type NoteKind string

// Of a step that was in progress.
const (
	StepDone        NoteKind = "step-done"
	StepNotDone     NoteKind = "step-not-done"
	StepHalfDone    NoteKind = "step-half-done"
	StepUnreadable  NoteKind = "step-unreadable" // its GPU cannot be read
	StepNothingLeft NoteKind = "step-nothing-left"
	LockUnsure      NoteKind = "lock-unsure"
	BodyTaken       NoteKind = "body-taken-over"
	BodyIncomplete  NoteKind = "body-incomplete"
	SliceTaken      NoteKind = "slice-taken-over"
	InstanceTaken   NoteKind = "instance-taken-over"
	SliceUnseen     NoteKind = "slice-unseen" // its GPU cannot be read
	HostRebooted    NoteKind = "host-rebooted"
	SliceIsForeign  NoteKind = "slice-is-foreign"
	SliceInUse      NoteKind = "slice-in-use"
)

// Of a state that was lost, or restored from a backup.
const (
	SliceFromOtherBoot NoteKind = "slice-from-other-boot"
	SliceMaybeOwn      NoteKind = "slice-maybe-own" // a process uses it
	SliceOfProject     NoteKind = "slice-of-another-project"
	SliceOfNoState     NoteKind = "slice-of-no-state" // it was imported, and no record says for which session
	StateOlder         NoteKind = "state-older"
)

// Note is one thing that was found, with the values that its sentence mentions.
type Note struct {
	Kind    NoteKind
	Step    string    // ID
	Runtime string    // of the session
	Slice   LiveSlice // that was found

	// With StateOlder.
	Serial                 int // that the state had
	Added, Removed, Leaves int // sessions, sessions, GPUs that the project has released
}
