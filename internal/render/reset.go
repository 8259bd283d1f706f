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

// ResetView is what a reset takes away, project by project.
type ResetView struct {
	State     string // path of this project's state
	Fault     string // what is wrong with it; "" for nothing
	Complaint string // what is wrong with the configuration; "" for nothing
	Rounds    []ResetRound
	Failures  []error  // what could not be looked at
	Killed    []string // cosplay runs in this folder, by name
	Idle      bool     // there is not even a state that could be moved aside
	Flags     []string
}

// ResetRound is one project's part.
type ResetRound struct {
	Holder   resource.Holder
	Own      bool
	Plan     *plan.Plan
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Container // which only labels say are its own
	Notes    []resource.Note
}

// ResetDoneView is what came of it.
type ResetDoneView struct {
	ResetView
	Results []ResetResult
	Aside   []string // where what there was of the state was moved
	Left    bool     // something is left, and a state was written that knows it
	Err     error    // the state could not be moved or written
}

// ResetResult is what came of one project's part.
type ResetResult struct {
	Round  ResetRound
	Result apply.Result
	Err    error
}

// Empty reports whether there is nothing to take away.
func (v ResetView) Empty() bool {
	return !slices.ContainsFunc(v.Rounds, func(r ResetRound) bool { return r.Plan.Effects() > 0 })
}

// Reset shows what would be taken away.
func Reset(w io.Writer, s Style, v ResetView) {
	p := newPage(s)
	if v.Complaint != "" {
		p.flow(0, 2, text(prose.Stop(prose.Capital(v.Complaint))+" Hosts are taken from what of it is in order, and from the folders of simulated ones."))
	}
	if v.Fault != "" {
		p.flow(0, 2, join(inked(drifted, "The state cannot be used:"), text(" "+prose.Stop(v.Fault)+" The hosts' ledgers, labels and session folders say what is this project's.")))
	}
	for _, r := range v.Rounds {
		p.gap()
		p.resetRound(r)
	}
	if n := len(v.Killed); n > 0 {
		p.gap()
		p.flow(0, 2, text("What is left of "+prose.Count(n, "cosplay run")+" that "+prose.Choose(n, "was", "were")+" killed here: "+strings.Join(v.Killed, ", ")))
	}
	p.failures(v.Failures)
	p.gap()
	switch t := v.tally(); {
	case v.Empty() && len(v.Killed) > 0:
		p.flow(0, 2, join(inked(strong, "Reset: "), inked(removed, "that"), text(", and nothing else. "+v.asideWords())))
	case v.Empty():
		p.flow(0, 2, join(inked(strong, "There is nothing to take away. "), text(v.asideWords())))
	default:
		p.flow(0, 2, join(inked(strong, "Reset: "), inked(removed, prose.Count(t.Destroy, "session")+" to remove"), text("; "+prose.Count(t.GiveBack, "GPU")+" to give back. "+v.asideWords())))
	}
	p.flush(w)
}

// asideWords say what becomes of the state.
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

// resetRound shows one project: its GPUs, each with what is taken off it and what its settings become.
func (p *page) resetRound(r ResetRound) {
	whose := "this project"
	if !r.Own {
		whose = fmt.Sprintf("the project of %s with its state in %s", r.Holder.User, r.Holder.State)
	}
	lineage := ""
	if r.Holder.Lineage != "" {
		lineage = ", lineage " + resource.ShortLineage(r.Holder.Lineage)
	}
	p.flow(0, 2, join(inked(strong, prose.Capital(whose)), inked(dim, lineage)))
	if len(r.Plan.Diff.GPUs)+len(r.Plan.Diff.Sessions) == 0 {
		p.flow(2, 4, text("holds nothing here."))
	}
	shown := map[resource.Address]bool{}
	for _, g := range r.Plan.Diff.GPUs {
		p.print(2, text(words.GPU(r.Live, g.Host, g.UUID)+"  "+words.ShortUUID(g.UUID)))
		t := &table{indent: 4, gap: 2, columns: []column{{}, {}, {}, {prose: true}}}
		for _, c := range r.Plan.Diff.Sessions {
			if c.Before.Slice.Host == g.Host && c.Before.Slice.GPU == g.UUID {
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

// addSession shows what goes with a session: its slice, its container.
func (r ResetRound) addSession(t *table, c diff.SessionChange) {
	slice, container := "-", "-"
	if c.Slice == diff.Remove {
		slice = "slice " + c.Before.Slice.String()
	}
	if c.Container == diff.Remove {
		container = resource.RuntimeNamed(c.Before.Runtime).Body
		if c.Before.Container != nil && resource.RuntimeNamed(c.Before.Runtime).ShownID > 0 {
			container += " " + shortID(*c.Before.Container)
		}
	}
	t.add(inked(removed, "-"), text(c.Address.String()), text(slice), text(container))
}

// resetSettings shows what a GPU's settings become, and which stay.
func (p *page) resetSettings(g diff.GPUChange) {
	t := &table{indent: 4, gap: 2, columns: []column{{}, {}, {}, {}, {prose: true}}}
	for _, f := range g.Fields {
		t.add(inked(replaced, "~"), text(words.Field(f)), text(words.Value(f.From, resource.Live{})), text(p.arrow()), text(words.Value(f.To, resource.Live{})))
	}
	p.table(t)
	for _, f := range g.Kept {
		p.flow(4, 6, text(fmt.Sprintf("left as it is: %s (%s); %s", words.Field(f), words.Value(f.From, resource.Live{}), prose.Stop(words.Setting(f)))))
	}
}

// unproven names the containers that a person has to agree to.
func (p *page) unproven(all []resource.Container) {
	if len(all) == 0 {
		return
	}
	var names []string
	for _, c := range all {
		names = append(names, together(resource.BodyName(c.Session)+" ("+shortID(c)+")"))
	}
	p.flow(2, 4, join(inked(drifted, "Not proven: "), text(fmt.Sprintf("the key of the state is lost, so only their labels and names say that these are the project's: %s. If other users create containers here, check these: docker inspect.", strings.Join(names, ", ")))))
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
func ResetDone(w io.Writer, s Style, v ResetDoneView) {
	p := newPage(s)
	p.failures(v.failed())
	sessions, gpus := 0, 0
	for _, r := range v.Results {
		sessions += len(r.Round.Prior.Sessions) - len(r.Result.Prior.Sessions)
		gpus += len(r.Round.Prior.GPUs) - len(r.Result.Prior.GPUs)
	}
	p.gap()
	words := fmt.Sprintf("%s removed, %s given back", prose.Count(sessions, "session"), prose.Count(gpus, "GPU"))
	if n := len(v.failed()) + len(v.Failures); n > 0 {
		p.flow(0, 2, join(inked(removed, fmt.Sprintf("Reset with %s: ", prose.Count(n, "failure"))), text(words+". The next cosplay reset tries the rest again.")))
	} else {
		p.flow(0, 2, join(inked(strong, "Reset: "), text(words+".")))
	}
	p.movedAside(v.Aside)
	if v.Left {
		p.flow(0, 2, text("A new state has what this project still holds: "+v.State))
	}
	p.flush(w)
}

// movedAside lists where the files of an old state are now.
func (p *page) movedAside(paths []string) {
	for _, path := range paths {
		p.flow(0, 2, text("moved aside: "+path))
	}
}
