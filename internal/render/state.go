package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// StateView is the state: each GPU with its baseline, the settings of cosplay, and its sessions.
type StateView struct{ resource.Prior }

func (prior StateView) draw(p *page) {
	if prior.Lineage == "" {
		p.print(0, text("The state is empty: nothing was applied yet."))
		return
	}
	head := &table{columns: []column{{}, {prose: true}}}
	head.fact("lineage", prior.Lineage)
	head.fact("serial", fmt.Sprint(prior.Serial))
	p.table(head)
	on := prior.Placements()
	for _, g := range prior.GPUs {
		p.gap()
		p.print(0, join(inked(strong, g.UUID), text("  on "+g.Host)))
		p.stateGPU(g)
		p.gap()
		p.stateSessions(on[g.Key()])
		p.stateContainers(on[g.Key()])
	}
	p.gap()
	p.print(0, text(prose.Capital(stateWords(prior.Prior))+"."))
}

// stateGPU shows what a GPU was found with and what cosplay set.
func (p *page) stateGPU(g resource.PriorGPU) {
	t := &table{indent: 2, columns: []column{{}, {title: "FOUND WITH"}, {title: "SET TO"}, {prose: true}}}
	for _, setting := range resource.SettingOrder {
		found, set := settingText(g.Baseline, setting), settingText(g.Applied, setting)
		if found == "" && set != "" && !setting.Readable() {
			found = "unknown"
		}
		unsure := setting == resource.SMClock && g.ClockUnsure
		note := given(unsure, "a run was interrupted here: the next apply sets it again")
		if found != "" || set != "" {
			t.add(text(setting.Words()), text(found), text(set), inked(dim, note))
		}
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

// sessionColumn is the first column of tables of sessions: their addresses.
func sessionColumn() []column { return []column{{title: "SESSION", brief: inBlock}} }

// stateSessions lists the sessions on a GPU, and what is missing of them.
func (p *page) stateSessions(sessions []*resource.PriorSession) {
	t := &table{indent: 2, columns: slices.Concat(sessionColumn(), textColumns("TARGET", "SLICE", "MIG UUID"), proseColumn(""))}
	for _, s := range sessions {
		missing := given(s.Body == nil, "no "+resource.RuntimeNamed(s.Runtime).Body+" yet")
		t.add(text(s.Address.String()), text(s.Target.ShortName()), text(s.PlaceWords()), text(sliceUUID(*s)), inked(dim, missing))
	}
	p.table(t)
}

// stateContainers lists the images and logins of the sessions on a GPU that run in containers.
func (p *page) stateContainers(sessions []*resource.PriorSession) {
	t := &table{indent: 2, columns: append(sessionColumn(), textColumns("IMAGE", "SSH", "USER", "CONTAINER")...), spare: []string{"CONTAINER"}}
	for _, s := range sessions {
		if s.Spec.IsZero() {
			continue
		}
		ssh, container := "-", "-"
		if s.Body != nil {
			container = shortID(*s.Body)
			if s.Spec.SSH.Enabled {
				ssh = endpoint(s.Spec.SSH.Bind, s.Body.SSHPort)
			}
		}
		t.add(text(s.Address.String()), text(s.Spec.Image), text(ssh), text(s.Spec.User.Name), inked(dim, container))
	}
	if len(t.rows) > 0 {
		p.gap()
		p.table(t)
	}
}

// data has no key of the state: the key would make it possible to guess what hashes are made of.
func (prior StateView) data() any {
	return public.State{Format: public.V1, Lineage: prior.Lineage, Serial: prior.Serial, BootIDs: prior.BootIDs,
		GPUs: each(prior.GPUs, stateGPUOf), Sessions: each(prior.Sessions, stateSessionOf), Outputs: each(prior.Outputs, func(o resource.Output) public.StateOutput { return public.StateOutput(o) }),
		LastRun: prior.LastRun, Missing: addresses(prior.Missing), Expired: each(prior.Expired, expiredOf), Forgotten: prior.Forgotten}
}

// StatePart is a part of a state.
type StatePart struct {
	Lineage  string
	Serial   int
	Sessions []resource.PriorSession
	GPUs     []resource.PriorGPU
}

// draw lists the address of each session and the UUID of each GPU, one a line, for people and for scripts.
func (v StatePart) draw(p *page) {
	for _, name := range slices.Concat(names(v.Sessions, v.GPUs)) {
		p.print(0, text(name))
	}
}

// names returns the addresses of sessions and the UUIDs of GPUs.
func names(sessions []resource.PriorSession, gpus []resource.PriorGPU) (addresses, uuids []string) {
	return each(sessions, func(s resource.PriorSession) string { return s.Address.String() }), each(gpus, func(g resource.PriorGPU) string { return g.UUID })
}

func (v StatePart) data() any {
	sessions, gpus := names(v.Sessions, v.GPUs)
	return public.StateList{Format: public.V1, Lineage: v.Lineage, Serial: v.Serial, Sessions: sessions, GPUs: gpus}
}

// StateItem is one session of the state, or one GPU with its sessions.
type StateItem struct {
	StatePart
	Prior resource.Prior
}

func (v StateItem) draw(p *page) {
	for _, one := range v.Sessions {
		p.stateSession(one)
	}
	for _, g := range v.GPUs {
		p.print(0, join(inked(strong, g.UUID), text("  on "+g.Host)))
		p.stateGPU(g)
		p.gap()
		p.stateSessions(v.Prior.Placements()[g.Key()])
	}
}

func (v StateItem) data() any {
	out := public.StateItem{Format: public.V1}
	if len(v.Sessions) > 0 {
		out.Session = some(&v.Sessions[0], stateSessionOf)
	} else if len(v.GPUs) > 0 {
		out.GPU = some(&v.GPUs[0], stateGPUOf)
	}
	return out
}

// stateSession is a session with every attribute that the state has.
func (p *page) stateSession(s resource.PriorSession) {
	p.print(0, inked(strong, s.Address.String()))
	t := &table{indent: 2, columns: []column{{}, {prose: true}}}
	add := t.fact
	add("id", s.ID)
	add("target", fmt.Sprintf("%s (%s), %s", s.Target.ShortName(), s.Target.Key, together(mib(s.Target.MemoryMiB))))
	add("host", s.Slice.Host)
	add("GPU", strings.Join(prose.Each(s.On(), func(gpu resource.GPUKey) string { return gpu.UUID }), ", "))
	add("slice", s.PlaceWords())
	if s.Handle != nil {
		add("MIG UUID", fmt.Sprintf("%s (GPU instance %d, compute instance %d)", s.Handle.UUID, s.Handle.GPUInstance, s.Handle.ComputeInstance))
	}
	add("fit", fmt.Sprintf("at %s: FP32 %s, bandwidth %s, tensor %s", resource.Clock(s.Fit.ClockMHz),
		fit.Percent(s.Fit.FP32Ratio()), fit.Percent(s.Fit.BandwidthRatio()), times(s.Fit.TensorRatio())))
	add("runtime", s.Runtime)
	runsIn := resource.RuntimeNamed(s.Runtime)
	body := "not created yet"
	if s.Body != nil {
		body = cmp.Or(s.Device(), shortID(*s.Body))
	}
	add(runsIn.Body, body)
	add("workspace", given(!slices.Contains(runsIn.Ignores, "workspace"), s.Workspace))
	add("command", given(len(s.Command), resource.CommandWords(s.Command)))
	add("compute", s.Compute)
	add("strict", given(s.Strict, "true"))
	add("capability", s.Capability)
	add("ttl", given(s.Lifetime.TTL, s.Lifetime.TTL.String()))
	add("idle_timeout", given(s.Lifetime.IdleTimeout, s.Lifetime.IdleTimeout.String()))
	add("stop_at", momentOf(s.Lifetime.StopAt))
	add("up since", momentOf(s.UpAt))
	add("extended to", momentOf(s.ExtendedTo))
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		add("env."+name, fmt.Sprintf("%q", s.Env[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sealed)) {
		add("env."+name, hidden)
	}
	if !s.Spec.IsZero() {
		addContainer(add, s.Spec)
	}
	p.table(t)
}

func addContainer(add func(name, value string), b resource.ContainerSpec) {
	add("name", b.Name)
	add("image", b.Image+", pull "+b.Pull)
	add("entrypoint", given(len(b.Entrypoint), resource.CommandWords(b.Entrypoint)))
	add("user", fmt.Sprintf("%s (uid %d, gid %d)", b.User.Name, b.User.UID, b.User.GID))
	if b.SSH.Enabled {
		number := max(b.SSH.Port, b.SSH.Kept)
		port := either(number != 0, fmt.Sprintf("port %d", number), "any port")
		add("ssh", fmt.Sprintf("%s, %s, %s", b.SSH.Bind, port, prose.Count(len(b.SSH.AuthorizedKeys), "key")))
	}
	add("network", b.Network)
	for _, p := range b.Ports {
		add("port", p.String())
	}
	for _, v := range b.Volumes {
		add("volume", valueWords(diff.Volumes{v}))
	}
	add("limits", given(b.Limits, valueWords(diff.Limits(b.Limits))))
	add("sudo", given(b.Sudo, "without a password"))
	add("restart", b.Restart)
}
