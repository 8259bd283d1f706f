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

// board is one GPU of a plan with what happens on it.
type board struct {
	name     string
	host     string
	uuid     string
	gpu      resource.GPU // zero where it is gone
	change   *diff.GPUChange
	sessions []diff.SessionChange // that sit on it, or did
	leaving  []diff.SessionChange // that go to another GPU
	slots    slotMap              // as it will be
	key      string               // what it reads like
}

// boards shows the GPUs one after the other; those that nothing happens on in a line, those that read alike once.
func (p *page) boards(v PlanView) {
	l := newLabels(planAddresses(v))
	all := collectBoards(v, l)
	for _, run := range runsOf(all, p.Verbose) {
		b := run[0]
		p.gap()
		if b.idle() {
			p.idle(run)
			continue
		}
		p.board(v, b, l)
		if len(run) > 1 {
			p.gap()
			p.flow(0, 2, inked(dim, fmt.Sprintf("%s the same on %s%s (--verbose shows all)", p.dots(), runName(run[1:]), sessionsOn(run[1:]))))
		}
	}
}

// idle reports whether nothing happens on a board.
func (b board) idle() bool {
	return len(b.leaving) == 0 && (b.change == nil || b.change.Action == diff.NoOp) && !slices.ContainsFunc(b.sessions, func(c diff.SessionChange) bool { return c.Action != diff.NoOp })
}

// collectBoards puts the GPUs of all hosts with what a plan does to them, in the order of hosts and indexes; a GPU
// that is gone comes last.
func collectBoards(v PlanView, l labels) []board {
	var all []board
	at := map[[2]string]int{}
	open := func(host, uuid string) *board {
		key := [2]string{host, uuid}
		if _, ok := at[key]; !ok {
			at[key] = len(all)
			gpu, _ := v.Live.GPU(host, uuid)
			all = append(all, board{name: words.GPU(v.Live, host, uuid), host: host, uuid: uuid, gpu: gpu})
		}
		return &all[at[key]]
	}
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			open(h.Name, g.UUID)
		}
	}
	for i := range v.Plan.Diff.GPUs {
		c := &v.Plan.Diff.GPUs[i]
		open(c.Host, c.UUID).change = c
	}
	for _, c := range v.Plan.Diff.Sessions {
		slice := sliceOf(c)
		b := open(slice.Host, slice.GPU)
		b.sessions = append(b.sessions, c)
		if c.Before != nil && (c.Before.Slice.Host != slice.Host || c.Before.Slice.GPU != slice.GPU) {
			old := open(c.Before.Slice.Host, c.Before.Slice.GPU)
			old.leaving = append(old.leaving, c)
		}
	}
	placements := v.Prior.Placements()
	for i := range all {
		all[i].draw(placements, l)
	}
	return all
}

// sliceOf is where a session will be, or was if it goes.
func sliceOf(c diff.SessionChange) resource.Slice {
	if c.After != nil {
		return c.After.Slice
	}
	return c.Before.Slice
}

// draw puts the wanted sessions and the foreign slices on the slot map.
func (b *board) draw(placements resource.Placements, l labels) {
	b.slots = slotMap{model: b.gpu.Model, mig: b.gpu.MIG && b.gpu.Model.MIG()}
	if b.change != nil && b.change.Settings.Has(resource.MIGMode) {
		b.slots.mig = b.change.Settings.Is(resource.MIGMode, resource.On)
	}
	for _, c := range b.sessions {
		if c.Action == diff.Forget {
			b.slots.taken = append(b.slots.taken, occupant{slice: c.Before.Slice})
		}
		if c.After == nil {
			continue
		}
		address := c.Address
		b.slots.mig = !c.After.Slice.Whole()
		b.slots.taken = append(b.slots.taken, occupant{slice: c.After.Slice, session: &address, label: l.of(address), ink: cellInk(c.Action)})
	}
	for _, f := range diff.Foreign(b.gpu, placements) {
		b.slots.taken = append(b.slots.taken, occupant{slice: f.Slice})
	}
	b.key = b.reads()
}

// cellInk colours a session's cell by what happens to it.
func cellInk(a diff.Action) ink {
	switch a {
	case diff.NoOp:
		return plain
	case diff.Update:
		return strong
	default:
		return signs[a].ink
	}
}

func planAddresses(v PlanView) []resource.Address {
	var all []resource.Address
	for _, c := range v.Plan.Diff.Sessions {
		all = append(all, c.Address)
	}
	return all
}

// runsOf gathers boards that read alike and follow one another.
func runsOf(all []board, verbose bool) [][]board {
	var runs [][]board
	for _, b := range all {
		last := len(runs) - 1
		alike := last >= 0 && runs[last][0].host == b.host && runs[last][0].key == b.key
		if alike && (!verbose || b.idle()) {
			runs[last] = append(runs[last], b)
		} else {
			runs = append(runs, []board{b})
		}
	}
	return runs
}

// reads is what two boards that read alike have in common.
func (b board) reads() string {
	var all []string
	add := func(parts ...any) { all = append(all, fmt.Sprint(parts...)) }
	add(b.gpu.Model.Name, b.idle(), b.slots.mig)
	if b.idle() {
		add(len(b.sessions) > 0)
		return strings.Join(all, "\n")
	}
	if b.change != nil {
		add(b.change.Action)
		for _, f := range slices.Concat(b.change.Fields, b.change.Kept) {
			add(f.Kind, words.Value(f.From, resource.Live{}), words.Value(f.To, resource.Live{}), words.Setting(f))
		}
	}
	for _, c := range b.sessions {
		add(sessionReads(resource.Live{}, c), sliceOf(c).Start)
	}
	for _, c := range b.leaving {
		add("leaving", c.Before.Slice)
	}
	for _, o := range b.slots.taken {
		if o.session == nil {
			add(o.slice.String())
		}
	}
	return strings.Join(all, "\n")
}

// runName is "GPU 3", or "GPU 3 to 7" for several.
func runName(run []board) string {
	first, last := run[0], run[len(run)-1]
	if len(run) == 1 {
		return first.name
	}
	if len(run) == 2 {
		return fmt.Sprintf("%s and %d", first.name, last.gpu.Index)
	}
	return fmt.Sprintf("%s to %d", first.name, last.gpu.Index)
}

// sessionsOn is ", with 35 sessions"; those that go are named.
func sessionsOn(run []board) string {
	n := 0
	var going []resource.Address
	for _, b := range run {
		n += len(b.sessions)
		for _, c := range b.sessions {
			if c.Action == diff.Delete || c.Action == diff.Replace {
				going = append(going, c.Address)
			}
		}
	}
	switch {
	case n == 0:
		return ""
	case len(going) > 0:
		return ", with " + prose.Count(n, "session") + "; what goes or is replaced: " + resource.AddressNames(going, 0)
	}
	return ", with " + prose.Count(n, "session")
}

// idle tells of GPUs that stay as they are.
func (p *page) idle(run []board) {
	sessions := 0
	for _, b := range run {
		sessions += len(b.sessions)
	}
	fate := "not needed, not touched"
	if sessions > 0 {
		fate = prose.Count(sessions, "session") + ", nothing changes"
	} else if run[0].change != nil {
		fate = "nothing changes"
	}
	p.flow(0, 2, inked(dim, together(runName(run)+"  "+run[0].gpu.Model.Name+"  ")+hard+fate))
}

// board shows one GPU: its settings, its slots, its sessions.
func (p *page) board(v PlanView, b board, l labels) {
	p.boardTitle(v.Live, b)
	listed := p.boardSettings(v.Live, b)
	if given := b.change != nil && b.change.GiveBack; b.gpu.UUID != "" && (!given || len(b.slots.taken) > 0) {
		if listed {
			p.gap()
		}
		p.slotMap(4, b.slots, l)
	}
	if len(b.sessions)+len(b.leaving) > 0 {
		p.gap()
		p.sessionChanges(v, b)
	}
}

func (p *page) boardTitle(live resource.Live, b board) {
	if b.gpu.UUID == "" {
		wrong := live.NoGPU(b.host, b.uuid).What
		p.flow(0, 4, join(inked(strong, b.name), text("  "+wrong)))
		return
	}
	uuid := words.ShortUUID(b.uuid)
	if p.Verbose {
		uuid = b.uuid
	}
	fate := ""
	if b.change != nil && b.change.GiveBack {
		fate = "given back"
	}
	t := &table{gap: 2, columns: make([]column, 4)}
	t.add(inked(strong, b.name), text(b.gpu.Model.Name), inked(dim, uuid), text(fate))
	p.table(t)
}

// settingPlace is where a difference stands among the settings of a GPU, in the order in which they are made, whether
// they change or stay; what is no setting comes first.
func settingPlace(f diff.Field) int {
	return slices.IndexFunc(resource.SettingOrder[:], func(s resource.Setting) bool { return diff.SettingKind(s) == f.Kind })
}

// boardSettings lists what changes on a GPU and what stays though one would expect a change; it reports whether there
// is any.
func (p *page) boardSettings(live resource.Live, b board) bool {
	if b.change == nil {
		return false
	}
	type setting struct {
		diff.Field
		cells []line
	}
	var all []setting
	for _, f := range b.change.Fields {
		all = append(all, setting{f, []line{sign(diff.Update), text(words.Field(f)), text(words.Value(f.From, live)), inked(dim, p.arrow()), text(words.Value(f.To, live)), inked(dim, words.Setting(f))}})
	}
	kept := b.change.Kept
	if b.change.Action == diff.NoOp && !p.Verbose {
		kept = nil // the plan that set it has shown it
	}
	for _, f := range kept {
		reason := words.Setting(f)
		if b.change.GiveBack && f.Kind != diff.FieldWholeGPU {
			reason = "left as it is: " + reason
		}
		all = append(all, setting{f, []line{sign(diff.NoOp), text(words.Field(f)), text(words.Value(f.From, live)), nil, nil, inked(dim, reason)}})
	}
	slices.SortStableFunc(all, func(a, b setting) int {
		return settingPlace(a.Field) - settingPlace(b.Field)
	})
	t := &table{columns: []column{{}, {tight: true}, {}, {tight: true}, {tight: true}, {prose: true}}}
	for _, one := range all {
		t.add(one.cells...)
	}
	p.table(t)
	return len(t.rows) > 0
}
