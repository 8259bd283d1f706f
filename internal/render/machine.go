package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// MachineView is this machine, for a user without a project: what NVML and the ledger show, and what the user may read of
// the projects that hold GPUs.
type MachineView struct {
	StatusView // without a state
	Unread     error
	Sessions   map[string][]resource.PriorSession           // by lineage of the projects whose states the user may read
	Ends       map[string]map[resource.Address]resource.End // of these sessions
	Runs       map[string]string                            // by lineage: the folder in which a cosplay run was started
	Hidden     map[string]error                             // by lineage: why the state was not read
	Simulated  []resource.Holder                            // the projects of the user's detached sessions on simulated hosts
}

// tenant is a project that holds GPUs of the machine.
type tenant struct {
	resource.Holder // on its first GPU
	held            []held
	readable        bool
	hidden          error // why it is not readable
	sessions        []resource.PriorSession
	folder          string // of its state, or in which a run was started
	run, lost       bool
	simulated       bool // it holds no GPU of the machine
	killed          bool
}

// held is a GPU with the project that holds it.
type held struct {
	gpu string
	resource.Holder
}

// tenants are the projects that hold a GPU, and those of detached sessions on simulated hosts, by user and state.
func (v MachineView) tenants() []*tenant {
	var all []*tenant
	for _, h := range v.Live.Hosts {
		for _, page := range h.Ledger {
			for _, holder := range page.Holders {
				i := slices.IndexFunc(all, func(t *tenant) bool { return t.Lineage == holder.Lineage })
				if i < 0 {
					i, all = len(all), append(all, v.tenant(holder))
				}
				all[i].held = append(all[i].held, held{page.UUID, holder})
			}
		}
	}
	for _, h := range v.Simulated {
		t := v.tenant(h)
		t.simulated, all = true, append(all, t)
	}
	slices.SortFunc(all, func(a, b *tenant) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.State, b.State), strings.Compare(a.Lineage, b.Lineage))
	})
	return all
}

func (v MachineView) tenant(h resource.Holder) *tenant {
	t := &tenant{Holder: h, lost: v.Lost[h.Lineage], hidden: v.Hidden[h.Lineage]}
	if t.folder, t.run = v.Runs[h.Lineage]; !t.run {
		t.folder = filepath.Dir(h.State)
	}
	_, t.killed = v.KilledRuns[h.Lineage]
	t.sessions, t.readable = v.Sessions[h.Lineage]
	return t
}

// Machine shows this machine with all who use it.
func (v MachineView) draw(p *page) {
	f := newFleet(v.withLocks())
	p.unread(v)
	for _, h := range v.Live.Hosts {
		if v.Unread != nil {
			continue
		}
		h.Name = "This machine"
		p.say(hostWords(h))
		for _, g := range h.GPUs {
			p.gap()
			p.statusGPU(f, g)
		}
		p.unusable(h)
	}
	p.gap()
	p.tenantTable(v)
	p.waiting(v)
	p.machineSummary(v)
}

// unread says why the GPUs are not shown.
func (p *page) unread(v MachineView) {
	if v.Unread != nil {
		why := strings.Join(strings.Fields(v.Unread.Error()), " ")
		p.lead(0, drifted, "The GPUs cannot be read:", prose.Stop(why)+" cosplay shows what the ledger and the states record.")
	}
}

// MachineSessionsView is this machine without its GPUs: who uses it.
type MachineSessionsView struct{ MachineView }

func (v MachineSessionsView) draw(p *page) {
	if len(v.tenants()) == 0 {
		p.flow(0, 0, text("No project holds a GPU of this machine."))
	}
	p.tenantTable(v.MachineView)
}

// MachineMapView is this machine of which the slots alone are drawn.
type MachineMapView struct{ MachineView }

func (v MachineMapView) draw(p *page) { MapView{v.StatusView}.draw(p) }

// withLocks is the view with the settings of the ledger's pages in place of a state's: they say which lock is in effect.
func (v MachineView) withLocks() StatusView {
	out := v.StatusView
	for _, h := range v.Live.Hosts {
		for _, page := range h.Ledger {
			locked := page.Lock != nil && page.Lock.MHz > 0 && page.Lock.BootID == h.BootID
			if locked {
				out.Prior.GPUs = append(out.Prior.GPUs, resource.PriorGPU{Host: h.Name, UUID: page.UUID, ClockUnsure: !page.Lock.Done,
					Applied: resource.Settings{}.With(resource.SMClock, page.Lock.MHz)})
			}
		}
	}
	return out
}

// tenantTable lists each session of each project; of a project whose state the user cannot read, its slices.
func (p *page) tenantTable(v MachineView) {
	t := &table{columns: textColumns("USER", "PROJECT", "SESSION", "TARGET", "GPU", "SLICE", "SINCE", "LEFT"), spare: []string{"TARGET"}}
	all := v.tenants()
	for _, one := range all {
		first := true
		add := func(session line, target, gpu, slice, since string, left line) {
			who, where := text(one.User), text(one.where())
			if !first {
				who, where = nil, nil
			}
			first = false
			t.add(who, where, session, text(target), text(gpu), text(slice), text(since), left)
		}
		for _, s := range one.sessions {
			on := either(one.simulated, "simulated", strings.Join(each(s.On(), func(k resource.GPUKey) string { return v.gpuName(k.UUID) }), ", "))
			since, left := cmp.Or(momentOf(s.UpAt), one.Since), timeLeft(v.Ends[one.Lineage], s.Address, v.Now)
			add(text(s.Address.Short()), s.Target.ShortName(), on, s.PlaceWords(), since, left)
		}
		unknown := inked(dim, either(one.readable, "-", "?"))
		for _, h := range one.held {
			for _, slice := range slices.SortedFunc(slices.Values(h.Slices), func(a, b resource.LiveSlice) int { return a.Start - b.Start }) {
				if !one.has(slice) {
					add(unknown, "", v.gpuName(h.gpu), slice.Slice.String(), h.Since, unknown)
				}
			}
			if h.Whole && !one.readable {
				add(unknown, "", v.gpuName(h.gpu), "whole GPU", h.Since, unknown)
			}
		}
		if first {
			add(inked(dim, "-"), "", strings.Join(each(one.held, func(h held) string { return v.gpuName(h.gpu) }), ", "), "", one.Since, nil)
		}
	}
	p.table(t)
	if slices.ContainsFunc(all, func(t *tenant) bool { return errors.Is(t.hidden, fs.ErrPermission) }) {
		p.flow(0, 2, inked(dim, "? = in a state that only its user and root can read: sudo cosplay status"))
	}
	for _, one := range all {
		if note := one.note(); note != nil {
			p.flow(0, 2, join(text(one.where()+": "), note))
		}
	}
}

// where names a project by its folder.
func (t *tenant) where() string {
	if t.run {
		return "cosplay run in " + t.folder
	}
	return t.folder
}

// note says what is wrong with a project, and the command that releases its GPUs.
func (t *tenant) note() line {
	switch {
	case t.killed:
		return join(inked(drifted, "killed."), text(" To take it down: "+suggest("reset", []string{"--chdir", t.folder})))
	case t.lost:
		return join(inked(drifted, "state lost."), text(" To release its GPUs: "+suggest("reset", []string{"--holder", resource.ShortLineage(t.Lineage)})))
	case t.hidden != nil && !errors.Is(t.hidden, fs.ErrPermission):
		return join(inked(drifted, "state not read:"), text(" "+prose.Stop(t.hidden.Error())))
	}
	return nil
}

// has reports whether a session of the project is in a slice.
func (t *tenant) has(slice resource.LiveSlice) bool {
	return slices.ContainsFunc(t.sessions, func(s resource.PriorSession) bool { return s.Handle != nil && s.Handle.UUID == slice.UUID })
}

// gpuName is the index of a GPU; the start of its UUID where it cannot be read.
func (v MachineView) gpuName(uuid string) string {
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			if g.UUID == uuid {
				return fmt.Sprint(g.Index)
			}
		}
	}
	return words.ShortUUID(uuid)
}

// waiting lists who waits for room, in the order of the queue.
func (p *page) waiting(v MachineView) {
	for _, h := range v.Live.Hosts {
		for i, w := range h.Queue {
			p.say(fmt.Sprintf("%d. %s waits for room on GPU %s", i+1, w.User, prose.Or(each(w.GPUs, v.gpuName))))
		}
	}
}

func (p *page) machineSummary(v MachineView) {
	users, sessions, owned, foreign := map[string]bool{}, 0, map[string]bool{}, 0
	all := v.tenants()
	for _, t := range all {
		users[t.User] = true
		sessions += len(t.sessions)
		for _, h := range t.held {
			for _, s := range h.Slices {
				owned[s.UUID] = true
			}
		}
	}
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			foreign += count(g.Slices, func(s resource.LiveSlice) bool { return !owned[s.UUID] })
		}
	}
	holders := prose.Count(len(all), "project") + " of " + prose.Count(len(users), "user")
	said := either(len(all) > 0, holders, "No project holds a GPU") + given(sessions, ", "+prose.Count(sessions, "session")) +
		given(foreign, "; "+prose.Count(foreign, "slice")+" of no project")
	p.gap()
	p.say(said + ".")
	p.say("This folder has no project: cosplay init writes one; cosplay history shows what happened on this machine.")
}

func (v MachineView) data() any {
	f := newFleet(v.withLocks())
	out := public.Machine{Format: public.V1, Unread: errorText(v.Unread), Waiting: []public.Waiting{}, Projects: each(v.tenants(), func(t *tenant) public.MachineProject { return v.projectJSON(f, t) })}
	for _, h := range v.Live.Hosts {
		waiting := func(w resource.Waiting) public.Waiting { return public.Waiting{User: w.User, GPUs: w.GPUs} }
		out.Waiting = append(out.Waiting, each(h.Queue, waiting)...)
		if v.Unread == nil {
			host := f.hostJSON(h)
			for i := range host.GPUs {
				host.GPUs[i].Acquired = false
			}
			out.Host = &host
		}
	}
	return out
}

func (v MachineView) projectJSON(f fleet, t *tenant) public.MachineProject {
	out := public.MachineProject{Lineage: either(t.simulated && !t.readable, "", t.Lineage), User: t.User, State: t.State, Folder: t.folder, Run: t.run, Lost: t.lost || t.killed, Readable: t.readable, Simulated: t.simulated,
		Held: each(t.held, func(h held) public.HeldGPU {
			return public.HeldGPU{UUID: h.gpu, Since: h.Since, Whole: h.Whole, Slices: each(h.Slices, f.sliceJSON)}
		})}
	out.Sessions = each(t.sessions, func(s resource.PriorSession) public.MachineSession {
		one := public.MachineSession{Address: s.Address.String(), Name: s.Address.Short(), ID: s.ID, Target: s.Target.Key, Slices: each(s.Slices(), sliceJSON), UpAt: momentOf(s.UpAt)}
		if end, ends := v.Ends[t.Lineage][s.Address]; ends {
			one.ExpiresAt, one.ExpiresBy, one.TimeLeft = momentOf(end.At), end.Why, new(int(end.Left(v.Now)))
		}
		return one
	})
	return out
}
