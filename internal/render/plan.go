package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
	"cosplay/internal/words"
)

// PlanView is a plan with all that it rests on.
type PlanView struct {
	Config   string   // what the configuration is called: its file, or "the configuration"
	Flags    []string // flags that were given, for the commands that are suggested
	Prior    resource.Prior
	Live     resource.Live
	Plan     *plan.Plan
	Destroy  bool
	Applying bool   // apply and destroy show it before they ask: what to type next is then their question
	Saved    string // the file that the plan was saved to; "" if it was not
	Stale    string // what has moved since a saved plan was made; "" if nothing has
	Warnings hcl.Diagnostics
	Files    map[string]*hcl.File
	Notes    []resource.Note // what was found of an interrupted run, or of runs that the state did not know
}

// Plan shows what will happen: hosts, drift, then for each GPU its settings, its slot map and its sessions, and last
// the line that counts.
func Plan(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.heading(v)
	p.notes(v)
	if v.Plan.Diff.Drifted() {
		p.gap()
		p.drift(v)
	}
	if v.Plan.Diff.Changes() {
		if v.Plan.Diff.Drifted() {
			p.gap()
			p.print(0, inked(strong, "Changes:"))
		}
		p.images(v)
		p.boards(v)
		p.limits(v)
		p.strays(v)
		p.information(v, true)
	}
	p.outputChanges(v.Plan.Diff.Outputs)
	if len(v.Warnings) > 0 {
		p.gap()
		p.diagnostics(v.Warnings, v.Files)
	}
	p.gap()
	p.summary(v)
	p.flush(w)
}

// heading says what was read, what is remembered and what there is.
func (p *page) heading(v PlanView) {
	t := &table{columns: []column{{}, {prose: true}}}
	t.add(inked(dim, "config"), text(v.Config))
	t.add(inked(dim, "state"), text(stateWords(v.Prior)))
	for _, h := range v.Live.Hosts {
		t.add(inked(dim, "host"), text(hostWords(h)))
	}
	p.table(t)
}

func stateWords(prior resource.Prior) string {
	switch {
	case len(prior.Sessions) == 0 && len(prior.GPUs) == 0 && prior.Serial == 0:
		return "nothing applied yet"
	case len(prior.Sessions) == 0 && len(prior.GPUs) == 0:
		return fmt.Sprintf("serial %d, nothing in it", prior.Serial)
	}
	return fmt.Sprintf("serial %d, %s on %s", prior.Serial, prose.Count(len(prior.Sessions), "session"), prose.Count(len(prior.GPUs), "GPU"))
}

// hostWords is "lab: 8 x NVIDIA H200 (simulated), driver 570.86, Docker 20.10.24, slices through CDI".
func hostWords(h resource.Host) string {
	var names []string
	for _, g := range h.GPUs {
		names = append(names, g.Model.Name)
	}
	var models []string
	for _, model := range prose.Numbered(names) {
		models = append(models, together(model))
	}
	words := h.Name + ": " + strings.Join(models, " + ")
	switch {
	case len(names) == 0 && len(h.Unusable) > 0:
		words += "no usable GPU"
	case len(names) == 0:
		words += "no GPU"
	}
	if h.Simulated != "" {
		words += " (simulated)"
	}
	if h.Driver != "" {
		words += ", " + together("driver "+h.Driver)
	}
	if runtime := runtimeWords(h); runtime != "" {
		words += ", " + runtime
	}
	return words
}

func (p *page) notes(v PlanView) {
	if len(v.Notes) == 0 {
		return
	}
	p.gap()
	p.flow(0, 2, join(inked(strong, "The state was brought up to date"), text(" with what was found on the hosts:")))
	for _, n := range words.Notes(v.Notes, v.Live) {
		p.flow(2, 4, text(n))
	}
}

// tally counts what a plan does.
type tally struct {
	Create   int
	Change   int
	Replace  int
	Destroy  int
	Move     int
	Forget   int
	Import   int
	SetUp    int
	GiveBack int
	Build    int
	Pull     int
	Sweep    int
}

func tallyOf(p *plan.Plan) tally {
	var t tally
	for _, s := range p.Diff.Sessions {
		t.session(s.Action)
	}
	for _, g := range p.Diff.GPUs {
		t.gpu(g)
	}
	for _, s := range p.Steps {
		t.image(s.Do.Op)
	}
	t.Sweep = len(p.Diff.Strays)
	return t
}

// strays lists what runs that were cut off have left.
func (p *page) strays(v PlanView) {
	if len(v.Plan.Diff.Strays) == 0 {
		return
	}
	t := &table{indent: 2, columns: []column{{}, {}, {prose: true}}}
	for _, c := range v.Plan.Diff.Strays {
		what := "a container that never ran"
		if c.ID == "" {
			what = "a session folder that no container has"
		}
		t.add(inked(removed, "-"), text(resource.BodyName(c.Session)), inked(dim, what))
	}
	p.gap()
	p.flow(0, 2, text("Leftovers of interrupted runs, of sessions that the state does not know:"))
	p.table(t)
}

func (t *tally) image(op plan.Op) {
	switch op, _ := op.(plan.EnsureImage); op.How {
	case plan.BuildImage:
		t.Build++
	case plan.PullImage:
		t.Pull++
	}
}

func (t *tally) session(a diff.Action) {
	switch a {
	case diff.NoOp:
	case diff.Create:
		t.Create++
	case diff.Update:
		t.Change++
	case diff.Replace:
		t.Replace++
	case diff.Delete:
		t.Destroy++
	case diff.Move:
		t.Move++
	case diff.Forget:
		t.Forget++
	case diff.Import:
		t.Import++
	}
}

func (t *tally) gpu(c diff.GPUChange) {
	switch {
	case c.Action == diff.NoOp:
	case c.GiveBack && c.Action == diff.Delete:
		t.GiveBack++
	case c.GiveBack: // the rest is restored
	default:
		t.SetUp++
	}
}

func (t tally) sessions() int {
	return t.Create + t.Change + t.Replace + t.Destroy + t.Move + t.Forget + t.Import
}

// summary ends a plan: what it amounts to, and what to type next.
func (p *page) summary(v PlanView) {
	t := tallyOf(v.Plan)
	switch {
	case v.Stale != "":
		p.flow(0, 2, join(inked(removed, "Stale:"), text(" "+v.Stale+" since this plan was made, so it will not be applied. Fix: make a new plan.")))
		p.next(suggest("plan", append(slices.Clone(v.Flags), "--out", v.Saved)))
		return
	case !v.Plan.Diff.Changes():
		p.nothingToDo(v)
		return
	case t.sessions() == 0 && t.SetUp == 0 && t.GiveBack > 0:
		p.flow(0, 2, join(inked(strong, "Plan:"), text(" no session changes; "), inked(removed, prose.Count(t.GiveBack, "GPU")+" to give back"), text(untouched(v))))
	default:
		p.flow(0, 2, join(inked(strong, "Plan: "), t.words(), text(untouched(v))))
		if len(v.Plan.Diff.Stuck) > 0 && !v.Destroy {
			p.flow(0, 2, text(stuckWords(v.Plan.Diff)))
		}
	}
	if v.Applying {
		return
	}
	p.next(applyNext(v))
}

// applyNext is the command that carries a plan out.
func applyNext(v PlanView) string {
	switch {
	case v.Saved != "":
		return suggest("apply", append(slices.Clone(v.Flags), v.Saved))
	case v.Destroy:
		return suggest("destroy", v.Flags)
	}
	return suggest("apply", v.Flags)
}

// untouched ends the sentence of a plan that is only shown.
func untouched(v PlanView) string {
	if v.Applying {
		return "."
	}
	return ". " + together("Nothing has been touched.")
}

func (p *page) next(command string) {
	p.flow(0, 6, join(inked(strong, "Next:"), text(" "+command)))
}

// words is "7 to create, 0 to change, 0 to destroy; 1 GPU to set up; 1 image to build".
func (t tally) words() line {
	item := func(n int, what string, i ink) line {
		if n == 0 {
			i = plain
		}
		return inked(i, together(fmt.Sprintf("%d %s", n, what)))
	}
	words := join(item(t.Create, "to create", added), text(", "), item(t.Change, "to change", strong))
	if t.Replace > 0 {
		words = join(words, text(", "), item(t.Replace, "to replace", replaced))
	}
	words = join(words, text(", "), item(t.Destroy, "to destroy", removed))
	if t.Move > 0 {
		words = join(words, text(", "), item(t.Move, "to move", changed))
	}
	if t.Forget > 0 {
		words = join(words, text(", "), item(t.Forget, "to forget", replaced))
	}
	if t.Import > 0 {
		words = join(words, text(", "), item(t.Import, "to import", added))
	}
	for _, more := range []struct {
		n           int
		thing, fate string
	}{{t.SetUp, "GPU", " to set up"}, {t.GiveBack, "GPU", " to give back"}, {t.Build, "image", " to build"}, {t.Pull, "image", " to pull"}, {t.Sweep, "leftover", " to remove"}} {
		if more.n > 0 {
			words = join(words, text("; "+together(prose.Count(more.n, more.thing)+more.fate)))
		}
	}
	return words
}

// nothingToDo says that all is well, and what is left alone.
func (p *page) nothingToDo(v PlanView) {
	said := "Everything is as " + v.Config + " says."
	switch {
	case v.Plan.Partial && len(v.Plan.Diff.Stuck) == 0:
		said = "What is not left out is as " + v.Config + " says."
	case v.Destroy:
		said = "There is nothing of this project left to destroy."
		if len(v.Plan.Diff.Unrestored()) > 0 {
			said = "What is left of this project cannot be restored now."
		}
	case len(v.Plan.Diff.Stuck) > 0:
		said = stuckWords(v.Plan.Diff)
	case slices.ContainsFunc(v.Plan.Diff.Drift, diff.Drift.NoGPU):
		said = "What is on a GPU that is unusable or missing is left as it is until the GPU answers again."
	case v.Plan.Diff.Drifted():
		said = "What has drifted is left as it is: neighbours or the manage line forbid a change, or nothing asks for it (--verbose shows the settings)."
	}
	if !v.Plan.Diff.Drifted() { // then the drift has told them
		said = strings.TrimSpace(said + " " + toldWords(v, true))
	}
	if len(v.Plan.Diff.Outputs) == 0 {
		p.flow(0, 2, join(inked(strong, "No changes. "), text(said)))
		return
	}
	p.flow(0, 2, join(inked(strong, "Plan: "), text("outputs alone change. "+said)))
	if !v.Applying {
		p.next(applyNext(v))
	}
}

// stuckWords names the unfinished sessions that a plan cannot complete.
func stuckWords(d diff.Diff) string {
	return "Unfinished, and left as it is: " + resource.AddressNames(d.Stuck, 1) + ". The plan cannot complete what is on a GPU that cannot be read."
}

// toldWords tells what is not as it was, and is left alone.
func toldWords(v PlanView, planned bool) string {
	return strings.Join(slices.DeleteFunc([]string{foreignWords(v), keptWords(v.Plan.Diff.Drift), information(v, planned)}, func(s string) bool { return s == "" }), " ")
}

// foreignWords tells of slices of others on our GPUs.
func foreignWords(v PlanView) string {
	n := 0
	var on []string
	for _, d := range v.Plan.Diff.Drift {
		if d.Class == diff.ForeignSlice {
			n++
			if name := words.GPU(v.Live, d.Host, d.GPU); len(on) == 0 || on[len(on)-1] != name {
				on = append(on, name)
			}
		}
	}
	switch {
	case n == 0:
		return ""
	case len(on) > 3:
		on = []string{prose.Count(len(on), "GPU")}
	}
	where := strings.Join(on, ", ")
	return fmt.Sprintf("%s on %s %s left alone.", prose.Count(n, "foreign slice"), where, prose.Choose(n, "is", "are"))
}

// suggest is a command to type next.
func suggest(command string, arguments []string) string {
	words := []string{"cosplay", command}
	for _, a := range arguments {
		words = append(words, together(terminal.ShellWord(a)))
	}
	return strings.Join(words, " ")
}
