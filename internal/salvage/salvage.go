// Package salvage rebuilds a project's state from the hosts' ledgers, the GPUs, and the labels and files of sessions.
// It is a pure function of values.
package salvage

import (
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Sources is everything that is known of one project.
type Sources struct {
	Lineage     string
	Key         string
	Known       resource.Prior // its state if it is readable; otherwise empty
	Live        resource.Live  // the hosts with their ledgers
	Remains     []resource.Remains
	Interrupted bool // whether a run of the project was interrupted
}

// lostBlock is the block name for sessions of which only the slice remains.
const lostBlock = "lost"

// Prior combines the state with what the ledgers record beyond it. A slice belongs to the project only if a ledger or
// the state has it. The notes list what was left out.
func Prior(s Sources) (resource.Prior, []resource.Note) {
	b := builder{Sources: s, prior: s.Known.Clone(), taken: map[resource.Address]bool{},
		byID: map[[3]string]int{}, byGPU: map[resource.GPUKey][]int{}, bySlice: map[string][]int{}}
	b.prior.Lineage, b.prior.Key = s.Lineage, s.Key
	b.drop()
	for i, session := range b.prior.Sessions {
		b.taken[session.Address] = true
		b.enter(i)
	}
	for i := range s.Remains {
		if !s.Known.HasForgottenBody(s.Remains[i].Body) {
			b.attach(&s.Remains[i])
		}
	}
	for _, host := range s.Live.Hosts {
		for _, page := range host.Ledger {
			if holder, holds := page.Holder(s.Lineage); holds {
				b.prior.Serial = max(b.prior.Serial, holder.Serial)
				b.gpu(host, page)
				for _, slice := range holder.Slices {
					b.slice(host, page, slice)
				}
			}
		}
	}
	for i := range b.prior.GPUs {
		b.limits(&b.prior.GPUs[i])
	}
	slices.SortFunc(b.prior.Sessions, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(b.prior.GPUs, resource.PriorGPU.Compare)
	b.prior.Missing = slices.DeleteFunc(b.prior.Missing, func(a resource.Address) bool { return b.taken[a] })
	return b.prior.Remembering(), b.notes
}

type builder struct {
	Sources
	prior resource.Prior
	taken map[resource.Address]bool
	notes []resource.Note

	// Places of sessions in the state, by what they are searched by. A session may be listed where it no longer belongs.
	byID    map[[3]string]int // host, runtime, ID
	byGPU   map[resource.GPUKey][]int
	bySlice map[string][]int // the name of the slice that its body was given
}

// enter lists a session under what it is searched by.
func (b *builder) enter(i int) {
	s := &b.prior.Sessions[i]
	id := [3]string{s.Slice.Host, s.Runtime, s.ID}
	if _, there := b.byID[id]; !there {
		b.byID[id] = i
	}
	b.byGPU[s.Slice.On()] = append(b.byGPU[s.Slice.On()], i)
	if s.Body != nil {
		b.bySlice[s.Body.SliceID] = append(b.bySlice[s.Body.SliceID], i)
	}
}

func (b *builder) note(kind resource.NoteKind, s resource.LiveSlice) {
	b.notes = append(b.notes, resource.Note{Kind: kind, Slice: s})
}

// attach finds the session of a leftover object, or creates one.
func (b *builder) attach(r *resource.Remains) {
	container := r.Body
	b.prior.Serial = max(b.prior.Serial, container.Serial)
	if i, there := b.byID[[3]string{container.Host, container.Runtime, container.Session}]; there {
		known := &b.prior.Sessions[i]
		switch {
		case container.Serial > b.Known.LastRun && r.Session.Address.Name != "":
			b.renew(known, r)
		case known.Body == nil:
			known.Body = &container
		}
		b.enter(i)
		return
	}
	s := resource.PriorSession{Session: r.Session, Body: &container}
	s.ID, s.Runtime, s.Slice.Host = container.Session, container.Runtime, container.Host
	s.More = slices.Clone(s.More)
	for i := range s.More {
		s.More[i].Host = container.Host
	}
	if s.Address.Name == "" || b.taken[s.Address] {
		s.Address = b.freeAddress()
	}
	b.add(s)
}

// renew updates a session to the objects that a later run has created for it.
func (b *builder) renew(known *resource.PriorSession, r *resource.Remains) {
	container, handle := r.Body, known.Handle
	if a := r.Session.Address; a != known.Address && !b.taken[a] {
		delete(b.taken, known.Address)
		b.taken[a] = true
		known.Address = a
	}
	address := known.Address
	known.Session, known.Body, known.Unfinished = r.Session, &container, false
	known.Address = address
	if handle != nil && handle.UUID != container.SliceID {
		known.Handle = nil // the ledger has the slice that the session has got since
	}
}

// drop removes objects that a run later than the state has removed: the GPUs that the project has released, because
// their recorded baseline is outdated, and sessions of which nothing remains.
func (b *builder) drop() {
	released := func(host, gpu string) bool {
		h, _ := b.Live.Host(host)
		return slices.Contains(h.Released, gpu)
	}
	b.prior.GPUs = slices.DeleteFunc(b.prior.GPUs, func(g resource.PriorGPU) bool { return released(g.Host, g.UUID) })
	b.prior.Sessions = slices.DeleteFunc(b.prior.Sessions, func(s resource.PriorSession) bool {
		return slices.ContainsFunc(s.On(), func(g resource.GPUKey) bool {
			page, _ := b.Live.Page(g.Host, g.UUID)
			return released(g.Host, g.UUID) || later(b.Known, page)
		}) && !exists(s, b.Live, b.Remains)
	})
}

// later reports whether a run later than the state has written the page of a GPU.
func later(prior resource.Prior, page resource.Page) bool {
	holder, _ := page.Holder(prior.Lineage)
	return holder.Serial > prior.Serial
}

// exists reports whether a session may have a slice or a container.
func exists(s resource.PriorSession, live resource.Live, remains []resource.Remains) bool {
	if s.Handle != nil {
		_, readable := live.Sliced(s.Slice.Host, s.Slice.GPU)
		if _, there := diff.OwnSlice(s, live); there || !readable {
			return true
		}
	}
	_, there := live.Body(s.Slice.Host, s.Runtime, s.ID)
	return there || slices.ContainsFunc(remains, func(r resource.Remains) bool {
		return r.Body.Host == s.Slice.Host && r.Body.Session == s.ID && r.Body.Runtime == s.Runtime
	})
}

func (b *builder) add(s resource.PriorSession) {
	b.taken[s.Address] = true
	b.prior.Sessions = append(b.prior.Sessions, s)
	b.enter(len(b.prior.Sessions) - 1)
}

func (b *builder) freeAddress() resource.Address {
	for i := 0; ; i++ {
		if a := resource.Nth(lostBlock, i); !b.taken[a] {
			return a
		}
	}
}

// gpu adds a GPU that the project holds. After an interrupted run, the ledger's settings are newer than the state's.
func (b *builder) gpu(host resource.Host, page resource.Page) {
	i := slices.IndexFunc(b.prior.GPUs, func(g resource.PriorGPU) bool { return g.Host == host.Name && g.UUID == page.UUID })
	if i < 0 {
		i = len(b.prior.GPUs)
		b.prior.GPUs = append(b.prior.GPUs, resource.PriorGPU{Host: host.Name, UUID: page.UUID})
	}
	g := &b.prior.GPUs[i]
	if mw, set := page.Set.Get(resource.PowerLimit); set && !g.Applied.Is(resource.PowerLimit, mw) {
		g.AskedPowerMW = nil // it belongs to another limit, and the ledger does not record it
	}
	g.Baseline, g.LockBefore, g.Applied = page.Baseline, page.LockBefore, page.Set.Over(g.Applied)
	b.daemon(g, host, resource.Slice{GPU: page.UUID})
	g.ClockUnsure = g.ClockUnsure || b.Interrupted && page.Set.Has(resource.SMClock)
	// A single GPU that was last changed before a reboot proves that there was one.
	if boot, known := b.prior.BootIDs[host.Name]; !known || boot == host.BootID {
		b.prior.BootIDs[host.Name] = page.BootID
	}
}

// daemon adds the MPS daemon that the project runs for a slice or for a whole GPU.
func (b *builder) daemon(g *resource.PriorGPU, host resource.Host, of resource.Slice) {
	if d, there := host.MPS.Daemon(host.MPS.Folder(of)); there {
		d.Profile, d.Start = of.Profile, of.Start
		g.Daemons = g.With(d.MPS)
	}
}

// limits gives each MPS daemon the limits that its sessions need, if those are what it reports, rounded.
func (b *builder) limits(g *resource.PriorGPU) {
	host, _ := b.Live.Host(g.Host)
	for _, m := range g.All() {
		want := resource.MPS{Folder: m.Folder, Profile: m.Profile, Start: m.Start}
		for _, s := range b.prior.Sessions {
			if s.MPS == m.Folder {
				want = want.For(s.Session)
			}
		}
		if d, _ := host.MPS.Daemon(m.Folder); d.Has(want) {
			g.Daemons = g.With(want)
		}
	}
}

// slice assigns a slice that the ledger has for the project to its session.
func (b *builder) slice(host resource.Host, page resource.Page, made resource.LiveSlice) {
	made.Host = host.Name
	live, there := find(b.Live, made)
	if !there || b.Known.HasForgotten(live.UUID) || made.UUID == "" && !b.mayBelong(host, page, live) {
		return // other remains of its session are deleted separately
	}
	if i := slices.IndexFunc(b.prior.GPUs, func(g resource.PriorGPU) bool { return g.Key() == live.On() }); i >= 0 {
		b.daemon(&b.prior.GPUs[i], host, live.Place())
	}
	if all := b.sessionsOf(live); len(all) > 0 {
		for _, i := range all {
			s := &b.prior.Sessions[i]
			handle := live.Handle
			s.Handle = &handle
			if live.UUID != "" { // else it is the GPU instance that is left of it
				part := s.Slice.Percent
				s.Slice = s.Request.Sharing.On(live.Slice)
				s.Slice.Percent = part
			}
			b.enter(i)
		}
		return
	}
	if made.Imported { // a foreign container may run in it: only an import can tell whose session that is
		b.note(resource.SliceOfNoState, live)
		return
	}
	a := b.freeAddress()
	b.add(resource.PriorSession{Session: resource.Session{Address: a, ID: resource.SessionID(a), Runtime: host.Runtime, Slice: live.Slice}, Handle: &live.Handle})
}

// find searches a slice of the ledger among the existing ones.
func find(live resource.Live, made resource.LiveSlice) (resource.LiveSlice, bool) {
	g, _ := live.GPU(made.Host, made.GPU)
	i := slices.IndexFunc(g.Slices, func(l resource.LiveSlice) bool {
		if made.UUID == "" { // the ledger recorded only the intention to create it
			return l.IsAt(made.Slice)
		}
		return made.Match(l) != resource.OtherSlice
	})
	if i < 0 {
		return resource.LiveSlice{}, false
	}
	return g.Slices[i], true
}

// mayBelong decides about a slice whose creation the ledger announced but did not confirm. It belongs to the project
// if the host has not rebooted, no process uses it, and no other project is known to have created it.
func (b *builder) mayBelong(host resource.Host, page resource.Page, live resource.LiveSlice) bool {
	g, _ := b.Live.GPU(host.Name, page.UUID)
	inUse := slices.ContainsFunc(g.Processes, func(p resource.Process) bool { return p.In(live.Handle) })
	others := slices.ContainsFunc(page.Others(b.Lineage), func(h resource.Holder) bool {
		return slices.ContainsFunc(h.Slices, func(o resource.LiveSlice) bool {
			return live.IsAt(o.Slice)
		})
	})
	known := slices.ContainsFunc(b.prior.Sessions, func(s resource.PriorSession) bool {
		return s.Handle != nil && (resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}).Match(live) != resource.OtherSlice
	})
	switch {
	case known:
		return true
	case page.BootID != host.BootID:
		b.note(resource.SliceFromOtherBoot, live)
	case inUse:
		b.note(resource.SliceMaybeOwn, live)
	case others:
		b.note(resource.SliceOfProject, live)
	default:
		return true
	}
	return false
}

// sessionsOf finds the session that has a slice, or that was going to get it, and those that share it.
func (b *builder) sessionsOf(live resource.LiveSlice) (all []int) {
	may := slices.Concat(b.byGPU[live.On()], b.bySlice[live.UUID], b.bySlice[resource.IDName(live.GPU, live.GPUInstance, live.ComputeInstance)])
	slices.Sort(may)
	for _, i := range slices.Compact(may) {
		s := &b.prior.Sessions[i]
		byHandle := s.Handle != nil && s.Slice.On() == live.On() && live.IsAt(s.Slice) && (s.Handle.UUID == live.UUID || s.Handle.GPUInstance == live.GPUInstance)
		byContainer := s.Handle == nil && s.Body != nil && live.IsCalled(s.Body.SliceID)
		if byHandle || byContainer {
			all = append(all, i)
		}
	}
	return all
}
