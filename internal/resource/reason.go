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
	UsedByOthers     ReasonKind = "used-by-others"
	KeepsSettings    ReasonKind = "keeps-settings" // persistence mode: without it the driver drops limits and locks
	SentAgain        ReasonKind = "sent-again"     // a clock lock, which NVML cannot read
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
