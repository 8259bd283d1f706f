package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
	"cosplay/internal/words"
)

// MovedView is a change of addresses in the state.
type MovedView struct {
	Moves      []resource.Renamed
	DryRun     bool
	Serial     int                // of the state now
	Configured []resource.Address // the sessions of the configuration
}

// Moved shows the new addresses, and those that the configuration does not have.
func (v MovedView) draw(p *page) {
	configured := func(a resource.Address) bool { return slices.Contains(v.Configured, a) }
	old := prose.Only(each(v.Moves, func(m resource.Renamed) resource.Address { return m.From }), configured)
	missing := slices.DeleteFunc(each(v.Moves, func(m resource.Renamed) resource.Address { return m.To }), configured)
	t := &table{gap: 1, columns: []column{{}, {}, {}}}
	for _, m := range v.Moves {
		t.texts(m.From.String(), p.arrow(), m.To.String())
	}
	p.table(t)
	warn := func(all []resource.Address, has, then string) {
		if len(all) > 0 {
			p.say("The configuration " + has + " " + resource.AddressNames(all, 1) + ": the next apply " + then)
		}
	}
	warn(missing, "has no", "removes what is not in it. Write it there first.")
	warn(old, "still has", "creates it again.")
	moved := prose.Count(len(v.Moves), "session")
	if v.DryRun {
		p.lead(0, strong, moved+" would be moved.", "This was a dry run: nothing was changed.")
	} else {
		p.lead(0, strong, "Moved "+moved+".",
			"Slices and containers are as they were; inside, GPU_COSPLAY_SESSION keeps the old name until they are recreated.")
	}
}

func (v MovedView) data() any {
	moved := func(m resource.Renamed) public.Renamed {
		return public.Renamed{From: m.From.String(), To: m.To.String()}
	}
	return public.Moved{Format: public.V1, DryRun: v.DryRun, Serial: v.Serial, Moved: each(v.Moves, moved)}
}

// ForgottenView is a part of the state that the state forgets. Its slices and containers stay.
type ForgottenView struct {
	StatePart
	DryRun  bool
	SimDirs map[string]string // folders of the simulated hosts
}

// Forgotten shows what stays on the hosts, and the commands that remove it.
func Forgotten(w io.Writer, s Style, v ForgottenView) {
	p := newPage(s)
	var commands []string
	t := &table{indent: 2, columns: append(sessionColumn(), textColumns("SLICE", "GPU", "MIG UUID")...)}
	for _, one := range v.Sessions {
		on := each(one.On(), func(at resource.GPUKey) string { return words.ShortUUID(at.UUID) })
		t.texts(one.Address.String(), one.PlaceWords(), strings.Join(on, ", "), cmp.Or(sliceUUID(one), "-"))
		commands = append(commands, v.removal(one)...)
	}
	if len(t.rows) > 0 {
		p.say("What these sessions have stays as it is, and cosplay will no longer know it:")
		p.table(t)
	}
	p.commands("To remove it by hand:", commands)
	for _, g := range v.GPUs {
		p.gap()
		p.print(0, join(inked(strong, g.UUID), text("  on "+g.Host)))
		p.flow(2, 2, text("No session of the state is left on it: it is forgotten too, and its settings stay until cosplay destroy restores them."))
		p.stateGPU(g)
		p.commands("To restore them by hand instead, once nothing is left on it:", v.restoring(g))
	}
	p.gap()
	p.flush(w)
}

// ForgottenDone shows the result.
func (v ForgottenView) draw(p *page) {
	n := len(v.GPUs)
	things := prose.Count(len(v.Sessions), "session") + given(n, " and "+prose.Count(n, "GPU"))
	if v.DryRun {
		p.lead(0, strong, things+" would be forgotten.", "This was a dry run: nothing was changed.")
	} else {
		p.lead(0, strong, "Forgotten: "+things+".", fmt.Sprintf("The state before is kept beside it as .backup, serial %d.", v.Serial-1))
	}
}

// commands lists commands to copy.
func (p *page) commands(title string, all []string) {
	if len(all) == 0 {
		return
	}
	p.print(0, text(title))
	for _, c := range all {
		p.print(2, text(c))
	}
}

// removal are the commands that remove the slice and the container of a session.
func (v ForgottenView) removal(s resource.PriorSession) []string {
	var all []string
	if c := s.Body; c != nil {
		all = append(all, resource.RuntimeNamed(c.Runtime).RemoveCommand+" "+terminal.ShellWord(shortID(*c)))
	}
	if h := s.Handle; h != nil {
		smi := v.smi(s.Slice.Host)
		if h.UUID != "" {
			all = append(all, fmt.Sprintf("%s mig -i %s -dci -gi %d -ci %d", smi, s.Slice.GPU, h.GPUInstance, h.ComputeInstance))
		}
		if h.UUID == "" || !s.Slice.Divides() { // else its GPU instance may have others
			all = append(all, fmt.Sprintf("%s mig -i %s -dgi -gi %d", smi, s.Slice.GPU, h.GPUInstance))
		}
	}
	return all
}

// restoring are the commands that restore the baseline of a GPU. Settings that need persistence mode precede it.
func (v ForgottenView) restoring(g resource.PriorGPU) []string {
	var all []string
	for _, setting := range slices.Backward(resource.SettingOrder[:]) {
		was, known := g.Baseline.Get(setting)
		set, changed := g.Applied.Get(setting)
		changed = known && changed && was != set
		if setting == resource.SMClock { // a lock is lifted where the baseline has none
			changed = set != 0 || g.ClockUnsure
		}
		if changed {
			all = append(all, v.smi(g.Host)+" "+words.SMI(g.UUID, setting, was))
		}
	}
	return all
}

// smi is the command that runs nvidia-smi for a host.
func (v ForgottenView) smi(host string) string {
	if dir := v.SimDirs[host]; dir != "" {
		return "LD_LIBRARY_PATH=" + terminal.ShellWord(dir) + " nvidia-smi"
	}
	return "nvidia-smi"
}

func (v ForgottenView) data() any {
	sessions := each(v.Sessions, func(s resource.PriorSession) public.ForgottenSession {
		return public.ForgottenSession{Address: s.Address.String(), Slice: sliceJSON(s.Slice), Handle: (*public.Handle)(s.Handle),
			Container: some(s.Body, containerOf), Removal: list(v.removal(s))}
	})
	gpus := each(v.GPUs, func(g resource.PriorGPU) public.ForgottenGPU {
		return public.ForgottenGPU{StateGPU: stateGPUOf(g), Restoring: list(v.restoring(g))}
	})
	return public.Forgotten{Format: public.V1, DryRun: v.DryRun, Serial: v.Serial, Sessions: sessions, GPUs: gpus}
}

// RebuiltView is a state that was rebuilt.
type RebuiltView struct {
	State    string
	Fault    string // what was wrong with the old state; "" without one
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Body // which the next apply replaces
	Notes    []resource.Note
	Aside    []string // paths to which the files of the old state were moved
	Flags    []string
}

// Rebuilt shows the content of the new state.
func Rebuilt(w io.Writer, s Style, v RebuiltView) {
	p := newPage(s)
	if v.Fault != "" {
		p.lead(0, drifted, "The state cannot be used:", prose.Stop(v.Fault))
	} else {
		p.say("There is no state " + v.State + ".")
	}
	p.say(fmt.Sprintf("Rebuilt from ledgers, labels and hardware, with lineage %s, it knows %s on %s:",
		resource.ShortLineage(v.Prior.Lineage), prose.Count(len(v.Prior.Sessions), "session"), prose.Count(len(v.Prior.GPUs), "GPU")))
	t := &table{indent: 2, columns: slices.Concat(sessionColumn(), textColumns("SLICE", "GPU"), proseColumn("RUNS IN"))}
	for _, one := range v.Prior.Sessions {
		runs := either(one.Body != nil, resource.RuntimeNamed(one.Runtime).Body, "-")
		t.texts(one.Address.String(), one.PlaceWords(), words.GPUs(v.Live, one.Session), runs)
	}
	p.table(t)
	p.unproven(v.Unproven)
	if len(v.Unproven) > 0 {
		p.detail(fmt.Sprintf("The next apply replaces %s: its processes stop.", prose.Count(len(v.Unproven), "container")))
	}
	p.notes(v.Notes, v.Live)
	p.flush(w)
}

// RebuiltDone shows the result.
func (v RebuiltView) draw(p *page) {
	p.lead(0, strong, "Rebuilt:", fmt.Sprintf("%s has serial %d. No GPU, slice or container was touched.", v.State, v.Prior.Serial))
	p.movedAside(v.Aside)
	p.next(suggest("plan", v.Flags))
}

func (v RebuiltView) data() any {
	sessions, gpus := names(v.Prior.Sessions, v.Prior.GPUs)
	return public.Rebuilt{Format: public.V1, State: v.State, Fault: v.Fault, Lineage: v.Prior.Lineage, Serial: v.Prior.Serial, Sessions: sessions, GPUs: gpus,
		Unproven: each(v.Unproven, containerOf), Notes: words.Notes(v.Notes, v.Live), Aside: list(v.Aside)}
}

// ImportedView is a session that the state acquires.
type ImportedView struct {
	Session  resource.PriorSession
	GPU      resource.GPU       // without a UUID if the session has no GPU yet
	Name     string             // of the body, if bodies have names
	Foreign  bool               // cosplay did not create it
	Kept     bool               // a container with its slice, which stays
	Unproven bool               // only its labels say that cosplay created it
	Restores string             // what destroy restores by an import block, in words
	Users    []resource.Process // in its slice
	Notes    []resource.Note
	State    string
	Serial   int
	Live     resource.Live
	Flags    []string
}

// notes lists what cosplay noticed while it read the hosts.
func (p *page) notes(all []resource.Note, live resource.Live) {
	for _, n := range words.Notes(all, live) {
		p.detail("note: " + prose.Stop(n))
	}
}

// Importing shows what cosplay found, and what happens to it.
func Importing(w io.Writer, s Style, v ImportedView) {
	p := newPage(s)
	p.print(0, join(inked(strong, v.Session.Address.String()), text("  is to have")))
	t := &table{indent: 2, columns: []column{{}, {prose: true}}}
	if h := v.Session.Handle; h != nil {
		t.add(text("slice"), text(fmt.Sprintf("%s on %s, %s", v.Session.Slice, words.GPU(v.Live, v.Session.Slice.Host, v.Session.Slice.GPU), h.UUID)))
	}
	if c := v.Session.Body; c != nil {
		what := either(v.Name != "", fmt.Sprintf("%s (%s), %s", v.Name, shortID(*c), c.State), c.ID)
		t.add(text(resource.RuntimeNamed(c.Runtime).Body), text(what))
	}
	p.table(t)
	if v.Foreign {
		p.lead(2, drifted, "Not made by cosplay:", v.fate())
	}
	if v.Restores != "" {
		p.lead(2, drifted, "Baseline:", "when the GPU is released, cosplay restores what import blocks state: "+v.Restores+".")
	}
	if len(v.Users) > 0 {
		p.lead(2, drifted, "In use:", resource.ProcessNames(v.Users)+" in the slice.")
	}
	if v.Unproven {
		p.unproven([]resource.Body{*v.Session.Body})
		p.detail("The next apply replaces it: its processes stop.")
	}
	p.notes(v.Notes, v.Live)
	p.flush(w)
}

// fate states what happens to a container or slice that cosplay did not create.
func (v ImportedView) fate() string {
	if v.Kept {
		return "from now on it is this project's. It stays as it is, without cosplay's disguise, until its block changes; destroy removes it."
	}
	if v.Session.Body != nil {
		return "from now on it is this project's. The next apply replaces it with the session's own; destroy removes it."
	}
	return "from now on it is this project's, for this session alone. Destroy removes it, and so does an apply that moves the session."
}

// Imported shows the result.
func (v ImportedView) draw(p *page) {
	has := fmt.Sprintf("%s has %s, with serial %d.", v.State, v.Session.Address, v.Serial)
	p.lead(0, strong, "Imported:", has+" It was left as it is; the next plan shows what differs.")
	p.next(suggest("plan", v.Flags))
}

func (v ImportedView) data() any {
	users := each(v.Users, func(p resource.Process) public.Process {
		return public.Process{PID: p.PID, Name: p.Name, MemoryMiB: p.MemoryMiB, GPUInstance: p.GPUInstance,
			ComputeInstance: p.ComputeInstance, Session: p.Session}
	})
	return public.Imported{Format: public.V1, State: v.State, Serial: v.Serial, Address: v.Session.Address.String(), Slice: sliceJSON(v.Session.Slice),
		Handle: (*public.Handle)(v.Session.Handle), Container: some(v.Session.Body, containerOf), Foreign: v.Foreign, Unproven: v.Unproven,
		Users: list(users), Notes: words.Notes(v.Notes, v.Live)}
}

// UnlockView is a lock that no process holds, and what its last holders left.
type UnlockView struct {
	State       string          // path of the state
	Note        *durable.Holder // of a process that ended while it held the lock; nil without one
	Removed     bool            // the note was removed
	Interrupted *InterruptedRun // that the next command recovers; nil without one
	Flags       []string
}

// InterruptedRun is a run that was interrupted.
type InterruptedRun struct {
	Begun time.Time
	Done  int // steps
	Open  int // steps that began and whose end is not known
}

// Unlock reports that there is nothing to unlock, and the next command.
func (v UnlockView) draw(p *page) {
	p.lead(0, strong, "There is nothing to unlock.", "No process holds the lock of "+v.State+": a lock ends with its process.")
	if v.Removed {
		p.say(fmt.Sprintf("Removed the note of %s, which has ended.", v.Note))
	}
	if v.Interrupted != nil {
		p.say(fmt.Sprintf("A run that began at %s was interrupted, with %s done and %d open. ", v.Interrupted.Begun.Local().Format(time.DateTime),
			prose.Count(v.Interrupted.Done, "step"), v.Interrupted.Open) + "The next command that reads the hosts takes over what it did.")
		p.next(suggest("plan", v.Flags))
	}
}

func (v UnlockView) data() any {
	note := func(h durable.Holder) public.LockNote {
		return public.LockNote{User: h.User, PID: h.PID, Command: h.Command, Since: h.Since.Format(time.RFC3339Nano)}
	}
	run := func(c InterruptedRun) public.InterruptedRun {
		return public.InterruptedRun{Begun: c.Begun.Format(time.RFC3339Nano), Done: c.Done, Open: c.Open}
	}
	return public.Unlocked{Format: public.V1, State: v.State, Note: some(v.Note, note), Removed: v.Removed, Interrupted: some(v.Interrupted, run)}
}
