package state

import (
	"fmt"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// Fault is the kind of damage of a state file.
type Fault string

// The faults, each with its own message.
const (
	Empty     Fault = "empty"
	Truncated Fault = "truncated"
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
	prose.Advice
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the state %s cannot be used and was left as it is: %v", r.Path, r.Advice)
}

func refusal(fault Fault, what string) *Refusal {
	return &Refusal{Fault: fault, Advice: prose.Advice{What: what}}
}

// refuse completes a refusal with the file and the next step.
func (s Store) refuse(r *Refusal) error {
	r.Path, r.Fix = s.Path, s.next(r.Fault)
	return r
}

// nextSteps are the fixes of files that are not damaged.
var nextSteps = map[Fault]string{
	Newer:     "use the newer cosplay",
	NotAState: "name the right file with --state, or move this one away",
	Foreign:   "restore the state of this project, or rebuild it: cosplay state rebuild",
	Moved:     "run the command again",
}

func (s Store) next(f Fault) string {
	if step, intact := nextSteps[f]; intact {
		return step
	}
	const rebuild = "run cosplay state rebuild, which rebuilds it from the hosts' ledgers and labels, or cosplay reset, which removes everything that the project has"
	backup, err := Store{Path: s.BackupPath()}.Load()
	if err != nil || backup.Lineage == "" {
		return "restore a copy if you have one, since there is no good backup beside it; else " + rebuild
	}
	return fmt.Sprintf("if nothing was created since the state before it, serial %d, restore that: cp %s %s; else %s", backup.Serial, terminal.ShellWord(s.BackupPath()), terminal.ShellWord(s.Path), rebuild)
}

// succeeds refuses to write p over a state that it was not made from.
func succeeds(p resource.Prior, from int, there resource.Prior) *Refusal {
	if p.Lineage != there.Lineage {
		began := "without a state"
		if p.Lineage != "" {
			began = "with lineage " + p.Lineage
		}
		return refusal(Foreign, fmt.Sprintf("it belongs to another project or was started again: its lineage is %s, but this run began %s", there.Lineage, began))
	}
	if from != there.Serial {
		return refusal(Moved, fmt.Sprintf("it was changed meanwhile: its serial is %d, but this run began with %d", there.Serial, from))
	}
	return nil
}
