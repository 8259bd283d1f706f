package state

import (
	"fmt"

	"cosplay/internal/resource"
)

// Fault is the kind of damage of a state file.
type Fault string

// The faults, each with its own message.
const (
	Empty     Fault = "empty"
	CutOff    Fault = "cut off"
	NotJSON   Fault = "not JSON"
	NotAState Fault = "not a state"
	Newer     Fault = "newer"
	Altered   Fault = "altered" // its checksum or its content is wrong
	NoLineage Fault = "no lineage"
	Foreign   Fault = "foreign" // its lineage is not the expected one
	Moved     Fault = "moved"   // its serial is not the expected one
)

// Refusal is the error for a state file that cannot be used. cosplay has not changed the file.
type Refusal struct {
	Path  string
	Fault Fault
	What  string // what is wrong with it
	Next  string // what to do about it
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the state %s cannot be used: %s. It was left as it is. %s", r.Path, r.What, r.Next)
}

// refuse completes a refusal with the file and the next step.
func (s Store) refuse(r *Refusal) error {
	r.Path, r.Next = s.Path, s.next(r.Fault)
	return r
}

func (s Store) next(f Fault) string {
	switch f {
	case Newer:
		return "Use the newer cosplay"
	case NotAState:
		return "Name the right file with --state, or move this one away"
	case Foreign:
		return "Restore the state of this project, or rebuild it: cosplay state rebuild"
	case Moved:
		return "Run the command again"
	case Empty, CutOff, NotJSON, Altered, NoLineage: // damaged: a copy is the best remedy
	}
	const anew = "cosplay state rebuild rebuilds it from the hosts' ledgers and labels; cosplay reset removes everything that the project has"
	backup, err := Store{Path: s.BackupPath()}.Load()
	if err != nil || backup.Lineage == "" {
		return "There is no good backup beside it. Put a copy back if you have one; else " + anew
	}
	return fmt.Sprintf("The state before it, serial %d, is intact: cp %s %s restores it, if nothing was created since. Otherwise %s", backup.Serial, s.BackupPath(), s.Path, anew)
}

// Expect refuses a state of another lineage than the one that something else,
// a journal or a saved plan, was made with.
func (s Store) Expect(p resource.Prior, lineage, whose string) error {
	if p.Lineage == lineage {
		return nil
	}
	return s.refuse(foreign(p.Lineage, fmt.Sprintf("%s was made with lineage %s", whose, lineage)))
}

func foreign(lineage, expected string) *Refusal {
	if lineage == "" {
		lineage = "none, for there is no such file"
	}
	return &Refusal{Fault: Foreign, What: fmt.Sprintf("it belongs to another project or was started again: its lineage is %s, but %s", lineage, expected)}
}

// succeeds refuses to write p over a state that it was not made from.
func succeeds(p resource.Prior, from int, there resource.Prior) *Refusal {
	switch {
	case p.Lineage != there.Lineage && p.Lineage == "":
		return foreign(there.Lineage, "this run began without a state")
	case p.Lineage != there.Lineage:
		return foreign(there.Lineage, "this run began with lineage "+p.Lineage)
	case from != there.Serial:
		return &Refusal{Fault: Moved, What: fmt.Sprintf("it was changed meanwhile: its serial is %d, but this run began with %d", there.Serial, from)}
	}
	return nil
}
