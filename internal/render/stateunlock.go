package render

import (
	"fmt"
	"io"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/prose"
	"cosplay/internal/public"
)

// UnlockView is a lock that nobody has, and what those who had it left.
type UnlockView struct {
	State   string          // path of the state
	Note    *durable.Holder // of one who died with the lock; nil without
	Removed bool            // the note was removed
	CutOff  *CutOff         // a run that waits for recovery; nil without
}

// CutOff is a run that did not come to its end.
type CutOff struct {
	Begun time.Time
	Done  int // steps
	Open  int // steps of which it is not known how far they came
}

// Unlock tells that there is nothing to unlock, and what there is to do.
func Unlock(w io.Writer, s Style, v UnlockView, flags []string) {
	p := newPage(s)
	p.flow(0, 2, join(inked(strong, "There is nothing to unlock. "),
		text(fmt.Sprintf("No process holds the lock of %s: a lock ends with its process.", v.State))))
	if v.Removed {
		p.flow(0, 2, text(fmt.Sprintf("Removed the note of %s, which has ended.", v.Note)))
	}
	if v.CutOff != nil {
		p.flow(0, 2, text(fmt.Sprintf("A run that began at %s was interrupted, with %s done and %d open. The next command that reads the hosts takes over what it did.",
			v.CutOff.Begun.Local().Format(time.DateTime), prose.Count(v.CutOff.Done, "step"), v.CutOff.Open)))
		p.next(suggest("plan", flags))
	}
	p.flush(w)
}

// UnlockJSON writes the same as data.
func UnlockJSON(w io.Writer, v UnlockView) error {
	note := func(h durable.Holder) public.LockNote {
		return public.LockNote{User: h.User, PID: h.PID, Command: h.Command, Since: h.Since.Format(time.RFC3339Nano)}
	}
	run := func(c CutOff) public.CutOffRun {
		return public.CutOffRun{Begun: c.Begun.Format(time.RFC3339Nano), Done: c.Done, Open: c.Open}
	}
	return JSON(w, public.Unlocked{Format: public.V1, State: v.State, Note: some(v.Note, note), Removed: v.Removed, CutOff: some(v.CutOff, run)})
}
