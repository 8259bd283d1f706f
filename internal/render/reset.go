package render

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/apply"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// ResetView is what a reset removes, by project.
type ResetView struct {
	State     string // path of this project's state
	Fault     string // what is wrong with it; "" for nothing
	Complaint string // what is wrong with the configuration; "" for nothing
	Rounds    []ResetRound
	Failures  []error  // of reading hosts and states
	Killed    []string // cosplay runs in this folder, by name
	Idle      bool     // there is no state to move aside
	Flags     []string
}

// ResetRound is the part of one project.
type ResetRound struct {
	Holder   resource.Holder
	Own      bool
	Plan     *plan.Plan
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Body // only their labels say that they are the project's
	Notes    []resource.Note
}

// ResetDoneView is the result of a reset.
type ResetDoneView struct {
	ResetView
	Results []ResetResult
	Aside   []string // paths to which the files of the state were moved
	Left    bool     // something is left, and a new state has it
	Err     error    // the state could not be moved or written
}

// ResetResult is the result for one project.
type ResetResult struct {
	Round  ResetRound
	Result apply.Result
	Err    error
}

// Empty reports whether there is nothing to remove.
func (v ResetView) Empty() bool {
	return !slices.ContainsFunc(v.Rounds, func(r ResetRound) bool { return r.Plan.Effects() > 0 })
}

// Reset shows what a reset removes.
func Reset(w io.Writer, s Style, v ResetView) {
	p := newPage(s)
	if v.Complaint != "" {
		p.say(prose.Sentence(v.Complaint) + " Its valid part and the folders of simulated hosts name the hosts.")
	}
	if v.Fault != "" {
		p.lead(0, drifted, "The state cannot be used:",
			prose.Stop(v.Fault)+" The hosts' ledgers, labels and session folders show what this project has.")
	}
	for _, r := range v.Rounds {
		p.gap()
		p.resetRound(r)
	}
	if n := len(v.Killed); n > 0 {
		p.gap()
		runs := prose.Count(n, "cosplay run") + prose.Choose(n, " that was", " that were")
		p.say("Leftovers of " + runs + " killed here: " + strings.Join(v.Killed, ", "))
	}
	p.failures(v.Failures)
	p.gap()
	switch t := v.tally(); {
	case v.Empty() && len(v.Killed) > 0:
		p.flow(0, 2, join(inked(strong, "Reset: "), inked(removed, "that"), text(", and nothing else. "+v.asideWords())))
	case v.Empty():
		p.lead(0, strong, "There is nothing to remove.", v.asideWords())
	default:
		p.flow(0, 2, join(inked(strong, "Reset: "), inked(removed, prose.Count(t.Destroy, "session")+" to remove"), text("; "+prose.Count(t.GiveBack, "GPU")+" to give back. "+v.asideWords())))
	}
	p.flush(w)
}

// asideWords state what happens to the files of the state.
func (v ResetView) asideWords() string {
	if v.Idle || !slices.ContainsFunc(v.Rounds, func(r ResetRound) bool { return r.Own }) {
		return ""
	}
	return "State, backup and journal are moved aside, not deleted."
}

func (v ResetView) tally() tally {
	var t tally
	for _, r := range v.Rounds {
		one := tallyOf(r.Plan)
		t.Destroy, t.GiveBack = t.Destroy+one.Destroy+one.Change, t.GiveBack+one.GiveBack
	}
	return t
}

// resetRound shows one project: its GPUs, with the sessions to remove and the settings to restore.
func (p *page) resetRound(r ResetRound) {
	whose := either(r.Own, "This project", "The project of "+r.Holder.User+" with its state in "+r.Holder.State)
	lineage := resource.ShortLineage(r.Holder.Lineage)
	p.flow(0, 2, join(inked(strong, whose), inked(dim, given(lineage, ", lineage "+lineage))))
	if len(r.Plan.Diff.GPUs)+len(r.Plan.Diff.Sessions) == 0 {
		p.detail("holds nothing here.")
	}
	shown := map[resource.Address]bool{}
	for _, g := range r.Plan.Diff.GPUs {
		p.print(2, text(words.GPU(r.Live, g.Host, g.UUID)+"  "+words.ShortUUID(g.UUID)))
		t := &table{indent: 4, gap: 2, columns: []column{{}, {}, {}, {prose: true}}}
		for _, c := range r.Plan.Diff.Sessions {
			if c.Before.IsOn(g.Key()) {
				shown[c.Address] = true
				r.addSession(t, c)
			}
		}
		p.table(t)
		p.resetSettings(g)
	}
	t := &table{indent: 2, gap: 2, columns: []column{{}, {}, {}, {prose: true}}}
	for _, c := range r.Plan.Diff.Sessions {
		if !shown[c.Address] {
			r.addSession(t, c)
		}
	}
	p.table(t)
	p.unproven(r.Unproven)
	p.notes(r.Notes, r.Live)
}

// addSession shows the slice and the container that are removed with a session.
func (r ResetRound) addSession(t *table, c diff.SessionChange) {
	slice, container := "-", "-"
	if c.Slice == diff.Remove {
		slice = "slice " + c.Before.Slice.String()
	}
	if c.Body == diff.Remove {
		runtime := resource.RuntimeNamed(c.Before.Runtime)
		if container = runtime.Body; c.Before.Body != nil && runtime.ShownID > 0 {
			container += " " + shortID(*c.Before.Body)
		}
	}
	t.add(inked(removed, "-"), text(c.Address.String()), text(slice), text(container))
}

// resetSettings shows the settings of a GPU that change, and those that stay.
func (p *page) resetSettings(g diff.GPUChange) {
	t := &table{indent: 4, gap: 2, columns: []column{{}, {}, {}, {}, {prose: true}}}
	for _, f := range g.Fields {
		t.add(inked(replaced, "~"), text(words.Field(f)), text(valueWords(f.From)), text(p.arrow()), text(valueWords(f.To)))
	}
	p.table(t)
	for _, f := range g.Kept {
		p.flow(4, 6, text(fmt.Sprintf("left as it is: %s (%s); %s", words.Field(f), valueWords(f.From), prose.Stop(words.Setting(f)))))
	}
}

// unproven names the containers that the user has to confirm.
func (p *page) unproven(all []resource.Body) {
	if len(all) == 0 {
		return
	}
	names := each(all, func(c resource.Body) string { return together(resource.BodyName(c.Session) + " (" + shortID(c) + ")") })
	p.lead(2, drifted, "Not proven:", "the key of the state is lost, so only their labels and names say that these are the project's: "+
		strings.Join(names, ", ")+". If other users create containers here, check these: docker inspect.")
}

func (p *page) failures(all []error) {
	for _, err := range all {
		p.gap()
		p.problem(0, 2, inked(removed, p.cross()), err.Error())
	}
}

// failed returns the errors of the run.
func (v ResetDoneView) failed() []error {
	var all []error
	for _, r := range v.Results {
		for _, f := range r.Result.Failures {
			all = append(all, errors.New(words.Failure(f.Step, f.Err, r.Round.Live)))
		}
		all = append(all, r.Err)
	}
	return slices.DeleteFunc(append(all, v.Err), func(err error) bool { return err == nil })
}

// ResetDone shows each failure, and then the result.
func (v ResetDoneView) draw(p *page) {
	p.failures(v.failed())
	sessions, gpus := 0, 0
	for _, r := range v.Results {
		sessions += len(r.Round.Prior.Sessions) - len(r.Result.Prior.Sessions)
		back := len(r.Round.Prior.GPUs) - len(r.Result.Prior.GPUs)
		if r.Round.Plan != nil && r.Err == nil && len(r.Result.Failures) == 0 && !r.Result.Interrupted { // those that the state does not know, too
			back = max(back, count(r.Round.Plan.Diff.GPUs, func(c diff.GPUChange) bool { return c.GiveBack }))
		}
		gpus += back
	}
	p.gap()
	runs := len(v.Killed)
	words := either(runs > 0 && sessions+gpus == 0, "the leftovers of "+prose.Count(runs, "cosplay run")+" removed",
		prose.Count(sessions, "session")+" removed, "+prose.Count(gpus, "GPU")+" given back")
	if n := len(v.failed()) + len(v.Failures); n > 0 {
		p.lead(0, removed, "Reset with "+prose.Count(n, "failure")+":", words+". The next cosplay reset tries the rest again.")
	} else {
		p.lead(0, strong, "Reset:", words+".")
	}
	p.movedAside(v.Aside)
	if v.Left {
		p.say("A new state has what this project still holds: " + v.State)
	}
}

// movedAside lists where the files of an old state are now.
func (p *page) movedAside(paths []string) {
	for _, path := range paths {
		p.say("moved aside: " + path)
	}
}
