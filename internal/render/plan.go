package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
	"cosplay/internal/words"
)

// PlanView is a plan with what it was computed from.
type PlanView struct {
	Config   string   // name of the configuration: its file, or "the configuration"
	Flags    []string // flags that were given, for the commands that are suggested
	Aim      []string // those that the plan was made with, which apply takes only without a saved plan
	Prior    resource.Prior
	Live     resource.Live
	Plan     *plan.Plan
	Destroy  bool
	Applying bool     // apply or destroy shows the plan and then asks, so it suggests no command
	Quiet    bool     // drift prints nothing but drift
	Killed   bool     // a cosplay run in this folder was killed and has left something
	Saved    string   // the file that the plan was saved to; "" if it was not
	Again    []string // sensitive variables whose values an apply of the saved plan needs again
	Stale    string   // what has changed since the plan was saved; "" for nothing
	Fix      string   // what makes the plan that is stale good again; "" for nothing
	Warnings hcl.Diagnostics
	Files    map[string]*hcl.File
	Notes    []resource.Note // what was found of runs that were interrupted or that the state did not know

	Clusters *ClustersView // nil without Kubernetes clusters

	sharers map[resource.Address]int // by session, see resource.Sharers
}

// warningsOf are the warnings about the placement of a session.
func (v PlanView) warningsOf(a resource.Address) []place.Warning {
	var all []place.Warning
	for _, d := range v.Warnings {
		if w, is := d.Extra.(place.Warning); is && slices.Contains(w.Sessions, a) {
			all = append(all, w)
		}
	}
	return all
}

// Plan shows what will happen: hosts, drift, then for each GPU its settings, its slot map and its sessions, and last
// the line that counts.
func (v PlanView) draw(p *page) {
	v.sharers = resource.Sharers(v.Plan.Desired.Sessions)
	if v.Saved != "" {
		p.Secrets = v.Again
	}
	p.heading(v)
	p.caughtUp(v)
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
		p.gpus(v)
		p.limits(v)
		p.leftovers(v.Plan.Diff.Leftovers)
		p.information(v, true)
	}
	p.down(v.Plan.Diff.Down)
	p.outputChanges(v.Plan.Diff.Outputs)
	p.clusters(v)
	if len(v.Warnings) > 0 {
		p.gap()
		p.diagnostics(v.Warnings, v.Files)
	}
	if !v.onlyClusters() {
		p.gap()
		p.summary(v)
	}
	p.manifests(v)
}

// onlyClusters reports whether there is nothing that could be applied.
func (v PlanView) onlyClusters() bool { return v.Clusters != nil && len(v.Live.Hosts) == 0 }

// down lists the expired sessions that stay down.
func (p *page) down(all []resource.Expired) {
	if len(all) > 0 {
		p.gap()
	}
	for _, e := range all {
		p.say(fmt.Sprintf("%s expired at %s (%s). It stays down until its block is edited, or: cosplay extend %s 4h",
			e.Address, e.At, e.Why, e.Address.Short()))
	}
}

// heading names the configuration, the state and the hosts.
func (p *page) heading(v PlanView) {
	t := &table{columns: []column{{}, {prose: true}}}
	t.fact("config", v.Config)
	if !v.onlyClusters() {
		t.fact("state", stateWords(v.Prior))
	}
	for _, h := range v.Live.Hosts {
		t.fact("host", hostWords(h))
	}
	if v.Clusters != nil {
		for _, h := range v.Clusters.Live.Hosts {
			h.Runtime = "" // the node's
			t.fact("cluster", hostWords(h))
		}
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
	names := each(h.GPUs, func(g resource.GPU) string { return g.Model.Name })
	words := h.Name + ": " + strings.Join(each(prose.Numbered(names), together), " + ")
	switch {
	case h.Unreachable != "":
		return words + "cannot be read"
	case len(names) == 0 && len(h.Unusable) > 0:
		words += "no usable GPU"
	case len(names) == 0:
		words += "no GPU"
	}
	runtime := runtimeWords(h)
	return words + given(h.Simulated, " (simulated)") + given(h.Driver, ", "+together("driver "+h.Driver)) +
		given(runtime, ", "+runtime)
}

func (p *page) caughtUp(v PlanView) {
	if len(v.Notes) == 0 {
		return
	}
	p.gap()
	p.lead(0, strong, "The state was brought up to date", "with what was found on the hosts:")
	for _, n := range words.Notes(v.Notes, v.Live) {
		p.detail(n)
	}
}

// tally counts what a plan does, or what a run did.
type tally public.Tally

func tallyOf(p *plan.Plan) tally {
	var t tally
	for _, s := range p.Diff.Sessions {
		t.session(s)
	}
	for _, g := range p.Diff.GPUs {
		t.gpu(g)
	}
	for _, s := range p.Steps {
		t.image(s.Do.Op)
	}
	t.Sweep = len(p.Diff.Leftovers)
	return t
}

// leftovers lists leftovers of interrupted runs, which apply removes.
func (p *page) leftovers(all []resource.Body) {
	if len(all) == 0 {
		return
	}
	t := &table{indent: 2, columns: []column{{screen: true}, {name: "Name"}, {name: "What", prose: true}}}
	for _, c := range all {
		what := either(c.ID == "", "a session folder that no container has", "a container that never ran")
		t.add(inked(removed, "-"), text(resource.BodyName(c.Session)), inked(dim, what))
	}
	p.gap()
	p.say("Leftovers of interrupted runs, of sessions that the state does not know:")
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

func (t *tally) session(c diff.SessionChange) {
	if c.Imported != "" && c.Action != diff.Import { // it is imported, and changed as well
		t.Import++
	}
	counts := map[diff.Action]*int{diff.Create: &t.Create, diff.Update: &t.Change, diff.Replace: &t.Replace, diff.Delete: &t.Destroy,
		diff.Move: &t.Move, diff.Forget: &t.Forget, diff.Import: &t.Import}
	if n := counts[c.Action]; n != nil {
		*n++
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

// summary prints the counts and the next command.
func (p *page) summary(v PlanView) {
	t := tallyOf(v.Plan)
	switch {
	case v.Stale != "":
		p.lead(0, removed, "Stale:", v.Stale+". This plan will not be applied. Fix: "+cmp.Or(v.Fix, "make a new plan")+".")
		p.next(suggest("plan", slices.Concat(v.Flags, v.Aim, []string{"--out", v.Saved})))
		return
	case !v.Plan.Diff.Changes():
		p.nothingToDo(v)
		return
	case t.sessions() == 0 && t.SetUp == 0 && t.GiveBack > 0:
		p.flow(0, 2, join(inked(strong, "Plan:"), text(" no session changes; "), inked(removed, prose.Count(t.GiveBack, "GPU")+" to give back"), text(untouched(v))))
	default:
		p.flow(0, 2, join(inked(strong, "Plan: "), t.words(), text(untouched(v))))
		if len(v.Plan.Diff.Stuck) > 0 && !v.Destroy {
			p.say(stuckWords(v.Plan.Diff))
		}
	}
	if !v.Applying {
		p.next(applyNext(v))
	}
}

// applyNext is the command that carries a plan out.
func applyNext(v PlanView) string {
	switch {
	case v.Saved != "":
		return suggest("apply", append(slices.Clone(v.Flags), v.Saved))
	case v.Destroy:
		return suggest("destroy", slices.Concat(v.Flags, v.Aim))
	}
	return suggest("apply", slices.Concat(v.Flags, v.Aim))
}

// untouched ends the sentence of the counts.
func untouched(v PlanView) string {
	return either(v.Applying, ".", ". "+together("Nothing has been touched."))
}

// next suggests a command. plan and apply need the values of sensitive variables, which cosplay does not print.
func (p *page) next(command string) {
	if len(p.Secrets) > 0 && (strings.HasPrefix(command, "cosplay plan") || strings.HasPrefix(command, "cosplay apply")) {
		p.say("The next command needs " + config.GiveAgain(p.Secrets) + ". cosplay does not print or save a sensitive value.")
	}
	p.flow(0, 6, join(inked(strong, "Next:"), text(" "+command)))
}

// words is "7 to create, 0 to change, 0 to destroy; 1 GPU to set up; 1 image to build".
func (t tally) words() (words line) {
	for _, c := range t.counts() {
		ink := either(c.n == 0, plain, c.ink)
		switch what := together(fmt.Sprintf("%d to %s", c.n, c.toDo)); {
		case c.n == 0 && !c.always:
		case c.thing != "":
			words = join(words, text("; "+together(prose.Count(c.n, c.thing)+" to "+c.toDo)))
		case len(words) > 0:
			words = join(words, text(", "), inked(ink, what))
		default:
			words = inked(ink, what)
		}
	}
	return words
}

// counted is a number of sessions or, with a thing, of something else: what is to be done with them, and what was done.
type counted struct {
	n                 int
	thing, toDo, done string
	ink               ink
	always            bool // shown if it is 0, too
}

func (t tally) counts() []counted {
	return []counted{
		{t.Create, "", "create", "created", added, true}, {t.Change, "", "change", "changed", strong, true},
		{t.Replace, "", "replace", "replaced", replaced, false}, {t.Destroy, "", "destroy", "destroyed", removed, true},
		{t.Move, "", "move", "moved", changed, false}, {t.Forget, "", "forget", "forgotten", replaced, false},
		{t.Import, "", "import", "imported", added, false},
		{n: t.SetUp, thing: "GPU", toDo: "set up", done: "set up"}, {n: t.GiveBack, thing: "GPU", toDo: "give back", done: "given back"},
		{n: t.Build, thing: "image", toDo: "build", done: "built"}, {n: t.Pull, thing: "image", toDo: "pull", done: "pulled"},
		{n: t.Sweep, thing: "leftover", toDo: "remove", done: "removed"},
	}
}

// nothingToDo reports that nothing changes, and what cosplay leaves alone.
func (p *page) nothingToDo(v PlanView) {
	said := unchangedWords(v)
	if !v.Plan.Diff.Drifted() { // otherwise the drift has reported it
		said = strings.TrimSpace(said + " " + leftAlone(v, true))
	}
	if len(v.Plan.Diff.Outputs) == 0 {
		p.lead(0, strong, "No changes.", said)
		return
	}
	p.lead(0, strong, "Plan:", "outputs alone change. "+said)
	if !v.Applying {
		p.next(applyNext(v))
	}
}

// unchangedWords state why a plan changes nothing.
func unchangedWords(v PlanView) string {
	d := v.Plan.Diff
	all := func(is func(diff.Drift) bool) bool { // the drift that is not informational
		return d.Drifted() && !slices.ContainsFunc(d.Drift, func(one diff.Drift) bool { return !one.Informational && !is(one) })
	}
	switch {
	case !v.Live.AllReached():
		return "There is nothing to do on the hosts that can be read."
	case v.Plan.Partial && len(d.Stuck) == 0:
		return "What is not left out is as " + v.Config + " says."
	case v.Destroy && len(d.Unrestored()) > 0:
		return "What is left of this project cannot be restored now."
	case v.Destroy:
		return "There is nothing of this project left to destroy."
	case len(d.Stuck) > 0:
		return stuckWords(d)
	case slices.ContainsFunc(d.Drift, diff.Drift.NoGPU):
		return "What is on a GPU that is unusable or missing is left as it is until the GPU answers again."
	case all(func(one diff.Drift) bool { return one.Class == diff.LifetimeEnded }):
		return "apply does not end sessions that have expired; cosplay expire does."
	case all(diff.Drift.EndsPrograms):
		return "What has drifted is left as it is: apply does not stop the programs of a session for it."
	case d.Drifted():
		return "What has drifted is left as it is: neighbours or the manage line forbid a change, " +
			"or nothing asks for it (--verbose shows the settings)."
	}
	return "Everything is as " + v.Config + " says."
}

// stuckWords names the unfinished sessions that a plan cannot complete.
func stuckWords(d diff.Diff) string {
	return "Unfinished, and left as it is: " + resource.AddressNames(d.Stuck, 1) + ". The plan cannot complete what is on a GPU that cannot be read."
}

// leftAlone reports what is not as it was and what cosplay leaves alone.
func leftAlone(v PlanView, planned bool) string {
	return strings.Join(present(foreignWords(v), restingWords(v), keptWords(v.Plan.Diff.Drift), information(v, planned)), " ")
}

// restingWords reports the sessions that cosplay stop has stopped.
func restingWords(v PlanView) string {
	var all []resource.Address
	for _, s := range v.Prior.Sessions {
		if body, _ := v.Live.Body(s.Slice.Host, s.Runtime, s.ID); s.Rests(body) {
			all = append(all, s.Address)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s stopped, by cosplay stop; cosplay start starts %s.", resource.AddressNames(all, 3),
		prose.Choose(len(all), "is", "are"), prose.Choose(len(all), "it", "them"))
}

// foreignWords reports foreign slices on the project's GPUs.
func foreignWords(v PlanView) string {
	foreign := prose.Only(v.Plan.Diff.Drift, func(d diff.Drift) bool { return d.Class == diff.ForeignSlice })
	on, n := each(foreign, func(d diff.Drift) string { return words.GPU(v.Live, d.Host, d.GPU) }), len(foreign)
	if n == 0 {
		return ""
	}
	if on = slices.Compact(on); len(on) > 3 {
		on = []string{prose.Count(len(on), "GPU")}
	}
	return fmt.Sprintf("%s on %s %s left alone.", prose.Count(n, "foreign slice"), strings.Join(on, ", "), prose.Choose(n, "is", "are"))
}

// suggest is a command to copy.
func suggest(command string, arguments []string) string {
	words := each(arguments, func(a string) string { return together(terminal.ShellWord(a)) })
	return strings.Join(append([]string{"cosplay", command}, words...), " ")
}
