package words

import (
	"fmt"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Notes writes what was found on the hosts, a text each.
func Notes(all []resource.Note, live resource.Live) []string {
	texts := []string{}
	for _, n := range all {
		text := note(n, live)
		if n.Step != "" {
			text = stepID(n.Step, live) + ": " + text
		}
		texts = append(texts, text)
	}
	return texts
}

// stepID is the ID of a step, with the name of its GPU in place of a UUID.
func stepID(id string, live resource.Live) string {
	group, what, _ := strings.Cut(id, "/")
	if name := anyGPU(live, group); name != group {
		return name + "/" + what
	}
	return id
}

func note(n resource.Note, live resource.Live) string {
	if n.Kind == resource.StateOlder {
		return older(n)
	}
	s := n.Slice
	return strings.NewReplacer("{body}", resource.RuntimeNamed(n.Runtime).Body,
		"{slice}", s.Profile+" slice", "{slot}", fmt.Sprintf("slot %d", s.Start),
		"{gpu}", anyGPU(live, s.GPU), "{removal}", removal(s), "{uuid}", s.UUID).Replace(notes[n.Kind])
}

var notes = map[resource.NoteKind]string{
	resource.StepDone:        "it was done",
	resource.StepNotDone:     "it was not done",
	resource.StepHalfDone:    "it was half done",
	resource.StepUnreadable:  "its GPU cannot be read",
	resource.StepNothingLeft: "nothing of it is left",
	resource.LockUnsure:      "a clock lock cannot be read; it will be set again",
	resource.BodyTaken:       "its {body} exists and was taken over",
	resource.BodyIncomplete:  "its {body} exists and is not finished",
	resource.SliceTaken:      "its slice exists and was taken over",
	resource.InstanceTaken:   "its GPU instance exists and was taken over",
	resource.SliceUnseen:     "its GPU cannot be read; cosplay finds out what became of it when it can",
	resource.HostRebooted:    "the host was rebooted, so nothing is left of it",
	resource.SliceIsForeign:  "it was not done; a foreign {slice} is at {slot}",
	resource.SliceInUse: "the {slice} at {slot} is in use, so cosplay counts it as foreign and leaves it alone; " +
		"if it is not: {removal}",
	resource.SliceFromOtherBoot: "a {slice} was going to be created before the host was rebooted; " +
		"the slice at {slot} of {gpu} is another one and is left alone",
	resource.SliceMaybeOwn: "an interrupted run may have created the {slice} at {slot} of {gpu}, but a process uses it, " +
		"so it is left alone; if it is not needed: {removal}",
	resource.SliceOfNoState: "the {slice} at {slot} of {gpu} was imported, and no record says for which session, so cosplay leaves it and its container alone; " +
		"import it again before the next apply: cosplay import SESSION CONTAINER, or cosplay import SESSION {uuid} if no container has it",
	resource.SliceOfProject: "the {slice} at {slot} of {gpu} is another project's and is left alone",
}

// older says what an old state lacked.
func older(n resource.Note) string {
	var all []string
	add := func(n int, one, more string) {
		if n > 0 {
			all = append(all, prose.Plural(n, one, more))
		}
	}
	add(n.Added, "session was added to it", "sessions were added to it")
	add(n.Leaves, "GPU was released since", "GPUs were released since")
	add(n.Removed, "session was removed since", "sessions were removed since")
	text := fmt.Sprintf("the state had serial %d and is older than what the hosts have on record of this project", n.Serial)
	if len(all) == 0 {
		return text
	}
	return text + ": " + strings.Join(all, ", ")
}

// removal is the command that removes a slice. The GPU instance of a part may have others.
func removal(s resource.LiveSlice) string {
	if s.Divides() {
		return fmt.Sprintf("nvidia-smi mig -dci -gi %d -ci %d", s.GPUInstance, s.ComputeInstance)
	}
	return fmt.Sprintf("nvidia-smi mig -dci and -dgi -gi %d", s.GPUInstance)
}
