package resource

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
