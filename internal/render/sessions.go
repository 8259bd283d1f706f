package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// SessionsView is a status of which the sessions alone are shown.
type SessionsView struct{ StatusView }

func (v SessionsView) draw(p *page) {
	f := newFleet(v.StatusView)
	if len(v.Prior.Sessions) == 0 {
		p.flow(0, 0, text("There is no session. cosplay apply creates those of the configuration."))
	}
	p.sessionTable(f)
}

// sessionTable lists the sessions of the state with how they are.
func (p *page) sessionTable(v fleet) {
	t := &table{columns: slices.Concat(textColumns("SESSION", "TARGET", "GPU", "SLICE"), figureColumns("VRAM", "PEAK"),
		textColumns("STATE", "LEFT", "SSH"), proseColumn("")), spare: []string{"VRAM"}}
	for i, s := range v.Prior.Sessions {
		state := v.states[i]
		t.add(text(s.Address.Short()), text(s.Target.ShortName()), text(strings.TrimPrefix(words.GPUs(v.Live, s.Session), "GPU ")), text(s.PlaceWords()),
			text(mib(s.Target.MemoryMiB)), peakCell(v.Used[s.Address]), stateCell(state), v.leftCell(s), v.sshCell(s), p.driftCell(state, v.drift[s.Address]))
	}
	p.table(t)
}

// peakCell is empty where nothing was used, so that there is no column of it before any session has used anything.
func peakCell(use resource.Use) line {
	switch {
	case use.RanOut() > 0:
		return inked(removed, "ran out")
	case use.PeakMiB > 0:
		return text(mib(use.PeakMiB))
	}
	return nil
}

// sshCell is where one logs in; empty where no session has ssh, so that there is no column of it.
func (f fleet) sshCell(s resource.PriorSession) line {
	c, there := f.Live.Body(s.Slice.Host, s.Runtime, s.ID)
	if !there {
		c.State = ""
	}
	switch at := loginOf(s.Session, &c); {
	case at != nil:
		return text(endpoint(at.Host, at.Port))
	case f.ssh:
		return inked(dim, "-")
	}
	return nil
}

// leftCell is how long a session still has; empty where none expires, so that there is no column of it.
func (f fleet) leftCell(s resource.PriorSession) line {
	if len(f.Ends) == 0 {
		return nil
	}
	return timeLeft(f.Ends, s.Address, f.Now)
}

// timeLeft is how long a session still has; "-" if it does not expire.
func timeLeft(ends map[resource.Address]resource.End, a resource.Address, now resource.Moment) line {
	switch end, known := ends[a]; {
	case end.Expired(now):
		return inked(drifted, "expired")
	case known:
		return text(end.Left(now).String())
	}
	return inked(dim, "-")
}

func stateCell(state string) line {
	switch state {
	case resource.Running:
		return inked(added, state)
	case resource.Stopped, resource.Paused, "unfinished":
		return inked(strong, state)
	}
	return inked(removed, state)
}

// driftCell marks a session that drifted, with words where its state has none. What is informational has no mark.
func (p *page) driftCell(state string, drift []diff.Drift) line {
	var things, information []string
	for _, d := range drift {
		switch {
		case d.Class == diff.ImageMoved || d.Class == diff.ImageOffered:
			information = append(information, "image moved")
		case d.Class == diff.DisguiseOutdated:
			information = append(information, "old "+words.Drifted(d))
		case d.Class == diff.DeviceEarlier:
			information = append(information, "old device in a container")
		case d.Class == diff.SecretsInEnv:
			information = append(information, "open secrets")
		case d.Class == diff.BodyLimited:
			information = append(information, words.Drifted(d)+" "+valueWords(d.To))
		case d.Class == diff.LifetimeEnded:
			things = append(things, words.Cause(d))
		case d.Class == diff.BodyReplaced:
			things = append(things, words.Drifted(d)+" replaced")
		default:
			things = append(things, words.Drifted(d)+" "+valueWords(d.To))
		}
	}
	mark := p.pick("← drift", "<- drift")
	switch {
	case len(things) == 0:
		return inked(dim, strings.Join(information, ", "))
	case state != resource.Running:
		return inked(drifted, mark)
	}
	return join(inked(drifted, mark+":"), text(" "+strings.Join(things, ", ")))
}

// SSHConfig writes Host blocks for ~/.ssh/config.
func SSHConfig(w io.Writer, hosts []public.SSHHost) {
	for i, h := range hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s\nHost %s\n", h.Session, h.Name)
		for _, o := range h.Options {
			fmt.Fprintf(w, "  %s %s\n", o.Name, o.Value)
		}
	}
}

// SSHConfigJSON is the same as JSON.
func SSHConfigJSON(w io.Writer, hosts []public.SSHHost) error {
	return JSON(w, public.SSHConfig{Format: public.V1, Hosts: hosts})
}

// StatusView is what exists on the hosts, and what the state has.
type StatusView struct {
	Prior resource.Prior
	Live  resource.Live
	Drift []diff.Drift
	Flags []string        // global flags of the command, for suggestions
	Lost  map[string]bool // lineages of projects that hold a GPU and whose state is lost

	KilledRuns map[string]string // by lineage: the folder of a cosplay run that was killed
	Tenants    bool              // a table lists the projects that hold GPUs

	Ends map[resource.Address]resource.End // of the sessions that expire
	Now  resource.Moment

	Used    map[resource.Address]resource.Use // of each session that counts its memory
	Busy    map[resource.Address]int          // in percent, of each session whose driver says it; of a live table
	Targets func() []resource.Target          // the catalog's, for verdicts on the used memory

	Reports map[resource.Address]resource.Report // of each session whose programs report what they did
}

// fleet is a view with the lookups that its screens need.
type fleet struct {
	StatusView
	labels labels
	owners map[resource.LiveSlice][]*resource.PriorSession // of the project's slices
	whole  map[resource.GPUKey][]*resource.PriorSession    // on the project's whole GPUs
	drift  map[resource.Address][]diff.Drift
	states []string // of the state's sessions: see sessionState
	ssh    bool     // a session has ssh

	hues map[string]int // colours of blocks in HTML
}

func newFleet(v StatusView) fleet {
	addresses := v.Prior.Addresses()
	f := fleet{StatusView: v, labels: newLabels(addresses), owners: map[resource.LiveSlice][]*resource.PriorSession{},
		whole: map[resource.GPUKey][]*resource.PriorSession{}, drift: map[resource.Address][]diff.Drift{}, hues: numberBlocks(v.Prior.Sessions)}
	for i := range v.Prior.Sessions {
		s := &v.Prior.Sessions[i]
		f.ssh = f.ssh || s.Spec.SSH.Enabled
		own, there := diff.OwnSlice(*s, v.Live)
		if there {
			f.owners[own] = append(f.owners[own], s)
		}
		f.states = append(f.states, v.sessionState(s, there))
		for _, gpu := range s.On() {
			if s.Slice.Whole() {
				f.whole[gpu] = append(f.whole[gpu], s)
			}
		}
	}
	for _, d := range v.Drift {
		if d.Session != nil {
			f.drift[*d.Session] = append(f.drift[*d.Session], d)
		}
	}
	return f
}

// stateUnknown is the state of a session on a host of which nothing could be read.
const stateUnknown = "unknown"

// sessionState is the state of a session: running, stopped, or what is missing. sliced says that its slice exists.
func (v StatusView) sessionState(s *resource.PriorSession, sliced bool) string {
	for _, at := range s.On() {
		if v.Live.Unreachable(at.Host) {
			return stateUnknown
		}
		if _, there := v.Live.GPU(at.Host, at.UUID); there {
			continue
		}
		if _, is := v.Live.Unusable(at.Host, at.UUID); is {
			return "GPU unusable"
		}
		return "GPU missing"
	}
	if s.Handle != nil && !sliced {
		if _, readable := v.Live.Sliced(s.Slice.Host, s.Slice.GPU); !readable {
			return "slice unknown"
		}
		return "slice missing"
	}
	if s.Incomplete() {
		return "unfinished"
	}
	c, there := v.Live.Body(s.Slice.Host, s.Runtime, s.ID)
	if !there {
		return "missing"
	}
	return c.State
}

// lock is what is known of cosplay's clock lock on a GPU, which NVML cannot read.
type lock string

const (
	noLock       lock = "none"     // cosplay has set none
	lockHeld     lock = "held"     // no reading contradicts it
	lockUnlocked lock = "unlocked" // cosplay has lifted it
	lockLifted   lock = "lifted"   // by another process, or a reboot
	lockUnknown  lock = "unknown"  // a run was interrupted while it set or lifted the lock
)

// lock returns the clock in MHz too if the lock is held.
func (v StatusView) lock(g resource.GPU) (lock, int) {
	held, ok := v.Prior.GPU(g.Host, g.UUID)
	lifted := slices.ContainsFunc(v.Drift, func(d diff.Drift) bool {
		return d.Class == diff.ClockLock && d.Host == g.Host && d.GPU == g.UUID
	})
	switch {
	case ok && held.ClockUnsure:
		return lockUnknown, 0
	case !ok || !held.Applied.Has(resource.SMClock):
		return noLock, 0
	case held.Applied.Value(resource.SMClock) == 0:
		return lockUnlocked, 0
	case lifted:
		return lockLifted, 0
	}
	return lockHeld, held.Applied.Value(resource.SMClock)
}

// drifted counts the drift that is not informational.
func (v StatusView) drifted() int {
	return count(v.Drift, func(d diff.Drift) bool { return !d.Informational })
}

// orphans are containers on a host that no session of the state has.
func (v StatusView) orphans(h resource.Host) []resource.Body {
	known := map[string]bool{}
	for _, s := range v.Prior.Sessions {
		known[s.ID] = known[s.ID] || s.Slice.Host == h.Name
	}
	return slices.DeleteFunc(slices.Clone(h.Bodies), func(c resource.Body) bool { return known[c.Session] })
}

// slotMap is a GPU as it is now.
func (f fleet) slotMap(g resource.GPU) slotMap {
	m := slotMap{model: g.Model, mig: g.MIG && g.Model.MIG()}
	for _, slice := range g.Slices {
		for _, s := range f.owners[slice] {
			m.taken = append(m.taken, occupant{slice: s.Slice, session: &s.Address, label: f.labels.of(s.Address)})
		}
		if len(f.owners[slice]) == 0 {
			m.taken = append(m.taken, occupant{slice: slice.Slice})
		}
	}
	for _, s := range f.whole[resource.GPUKey{Host: g.Host, UUID: g.UUID}] {
		m.taken = append(m.taken, occupant{slice: s.Slice, session: &s.Address, mib: s.Target.MemoryMiB, label: f.labels.of(s.Address)})
	}
	return m
}

// computeWords is "7 of 7 compute slices".
func (m slotMap) computeWords() string {
	if !m.mig {
		return ""
	}
	return fmt.Sprintf("%d of %s", m.computeTaken(m.slices()), prose.Count(m.model.ComputeSlices, "compute slice"))
}
