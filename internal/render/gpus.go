package render

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// plannedGPU is a GPU with what a plan does to it.
type plannedGPU struct {
	name     string
	host     string
	uuid     string
	node     string       // of a cluster
	gpu      resource.GPU // zero if the host does not have it
	change   *diff.GPUChange
	sessions []diff.SessionChange // on it after the plan, or removed from it
	also     []diff.SessionChange // that have one of their devices on it, and the first on another GPU
	leaving  []diff.SessionChange // that move to another GPU
	slots    slotMap              // after the plan
	key      string               // equal for GPUs that read alike
}

// gpus shows the GPUs of a plan. GPUs without a change take one line, and GPUs that read alike are shown once.
func (p *page) gpus(v PlanView) {
	l := newLabels(addressesOf(v.Plan.Diff.Sessions))
	for _, run := range runsOf(plannedGPUs(v, l), p.Verbose) {
		g := run[0]
		p.gap()
		if g.idle() {
			p.idle(run)
			continue
		}
		p.plannedGPU(v, g, l)
		if len(run) > 1 {
			p.gap()
			p.flow(0, 2, inked(dim, fmt.Sprintf("%s the same on %s%s (--verbose shows all)", p.dots(), runName(run[1:]), sessionsOn(run[1:]))))
		}
	}
}

// idle reports whether the plan leaves a GPU as it is.
func (g plannedGPU) idle() bool {
	changes := func(c diff.SessionChange) bool { return c.Action != diff.NoOp }
	return len(g.leaving) == 0 && (g.change == nil || g.change.Action == diff.NoOp) &&
		!slices.ContainsFunc(g.sessions, changes) && !slices.ContainsFunc(g.also, changes)
}

// released reports whether the plan gives a GPU back.
func (g plannedGPU) released() bool { return g.change != nil && g.change.GiveBack }

// device is the number that programs of a session give to the GPU.
func (g plannedGPU) device(c diff.SessionChange) int {
	return slices.Index(subject(c).On(), resource.GPUKey{Host: g.host, UUID: g.uuid})
}

// plannedGPUs lists the GPUs of all hosts in the order of hosts and indexes. GPUs that no host has come last.
func plannedGPUs(v PlanView, l labels) []plannedGPU {
	var all []plannedGPU
	known := map[resource.GPUKey]int{}
	find := func(host, uuid string) *plannedGPU {
		key := resource.GPUKey{Host: host, UUID: uuid}
		if _, is := known[key]; !is {
			gpu, _ := v.Live.GPU(host, uuid)
			g := plannedGPU{name: words.GPU(v.Live, host, uuid), host: host, uuid: uuid, gpu: gpu, node: gpu.Node}
			known[key], all = len(all), append(all, g)
		}
		return &all[known[key]]
	}
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			find(h.Name, g.UUID)
		}
	}
	for i := range v.Plan.Diff.GPUs {
		c := &v.Plan.Diff.GPUs[i]
		find(c.Host, c.UUID).change = c
	}
	for _, c := range v.Plan.Diff.Sessions {
		slice := subject(c).Slice
		g := find(slice.Host, slice.GPU)
		g.sessions = append(g.sessions, c)
		for _, more := range subject(c).More {
			g := find(more.Host, more.GPU)
			g.also = append(g.also, c)
		}
		if c.Before != nil && (c.Before.Slice.Host != slice.Host || c.Before.Slice.GPU != slice.GPU) {
			old := find(c.Before.Slice.Host, c.Before.Slice.GPU)
			old.leaving = append(old.leaving, c)
		}
	}
	placements := v.Prior.Placements()
	for i := range all {
		all[i].draw(placements, l)
	}
	return all
}

// draw enters the wanted sessions and the foreign slices into the slot map.
func (g *plannedGPU) draw(placements resource.Placements, l labels) {
	g.slots = slotMap{model: g.gpu.Model, mig: g.gpu.MIG && g.gpu.Model.MIG()}
	if g.change != nil && g.change.Settings.Has(resource.MIGMode) {
		g.slots.mig = g.change.Settings.Is(resource.MIGMode, resource.On)
	}
	for _, c := range slices.Concat(g.sessions, g.also) {
		at := subject(c).Slices()[g.device(c)]
		if c.Action == diff.Forget {
			g.slots.taken = append(g.slots.taken, occupant{slice: at})
		}
		if c.After != nil {
			g.slots.mig = !at.Whole()
			g.slots.taken = append(g.slots.taken, occupant{slice: at, session: &c.Address, mib: c.After.Target.MemoryMiB, label: l.of(c.Address), ink: cellInks[c.Action]})
		}
	}
	for _, f := range diff.Foreign(g.gpu, placements) {
		g.slots.taken = append(g.slots.taken, occupant{slice: f.Slice})
	}
	g.key = g.reads()
}

// cellInks colour a session's cell by what happens to the session.
var cellInks = map[diff.Action]ink{diff.NoOp: plain, diff.Update: strong, diff.Create: added, diff.Replace: replaced, diff.Delete: removed,
	diff.Move: changed, diff.Import: added, diff.Forget: replaced}

// runsOf groups GPUs that read alike and follow one another.
func runsOf(all []plannedGPU, verbose bool) [][]plannedGPU {
	var runs [][]plannedGPU
	for _, g := range all {
		last := len(runs) - 1
		alike := last >= 0 && runs[last][0].host == g.host && runs[last][0].key == g.key
		if alike && (!verbose || g.idle()) {
			runs[last] = append(runs[last], g)
		} else {
			runs = append(runs, []plannedGPU{g})
		}
	}
	return runs
}

// reads is the text that GPUs which read alike have in common.
func (g plannedGPU) reads() string {
	var all []string
	add := func(parts ...any) { all = append(all, fmt.Sprint(parts...)) }
	add(g.gpu.Model.Name, g.idle(), g.slots.mig)
	if g.idle() {
		add(len(g.sessions)+len(g.also) > 0)
		return strings.Join(all, "\n")
	}
	if g.change != nil {
		add(g.change.Action)
		for _, f := range slices.Concat(g.change.Fields, g.change.Kept) {
			add(f.Kind, valueWords(f.From), valueWords(f.To), words.Setting(f))
		}
	}
	for _, c := range g.sessions {
		add(sessionReads(resource.Live{}, c), subject(c).Slice.Start)
	}
	for _, c := range g.also {
		add("device", c.Address, g.device(c))
	}
	for _, c := range g.leaving {
		add("leaving", c.Before.Slice)
	}
	for _, o := range g.slots.taken {
		if o.session == nil {
			add(o.slice.String())
		}
	}
	return strings.Join(all, "\n")
}

// runName is "GPU 3", "GPU 3 and 4", or "GPU 3 to 7".
func runName(run []plannedGPU) string {
	first, last := run[0].name, run[len(run)-1].gpu.Index
	switch len(run) {
	case 1:
		return first
	case 2:
		return fmt.Sprintf("%s and %d", first, last)
	}
	return fmt.Sprintf("%s to %d", first, last)
}

// sessionsOn is ", with 35 sessions", and names those that are removed or replaced.
func sessionsOn(run []plannedGPU) string {
	n := 0
	var ending []resource.Address
	for _, g := range run {
		n += len(g.sessions)
		for _, c := range g.sessions {
			if c.Action == diff.Delete || c.Action == diff.Replace {
				ending = append(ending, c.Address)
			}
		}
	}
	if n == 0 {
		return ""
	}
	return ", with " + prose.Count(n, "session") +
		given(len(ending), "; removed or replaced: "+resource.AddressNames(ending, 0))
}

// idle reports GPUs that stay as they are.
func (p *page) idle(run []plannedGPU) {
	sessions := map[resource.Address]bool{}
	for _, g := range run {
		for _, c := range slices.Concat(g.sessions, g.also) {
			sessions[c.Address] = true
		}
	}
	fate := "not needed, not touched"
	if len(sessions) > 0 {
		fate = prose.Count(len(sessions), "session") + ", nothing changes"
	} else if run[0].change != nil {
		fate = "nothing changes"
	}
	p.flow(0, 2, inked(dim, together(runName(run)+"  "+run[0].gpu.Model.Name+"  ")+hard+fate))
}

// plannedGPU shows one GPU: its settings, its slots, its sessions.
func (p *page) plannedGPU(v PlanView, g plannedGPU, l labels) {
	p.gpuTitle(v.Live, g)
	listed := p.gpuSettings(v.Live, g)
	if g.gpu.UUID != "" && (!g.released() || len(g.slots.taken) > 0) {
		if listed {
			p.gap()
		}
		p.slotMap(4, g.slots, l)
	}
	if len(g.sessions)+len(g.leaving)+len(g.also) > 0 {
		p.gap()
		p.sessionChanges(v, g)
	}
}

func (p *page) gpuTitle(live resource.Live, g plannedGPU) {
	if g.gpu.UUID == "" {
		p.flow(0, 4, join(inked(strong, g.name), text("  "+live.NoGPU(g.host, g.uuid).What)))
		return
	}
	uuid, fate := either(p.Verbose, g.uuid, words.ShortUUID(g.uuid)), given(g.node, "node "+g.node)+given(g.released(), "given back")
	t := &table{gap: 2, columns: make([]column, 4)}
	t.add(inked(strong, g.name), text(g.gpu.Model.Name), inked(dim, uuid), text(fate))
	p.table(t)
}

// gpuSettings lists the settings of a GPU that change, and those that stay although a change is expected, in the order
// in which cosplay sets them. It reports whether there is any.
func (p *page) gpuSettings(live resource.Live, g plannedGPU) bool {
	if g.change == nil {
		return false
	}
	type row struct {
		place int
		cells []line
	}
	var rows []row
	add := func(a diff.Action, f diff.Field, arrow, to line, reason string) {
		cells := []line{sign(a), text(words.Field(f)), text(words.Value(f.From, live)), arrow, to, inked(dim, reason)}
		rows = append(rows, row{settingPlace(f.Kind), cells})
	}
	for _, f := range g.change.Fields {
		add(diff.Update, f, inked(dim, p.arrow()), text(words.Value(f.To, live)), words.Setting(f))
	}
	kept := g.change.Kept
	if g.change.Action == diff.NoOp && !p.Verbose {
		kept = nil // the plan that set it has shown it
	}
	for _, f := range kept {
		left := given(g.released() && f.Kind != diff.FieldWholeGPU, "left as it is: ")
		add(diff.NoOp, f, nil, nil, left+words.Setting(f))
	}
	t := &table{columns: []column{{}, {tight: true}, {}, {tight: true}, {tight: true}, {prose: true}}}
	slices.SortStableFunc(rows, func(a, b row) int { return a.place - b.place })
	for _, r := range rows {
		t.add(r.cells...)
	}
	p.table(t)
	return len(t.rows) > 0
}

// settingPlace is the position of a setting in the order in which cosplay sets them; -1 for other differences.
func settingPlace(kind diff.Kind) int {
	return slices.IndexFunc(resource.SettingOrder[:], func(s resource.Setting) bool { return diff.SettingKind(s) == kind })
}
