package render

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/catalog"
	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Status shows hosts, GPUs with their slots, sessions, and what other projects and users have there.
func (v StatusView) draw(p *page) {
	f := newFleet(v)
	for _, h := range v.Live.Hosts {
		p.gap()
		p.lead(0, strong, "host", hostWords(h))
		p.statusDrift(f.Drift, resource.GPU{Host: h.Name})
		if h.Unreachable != "" {
			p.lead(4, drifted, "not read:", prose.Stop(h.Unreachable))
		}
		for _, g := range h.GPUs {
			p.gap()
			p.statusGPU(f, g)
		}
		p.unusable(h)
	}
	if len(v.Prior.Sessions) > 0 {
		p.gap()
		p.sessionTable(f)
		p.verdicts(v.verdicts(), v.Reports)
	}
	p.orphans(v)
	p.down(v.Prior.Expired)
	p.gap()
	p.statusSummary(f)
}

// statusGPU shows a GPU's settings as they are, its slots and what has drifted.
func (p *page) statusGPU(v fleet, g resource.GPU) {
	m := v.slotMap(g)
	items := present(given(g.Model.MIG() || g.MIGCapable, migWords(g)), clockWords(v.StatusView, g), drawWords(g), temperatureWords(g),
		memoryWords(g), m.computeWords(), given(g.ComputeMode != resource.DefaultMode, "compute mode "+resource.ComputeMode.Text(g.ComputeMode)))
	p.print(0, join(inked(strong, words.GPU(v.Live, g.Host, g.UUID)), text("  "+g.Model.Name), inked(dim, "  "+words.ShortUUID(g.UUID))))
	p.flow(4, 4, text(strings.Join(each(items, together), ", ")))
	p.mpsDaemons(v, g)
	p.statusDrift(v.Drift, g)
	p.degraded(g)
	p.holders(v, g)
	if m.mig || len(m.taken) > 0 {
		p.slotMap(4, m, v.labels)
	}
}

// mpsDaemons shows the MPS daemons of the project with their limits.
func (p *page) mpsDaemons(v fleet, g resource.GPU) {
	for _, m := range v.daemons(g) {
		now := diff.MPSNow(m, v.Live, g.Host)
		p.flow(4, 6, text(words.Field(diff.Field{Kind: diff.FieldMPS, Name: diff.DaemonName(m)})+": "+words.Value(now, v.Live)))
	}
}

// daemons are the MPS daemons that the project runs on a GPU.
func (f fleet) daemons(g resource.GPU) []resource.MPS {
	held, _ := f.Prior.GPU(g.Host, g.UUID)
	return held.All()
}

func migWords(g resource.GPU) string {
	if g.Unread(resource.FeatureMIG) && !g.MIGCapable {
		return "MIG unknown"
	}
	pending := given(g.MIGPending != g.MIG, " ("+resource.OnOff(g.MIGPending)+" after the next reset)")
	return "MIG " + resource.OnOff(g.MIG) + pending
}

// clockWords states the SM clock and what is known of its lock.
func clockWords(v StatusView, g resource.GPU) string {
	now := either(g.Unread(resource.ReadingClock), "SM clock unknown", fmt.Sprintf("SM clock %d MHz", g.SMClockMHz))
	switch state, mhz := v.lock(g); {
	case state == lockLifted || state == lockUnknown:
		now += fmt.Sprintf(" (lock %s)", state)
	case state == lockHeld && mhz == g.SMClockMHz:
		now += " (locked)"
	case state == lockHeld:
		now += fmt.Sprintf(" (lock %d MHz)", mhz)
	}
	return now
}

func temperatureWords(g resource.GPU) string {
	if g.Unread(resource.ReadingTemperature) {
		return "temperature unknown"
	}
	return fmt.Sprintf("%d C", g.TemperatureC)
}

func memoryWords(g resource.GPU) string {
	if g.Unread(resource.FigureMemory) {
		return mib(g.Model.MemoryMiB)
	}
	return fmt.Sprintf("%d of %s", g.MemoryUsedMiB, mib(g.Model.MemoryMiB))
}

func drawWords(g resource.GPU) string {
	switch noDraw, noLimit := g.Unread(resource.ReadingDraw), g.Unread(resource.FeaturePower); {
	case noDraw && noLimit:
		return "power unknown"
	case noDraw:
		return "power limit " + resource.Watts(g.PowerMW)
	case noLimit:
		return fmt.Sprintf("%.0f W, limit unknown", watts(g.DrawMW))
	}
	return fmt.Sprintf("%.0f of %s", watts(g.DrawMW), resource.Watts(g.PowerMW))
}

// statusDrift marks what has drifted of a GPU itself, or of a host if there is no UUID, and by whom if that is known.
func (p *page) statusDrift(drift []diff.Drift, g resource.GPU) {
	for _, d := range drift {
		if d.Session == nil && d.Host == g.Host && d.GPU == g.UUID && !d.Informational {
			what := fmt.Sprintf("%s %s %s %s", words.Drifted(d), driftFrom(d, resource.Live{}), p.arrow(), valueWords(d.To))
			p.lead(4, drifted, "drift:", what+given(d.By.User, ", "+words.Cause(d)))
		}
	}
}

// orphans lists the containers that the state does not have.
func (p *page) orphans(v StatusView) {
	t := &table{indent: 2, columns: []column{{name: "Session"}, {name: "State"}, {name: "Host"}, {name: "ID", prose: true}}}
	for _, h := range v.Live.Hosts {
		for _, c := range v.orphans(h) {
			t.add(text(c.Session), text(c.State), text("on "+h.Name), inked(dim, shortID(c)))
		}
	}
	if len(t.rows) == 0 {
		return
	}
	p.gap()
	p.lead(0, strong, "Not in the state", "of this project, and left alone:")
	p.table(t)
}

// statusTally counts what a status shows.
type statusTally struct{ all, running, unknown, unfinished, missing, foreign, drift int }

func (f fleet) tally() statusTally {
	t := statusTally{all: len(f.Prior.Sessions), missing: len(f.Prior.Missing), drift: f.drifted(), foreign: -len(f.owners)}
	t.running = count(f.states, func(state string) bool { return state == resource.Running })
	t.unknown = count(f.states, func(state string) bool { return state == stateUnknown })
	t.unfinished = count(f.Prior.Sessions, resource.PriorSession.Incomplete)
	for _, h := range f.Live.Hosts {
		for _, g := range h.GPUs {
			t.foreign += len(g.Slices)
		}
	}
	return t
}

// words is one line.
func (t statusTally) words() line {
	words := prose.Count(t.all, "session") + ", all running"
	switch {
	case t.all == 0:
		words = "No session"
	case t.running < t.all:
		words = fmt.Sprintf("%s, %d running", prose.Count(t.all, "session"), t.running)
	}
	words += given(t.unknown, fmt.Sprintf(", %d unknown", t.unknown)) + given(t.unfinished, fmt.Sprintf(", %d unfinished", t.unfinished)) +
		given(t.missing, fmt.Sprintf(", %d missing since a run was interrupted", t.missing)) +
		given(t.foreign > 0, "; "+prose.Count(t.foreign, "foreign slice"))
	if t.drift > 0 {
		return join(text(words+"; "), inked(drifted, "drift in "+prose.Count(t.drift, "place")), text("."))
	}
	return text(words + "; no drift.")
}

// statusSummary counts, and suggests the next command.
func (p *page) statusSummary(v fleet) {
	t := v.tally()
	p.flow(0, 2, t.words())
	switch {
	case t.drift > 0:
		p.next(suggest("plan", v.Flags))
	case t.unfinished+t.missing > 0:
		p.next(suggest("apply", v.Flags))
	}
}

// others are the holders of a GPU but for this project.
func (v StatusView) others(g resource.GPU) []resource.Holder {
	page, _ := v.Live.Page(g.Host, g.UUID)
	return page.Others(v.Prior.Lineage)
}

// holders lists the other projects that have acquired a GPU. cosplay reset can release the GPU for a lost one.
func (p *page) holders(v fleet, g resource.GPU) {
	for _, h := range v.others(g) {
		if v.Tenants {
			continue // the table has them
		}
		if folder, killed := v.KilledRuns[h.Lineage]; killed {
			p.flow(4, 6, join(text("held by a cosplay run of "+h.User+" "), inked(drifted, "that was killed")))
			p.flow(6, 8, text("to take it down: "+suggest("reset", []string{"--chdir", folder})))
			continue
		}
		n := len(h.Slices)
		words := "held by a project of " + h.User + given(n, " with "+prose.Count(n, "slice")) + ", state " + h.State
		if !v.Lost[h.Lineage] {
			p.flow(4, 6, text(words))
			continue
		}
		p.flow(4, 6, join(text(words+" "), inked(drifted, "(state lost)")))
		p.flow(6, 8, text("to release it: "+suggest("reset", []string{"--holder", resource.ShortLineage(h.Lineage)})))
	}
}

// degraded lists what cosplay does without on a GPU whose driver does not offer it.
func (p *page) degraded(g resource.GPU) {
	if !catalog.Listed(g.Model) {
		p.lead(4, drifted, "not in the catalog:", "the figures are NVML's; cosplay doctor lists them")
	}
	for _, d := range g.Degraded {
		what := "unknown:"
		switch {
		case d.Feature.Managed():
			what = "not managed:"
		case d.Feature.Figure() && catalog.Listed(g.Model):
			what = "from the catalog:"
		}
		p.lead(4, drifted, what, fmt.Sprintf("%s (%s)", d.Feature.Words(), d))
	}
	if missing, unfit := g.Unfit(); unfit {
		p.lead(4, drifted, "not used:", fmt.Sprintf("cosplay does not know %s", missing.Words()))
	}
}

// unusable lists the GPUs of a host that do not answer.
func (p *page) unusable(h resource.Host) {
	for _, u := range h.Unusable {
		p.gap()
		name := fmt.Sprintf("GPU %d", u.Index) + given(u.UUID, "  "+words.ShortUUID(u.UUID))
		p.flow(0, 4, join(inked(strong, name), inked(drifted, "  unusable:"), text(" "+u.String())))
	}
}

func (v StatusView) data() any {
	f := newFleet(v)
	s := public.Status{Format: public.V1, Sessions: f.sessionsJSON(), Missing: addresses(v.Prior.Missing),
		Expired: each(v.Prior.Expired, expiredOf), Drift: Drifts(v.Live, v.Drift), HasDrift: v.drifted() > 0, Orphans: []public.Container{}}
	s.Hosts = each(v.Live.Hosts, func(h resource.Host) public.Host {
		s.Orphans = append(s.Orphans, each(v.orphans(h), containerOf)...)
		return f.hostJSON(h)
	})
	return s
}

func (f fleet) hostJSON(h resource.Host) public.Host {
	return public.Host{PlanHost: planHostOf(h), Library: h.Library, BootID: h.BootID, GPUs: each(h.GPUs, f.gpuJSON),
		Unusable: each(h.Unusable, func(u resource.Unusable) public.Unusable { return public.Unusable(u) })}
}

func (f fleet) daemonJSON(m resource.MPS, host string) public.MPSDaemon {
	h, _ := f.Live.Host(host)
	now, _ := h.MPS.Daemon(m.Folder)
	return public.MPSDaemon{Folder: m.Folder, Profile: m.Profile, Start: m.Start, Percent: m.Percent, MemoryMiB: m.MemoryMiB, Running: now.Running, AsApplied: now.Has(m)}
}

func planHostOf(h resource.Host) public.PlanHost {
	engine := func(e resource.Engine) public.Engine { return public.Engine{Name: e.Name, Access: e.Access} }
	return public.PlanHost{Name: h.Name, Simulated: h.Simulated, Driver: h.Driver, Runtime: h.Runtime, Engine: some(h.Engine, engine), Unreachable: h.Unreachable}
}

func (f fleet) gpuJSON(g resource.GPU) public.GPU {
	_, acquired := f.Prior.GPU(g.Host, g.UUID)
	state, mhz := f.lock(g)
	out := public.GPU{
		UUID: g.UUID, Index: g.Index, PCI: g.PCI, Name: g.Model.Name,
		MIGCapable: g.MIGCapable, MIG: g.MIG, MIGPending: g.MIGPending, Persistence: g.Persistence,
		ClockLock: string(state), PowerLimitW: watts(g.PowerMW), PowerDrawW: watts(g.DrawMW), SMClockMHz: g.SMClockMHz,
		Temperature: g.TemperatureC, MemoryMiB: g.Model.MemoryMiB, MemoryUsed: g.MemoryUsedMiB, Acquired: acquired,
		Slices: each(g.Slices, f.sliceJSON), Processes: len(g.Processes),
		Holders: each(f.others(g), func(h resource.Holder) public.GPUHolder {
			return public.GPUHolder{Holder: holderOf(h), Lost: f.Lost[h.Lineage]}
		}),
		ComputeMode: resource.ComputeMode.Text(g.ComputeMode), MPS: each(f.daemons(g), func(m resource.MPS) public.MPSDaemon { return f.daemonJSON(m, g.Host) }),
		Degraded: each(g.Degraded, func(d resource.Degradation) public.Degradation {
			return public.Degradation{Feature: string(d.Feature), Call: d.Call, Code: d.Code, Message: d.Message, Set: d.Set}
		}),
	}
	if state == lockHeld {
		out.ClockLockMHz = &mhz
	}
	return out
}

func (f fleet) sliceJSON(s resource.LiveSlice) public.GPUSlice {
	out := public.GPUSlice{UUID: s.UUID, GPUInstance: s.GPUInstance, ComputeInstance: s.ComputeInstance, Profile: s.Profile, Start: s.Start, Size: s.Size, ComputeStart: s.ComputeStart}
	if owners := f.owners[s]; len(owners) > 0 {
		out.Ours, out.Session = true, address(&owners[0].Address)
		out.Others = each(owners[1:], func(o *resource.PriorSession) string { return o.Address.String() })
	}
	return out
}

func (f fleet) sessionsJSON() []public.SessionStatus {
	used := map[resource.Address]*public.Usage{}
	for _, j := range f.verdicts() {
		used[j.address] = new(j.json())
	}
	all := make([]public.SessionStatus, 0, len(f.Prior.Sessions))
	for i, s := range f.Prior.Sessions {
		unfinished := s.Incomplete()
		s.Body = nil // as the host has it, not as the state does
		if c, exists := f.Live.Body(s.Slice.Host, s.Runtime, s.ID); exists {
			s.Body = &c
		}
		var left *int
		end, ends := f.Ends[s.Address]
		if ends {
			left = new(int(end.Left(f.Now)))
		}
		all = append(all, public.SessionStatus{ExpiresAt: momentOf(end.At), ExpiresBy: end.Why, TimeLeft: left, Made: madeOf(s), ID: s.ID, Target: s.Target.Key, MemoryMiB: s.Target.MemoryMiB, Fit: figuresOf(s.Fit),
			Workspace: s.Workspace, State: f.states[i], Unfinished: unfinished, Used: used[s.Address], Work: f.work(s.Address), Drift: Drifts(f.Live, f.drift[s.Address])})
	}
	return all
}

// work is what the programs of a session did; nil if none has used a device.
func (f fleet) work(a resource.Address) *public.Work {
	if r := f.Reports[a]; !r.Empty() {
		return new(workOf(r.Total))
	}
	return nil
}

func (v SessionsView) data() any {
	return public.Sessions{Format: public.V1, Sessions: newFleet(v.StatusView).sessionsJSON()}
}

// Unchanging is what a status shows that is no reading: it is the same until something has changed.
func Unchanging(v StatusView) string {
	v.Used, v.Reports, v.Ends = nil, nil, nil
	v.Live.Hosts = slices.Clone(v.Live.Hosts)
	for i := range v.Live.Hosts {
		h := &v.Live.Hosts[i]
		h.GPUs = slices.Clone(h.GPUs)
		for n := range h.GPUs {
			g := &h.GPUs[n]
			g.SMClockMHz, g.LowClockReason, g.TemperatureC, g.DrawMW, g.MemoryUsedMiB, g.Processes = 0, false, 0, 0, 0, nil
		}
	}
	var text strings.Builder
	_ = JSON(&text, v) // a builder takes everything
	return text.String()
}
