package render

import (
	"fmt"
	"io"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// State shows what the state remembers: each GPU with what it was found with and what was set, and the sessions on
// it.
func State(w io.Writer, s Style, prior resource.Prior) {
	p := newPage(s)
	if prior.Lineage == "" {
		p.print(0, text("The state is empty: nothing was applied yet."))
		p.flush(w)
		return
	}
	head := &table{columns: []column{{}, {prose: true}}}
	head.add(inked(dim, "lineage"), text(prior.Lineage))
	head.add(inked(dim, "serial"), text(fmt.Sprint(prior.Serial)))
	p.table(head)
	for _, g := range prior.GPUs {
		p.gap()
		p.print(0, join(inked(strong, g.UUID), text("  on "+g.Host)))
		p.stateGPU(g)
		p.gap()
		p.stateSessions(prior, g)
		p.stateBoxes(prior, g)
	}
	p.gap()
	p.print(0, text(prose.Capital(stateWords(prior))+"."))
	p.flush(w)
}

// stateGPU shows what a GPU was found with and what cosplay set.
func (p *page) stateGPU(g resource.PriorGPU) {
	t := &table{indent: 2, columns: []column{{}, {title: "FOUND WITH"}, {title: "SET TO"}, {prose: true}}}
	add := func(name, was, now, note string) {
		if was != "" || now != "" {
			t.add(text(name), text(was), text(now), inked(dim, note))
		}
	}
	for _, setting := range resource.SettingOrder {
		found, set, note := settingText(g.Baseline, setting), settingText(g.Applied, setting), ""
		if found == "" && set != "" && !setting.Readable() {
			found = "unknown"
		}
		if setting == resource.SMClock && g.ClockUnsure {
			note = "a run was interrupted here: the next apply sets it again"
		}
		add(setting.Words(), found, set, note)
	}
	p.table(t)
}

// settingText writes a setting out; "" where it has no value.
func settingText(all resource.Settings, s resource.Setting) string {
	value, given := all.Get(s)
	if !given {
		return ""
	}
	return s.Text(value)
}

// stateSessions lists the sessions on a GPU, and what is missing of them.
func (p *page) stateSessions(prior resource.Prior, g resource.PriorGPU) {
	t := &table{indent: 2, columns: []column{{title: "SESSION", brief: inBlock}, {title: "TARGET"}, {title: "SLICE"}, {title: "MIG UUID"}, {prose: true}}}
	for _, s := range prior.Sessions {
		if s.Slice.Host != g.Host || s.Slice.GPU != g.UUID {
			continue
		}
		uuid, missing := "", ""
		if s.Handle != nil {
			uuid = s.Handle.UUID
		}
		if s.Container == nil {
			missing = "no " + resource.RuntimeNamed(s.Runtime).Body + " yet"
		}
		t.add(text(s.Address.String()), text(s.Target.ShortName()), text(s.Slice.String()), text(uuid), inked(dim, missing))
	}
	p.table(t)
}

// stateBoxes lists what the sessions on a GPU that run in containers are made from, and where one logs in.
func (p *page) stateBoxes(prior resource.Prior, g resource.PriorGPU) {
	t := &table{indent: 2, columns: []column{{title: "SESSION", brief: inBlock}, {title: "IMAGE"}, {title: "SSH"}, {title: "USER"}, {title: "CONTAINER"}},
		spare: []string{"CONTAINER"}}
	for _, s := range prior.Sessions {
		if s.Slice.Host != g.Host || s.Slice.GPU != g.UUID || s.Spec.IsZero() {
			continue
		}
		ssh, container := "-", "-"
		if s.Container != nil {
			container = shortID(*s.Container)
			if s.Spec.SSH.Enabled {
				ssh = endpoint(s.Spec.SSH.Bind, s.Container.SSHPort)
			}
		}
		t.add(text(s.Address.String()), text(s.Spec.Image), text(ssh), text(s.Spec.User.Name), inked(dim, container))
	}
	if len(t.rows) > 0 {
		p.gap()
		p.table(t)
	}
}

// StateJSON writes what the state remembers as data, without its key: with it, others could try out what hashes were
// made of.
func StateJSON(w io.Writer, prior resource.Prior) error {
	return JSON(w, public.State{Format: public.V1, Lineage: prior.Lineage, Serial: prior.Serial, BootIDs: prior.BootIDs,
		GPUs: each(prior.GPUs, stateGPUOf), Sessions: each(prior.Sessions, stateSessionOf), Outputs: each(prior.Outputs, stateOutputOf),
		LastRun: prior.LastRun, Missing: each(prior.Missing, resource.Address.String), Forgotten: prior.Forgotten})
}

func stateOutputOf(o resource.Output) public.StateOutput { return public.StateOutput(o) }
