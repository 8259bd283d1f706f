package render

import (
	"fmt"
	"io"
	"slices"

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

// Moved tells what was moved, and where the configuration does not follow.
func Moved(w io.Writer, s Style, v MovedView) {
	p := newPage(s)
	var old, missing []resource.Address
	t := &table{gap: 1, columns: []column{{}, {}, {}}}
	for _, m := range v.Moves {
		t.add(text(m.From.String()), text(s.arrow()), text(m.To.String()))
		if slices.Contains(v.Configured, m.From) {
			old = append(old, m.From)
		}
		if !slices.Contains(v.Configured, m.To) {
			missing = append(missing, m.To)
		}
	}
	p.table(t)
	if len(missing) > 0 {
		p.flow(0, 2, text(fmt.Sprintf("The configuration has no %s: the next apply removes what is not in it. Write it there first.", resource.AddressNames(missing, 1))))
	}
	if len(old) > 0 {
		p.flow(0, 2, text(fmt.Sprintf("The configuration still has %s: the next apply creates it again.", resource.AddressNames(old, 1))))
	}
	moved := prose.Count(len(v.Moves), "session")
	if v.DryRun {
		p.flow(0, 2, join(inked(strong, moved+" would be moved. "), text("This was a dry run: nothing was changed.")))
	} else {
		p.flow(0, 2, join(inked(strong, "Moved "+moved+". "), text("Slices and containers are as they were; inside, GPU_COSPLAY_SESSION keeps the old name until they are recreated.")))
	}
	p.flush(w)
}

// MovedJSON writes the same as data.
func MovedJSON(w io.Writer, v MovedView) error {
	moved := each(v.Moves, func(m resource.Renamed) public.Renamed {
		return public.Renamed{From: m.From.String(), To: m.To.String()}
	})
	return JSON(w, public.Moved{Format: public.V1, DryRun: v.DryRun, Serial: v.Serial, Moved: list(moved)})
}

// ForgottenView is what the state forgets, and what stays of it in the world.
type ForgottenView struct {
	StatePart
	DryRun  bool
	SimDirs map[string]string // folders of the simulated hosts
}

// Forgotten shows what is left behind, and how it is removed by hand.
func Forgotten(w io.Writer, s Style, v ForgottenView) {
	p := newPage(s)
	var commands []string
	t := &table{indent: 2, columns: []column{{title: "SESSION", brief: inBlock}, {title: "SLICE"}, {title: "GPU"}, {title: "MIG UUID"}}}
	for _, one := range v.Sessions {
		uuid := "-"
		if one.Handle != nil {
			uuid = one.Handle.UUID
		}
		t.add(text(one.Address.String()), text(one.Slice.String()), text(words.ShortUUID(one.Slice.GPU)), text(uuid))
		commands = append(commands, v.removal(one)...)
	}
	if len(t.rows) > 0 {
		p.flow(0, 2, text("What these sessions have stays as it is, and cosplay will no longer know it:"))
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

// ForgottenDone is the last line.
func ForgottenDone(w io.Writer, s Style, v ForgottenView) {
	p := newPage(s)
	things := prose.Count(len(v.Sessions), "session")
	if n := len(v.GPUs); n > 0 {
		things += " and " + prose.Count(n, "GPU")
	}
	if v.DryRun {
		p.flow(0, 2, join(inked(strong, things+" would be forgotten. "), text("This was a dry run: nothing was changed.")))
	} else {
		p.flow(0, 2, join(inked(strong, "Forgotten: "+things+". "), text(fmt.Sprintf("The state before is kept beside it as .backup, serial %d.", v.Serial-1))))
	}
	p.flush(w)
}

// commands lists what to type, each in one piece.
func (p *page) commands(title string, all []string) {
	if len(all) == 0 {
		return
	}
	p.print(0, text(title))
	for _, c := range all {
		p.print(2, text(c))
	}
}

// removal is how one removes by hand what a session has.
func (v ForgottenView) removal(s resource.PriorSession) []string {
	var all []string
	if c := s.Container; c != nil {
		all = append(all, resource.RuntimeNamed(c.Runtime).RemoveCommand+" "+terminal.ShellWord(shortID(*c)))
	}
	if h := s.Handle; h != nil {
		smi := v.smi(s.Slice.Host)
		if h.UUID != "" {
			all = append(all, fmt.Sprintf("%s mig -i %s -dci -gi %d -ci %d", smi, s.Slice.GPU, h.GPUInstance, h.ComputeInstance))
		}
		all = append(all, fmt.Sprintf("%s mig -i %s -dgi -gi %d", smi, s.Slice.GPU, h.GPUInstance))
	}
	return all
}

// restoring is how one gives a GPU the settings back that it was found with: those that persistence mode keeps come
// before it.
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
			all = append(all, fmt.Sprintf("%s -i %s %s", v.smi(g.Host), g.UUID, words.SMI(setting, was)))
		}
	}
	return all
}

// smi is how nvidia-smi is called for a host.
func (v ForgottenView) smi(host string) string {
	if dir := v.SimDirs[host]; dir != "" {
		return "LD_LIBRARY_PATH=" + terminal.ShellWord(dir) + " nvidia-smi"
	}
	return "nvidia-smi"
}

// ForgottenJSON writes the same as data.
func ForgottenJSON(w io.Writer, v ForgottenView) error {
	out := public.Forgotten{Format: public.V1, DryRun: v.DryRun, Serial: v.Serial, Sessions: []public.ForgottenSession{}, GPUs: []public.ForgottenGPU{}}
	for _, s := range v.Sessions {
		out.Sessions = append(out.Sessions, public.ForgottenSession{Address: s.Address.String(), Slice: public.Slice(s.Slice), Handle: (*public.Handle)(s.Handle),
			Container: some(s.Container, containerOf), Removal: list(v.removal(s))})
	}
	for _, g := range v.GPUs {
		out.GPUs = append(out.GPUs, public.ForgottenGPU{StateGPU: stateGPUOf(g), Restoring: list(v.restoring(g))})
	}
	return JSON(w, out)
}
