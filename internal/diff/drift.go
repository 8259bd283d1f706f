package diff

import (
	"cmp"
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Class names a kind of drift.
type Class string

const (
	GPUMissing       Class = "gpu-gone"
	GPUUnusable      Class = "gpu-unusable"
	HostRebooted     Class = "host-rebooted"
	EngineSilent     Class = "engine-silent"
	HostUnreachable  Class = "host-unreachable"
	ClockLock        Class = "clock-lock"
	SliceMissing     Class = "slice-gone"
	SliceReplaced    Class = "slice-replaced"
	BodyMissing      Class = "container-gone"
	BodyStopped      Class = "container-stopped"
	BodyChanged      Class = "container-changed"
	BodyReplaced     Class = "container-replaced"
	BodyLimited      Class = "container-limited"
	BodyUnstarted    Class = "container-unstarted"
	BodyStarted      Class = "container-started"
	BodyPaused       Class = "container-paused"
	BodyRestarting   Class = "container-restarting"
	BodyAltered      Class = "container-altered"
	MountReplaced    Class = "mount-replaced"
	ImageMoved       Class = "image-moved"
	ImageOffered     Class = "image-offered" // by its registry
	ForeignSlice     Class = "foreign-slice"
	DisguiseBroken   Class = "disguise-broken"
	DisguiseOutdated Class = "disguise-outdated"
	GPUUnseen        Class = "gpu-unseen" // programs of the session do not see it
	DeviceEarlier    Class = "device-earlier"
	SecretsInEnv     Class = "secrets-open"
	LifetimeEnded    Class = "expired"
	MPSChanged       Class = "mps-daemon"
	ProjectRemoved   Class = "project-removed" // all its sessions, by another user
)

// Classes are all, settings of GPUs included.
func Classes() []Class {
	return append([]Class{
		GPUMissing, GPUUnusable, HostRebooted, EngineSilent, HostUnreachable, SliceMissing, SliceReplaced, BodyMissing, BodyStopped, BodyChanged, BodyReplaced, BodyLimited,
		BodyUnstarted, BodyStarted, BodyPaused, BodyRestarting, BodyAltered, MountReplaced, ImageMoved, ImageOffered, ForeignSlice, DisguiseBroken, DisguiseOutdated, GPUUnseen, DeviceEarlier, SecretsInEnv, LifetimeEnded, MPSChanged, ProjectRemoved,
	}, prose.Each(resource.AllSettings[:], SettingClass)...)
}

// SettingClass is the drift of a setting of a GPU.
func SettingClass(s resource.Setting) Class {
	return cmp.Or(settingClasses[s], Class(s.String()))
}

var settingClasses = map[resource.Setting]Class{resource.MIGMode: "mig-mode", resource.SMClock: ClockLock, resource.PowerLimit: "power-limit"}

// Setting is the setting that has drifted; false for any other drift.
func (c Class) Setting() (resource.Setting, bool) {
	i := slices.IndexFunc(resource.AllSettings[:], func(s resource.Setting) bool { return SettingClass(s) == c })
	return resource.Setting(max(0, i)), i >= 0
}

// Drift is one thing that is not as the last apply left it.
type Drift struct {
	Class         Class             `json:"class"`
	Host          string            `json:"host"`
	GPU           string            `json:"gpu,omitempty"`     // UUID
	Session       *resource.Address `json:"session,omitempty"` // nil for drift of a GPU or host
	Kind          Kind              `json:"kind,omitempty"`    // of what differs, where the class does not say it
	Name          string            `json:"name,omitempty"`    // of the image, of the file or folder that is mounted, of the check that failed, or of the MIG slice of an MPS daemon; with DeviceEarlier the containers; with EngineSilent, HostUnreachable and GPUUnseen the error
	Runtime       string            `json:"runtime,omitempty"` // of the session
	From          Value             `json:"from"`
	To            Value             `json:"to"`
	Informational bool              `json:"told,omitempty"` // no apply repairs it, and it does not affect the exit code

	ByReboot bool `json:"by_reboot,omitempty"` // the host was rebooted, which explains it: HostRebooted stands for it

	By Culprit `json:"-"` // who changed it, as the history of the host's ledger has it

	Since string `json:"-"` // when it was first found, RFC 3339; "" where that is not recorded, and in a plan
}

// Culprit is a user who has changed something, and when.
type Culprit struct {
	User string // "" if it is not known
	At   string // RFC 3339
}

func driftOf(s resource.PriorSession, class Class, from, to Value) Drift {
	return Drift{Class: class, Host: s.Slice.Host, Session: &s.Address, Runtime: s.Runtime, From: from, To: to}
}

// EndsPrograms reports whether its repair stops programs that work, so that no apply makes it without being asked.
func (d Drift) EndsPrograms() bool { return d.Class == MountReplaced || d.Class == GPUUnseen }

// Kept reports whether it is an expired session that prevent_destroy keeps.
func (d Drift) Kept() bool { return d.Class == LifetimeEnded && d.Name != "" }

// NoGPU reports whether it is a GPU of which nothing can be read.
func (d Drift) NoGPU() bool { return d.Class == GPUMissing || d.Class == GPUUnusable }

// Drifts lists the differences between a state and the hosts. ended are the sessions whose lifetime has passed.
func Drifts(prior resource.Prior, live resource.Live, ended map[resource.Address]resource.End) []Drift {
	all := hostDrift(prior, live)
	placements := prior.Placements()
	for _, g := range prior.GPUs {
		all = append(all, gpuDrift(g, prior, placements, live)...)
	}
	for _, s := range prior.Sessions {
		all = append(all, sessionDrift(s, live)...)
		all = append(all, expiredDrift(s, ended)...)
	}
	for i := range all {
		all[i].ByReboot = all[i].endsAtReboot() && slices.ContainsFunc(all, func(d Drift) bool { return d.Class == HostRebooted && d.Host == all[i].Host })
	}
	slices.SortStableFunc(all, func(a, b Drift) int { // of GPUs and hosts first
		switch {
		case a.Session == nil && b.Session == nil:
			return cmp.Compare(a.Host, b.Host)
		case a.Session == nil:
			return -1
		case b.Session == nil:
			return 1
		}
		return a.Session.Compare(*b.Session)
	})
	return all
}

// endsAtReboot reports whether a reboot has such an effect: the driver forgets settings and slices, and programs end.
func (d Drift) endsAtReboot() bool {
	_, setting := d.Class.Setting()
	return setting || d.Class == SliceMissing || d.Class == BodyStopped || d.Class == MPSChanged
}

// hostDrift reports the hosts that were rebooted, and those that do not answer, or whose container engine does not, although
// the project has something there.
func hostDrift(prior resource.Prior, live resource.Live) (all []Drift) {
	for _, h := range live.Hosts {
		if h.Unreachable != "" && prior.Holds(h.Name) {
			all = append(all, Drift{Class: HostUnreachable, Host: h.Name, Name: h.Unreachable, From: IsAnswering, To: IsSilent, Informational: true})
		}
		if was := prior.BootIDs[h.Name]; was != "" && was != h.BootID && prior.Holds(h.Name) {
			all = append(all, Drift{Class: HostRebooted, Host: h.Name, From: IsUp, To: IsRebooted})
		}
		if h.Silent != "" && len(prior.Bodies(h.Name)) > 0 {
			all = append(all, Drift{Class: EngineSilent, Host: h.Name, Name: h.Silent, From: IsAnswering, To: IsSilent})
		}
	}
	return all
}

// sameBoot reports whether the host has not been rebooted since the state was written.
func sameBoot(prior resource.Prior, live resource.Live, host string) bool {
	h, _ := live.Host(host)
	return prior.BootIDs[host] == h.BootID
}

func gpuDrift(was resource.PriorGPU, prior resource.Prior, placements resource.Placements, live resource.Live) []Drift {
	if live.Unreachable(was.Host) {
		return nil // it is unknown
	}
	g, ok := live.GPU(was.Host, was.UUID)
	if !ok {
		lost := Drift{Class: GPUMissing, Host: was.Host, GPU: was.UUID, From: IsPresent}
		var why resource.Reason
		if lost.To, why = noGPU(was.Host, was.UUID, live); why.Unusable != nil {
			lost.Class = GPUUnusable
		}
		return []Drift{lost}
	}
	if page, held := live.Page(was.Host, was.UUID); held {
		was.Applied = stillSet(was.Applied, page, g)
	}
	var all []Drift
	add := func(class Class, from, to Value) {
		if from != to {
			all = append(all, Drift{Class: class, Host: was.Host, GPU: was.UUID, From: from, To: to})
		}
	}
	for setting, value := range was.Applied.All() {
		if setting.Readable() && !g.Without(setting.Feature()) {
			add(SettingClass(setting), asWanted(setting, value), nowOf(setting, g))
		}
	}
	if !was.ClockUnsure && lockLost(was, g, sameBoot(prior, live, was.Host)) {
		add(ClockLock, Clock{MHz: was.Applied.Value(resource.SMClock)}, lockNow(was, g))
	}
	for _, m := range was.All() {
		if now := MPSNow(m, live, was.Host); now != MPS(m) {
			all = append(all, Drift{Class: MPSChanged, Host: was.Host, GPU: was.UUID, Name: DaemonName(m), From: IsAsApplied, To: now})
		}
	}
	for _, s := range Foreign(g, placements) { // cosplay plans around them and never touches them
		all = append(all, Drift{Class: ForeignSlice, Host: was.Host, GPU: was.UUID, To: Slice(s.Slice), Informational: true})
	}
	return all
}

// lockNow is what is known of a clock lock that is lost.
func lockNow(was resource.PriorGPU, g resource.GPU) Clock {
	now := Clock{MHz: was.ClockRefutedMHz, As: ClockOther, Read: was.ClockRefutedMHz}
	if now.MHz == 0 && !g.LowClockReason {
		now.MHz = g.SMClockMHz
	}
	if now.MHz == 0 || now.MHz == g.Model.MaxClockMHz() {
		now.MHz, now.As = 0, ClockLifted
	}
	return now
}

// LockLost reports whether the clock lock on a GPU of the state is known to be lifted.
func LockLost(held resource.PriorGPU, prior resource.Prior, live resource.Live) bool {
	g, ok := live.GPU(held.Host, held.UUID)
	return ok && lockLost(held, g, sameBoot(prior, live, held.Host))
}

func lockLost(was resource.PriorGPU, g resource.GPU, sameBoot bool) bool {
	lock := was.Applied.Value(resource.SMClock)
	if lock == 0 || g.Without(resource.FeatureClock) {
		return false
	}
	dropped := was.Applied.Is(resource.PersistenceMode, resource.On) && !g.Persistence && !g.Without(resource.FeaturePersistence)
	return !sameBoot || dropped || was.ClockRefutedMHz != 0 || g.RefutesLock(lock)
}

// ForeignProcesses are the programs that use the GPU and are not known to run in a session of the project. A slice is
// used by its session alone, a whole GPU by any process.
func ForeignProcesses(g resource.GPU, placements resource.Placements) []resource.Process {
	own := func(p resource.Process) bool {
		return slices.ContainsFunc(placements.On(g), func(s *resource.PriorSession) bool {
			inSlice := s.Handle != nil && p.In(*s.Handle)
			return inSlice || s.Slice.Whole() && p.Session == s.ID
		})
	}
	return slices.DeleteFunc(slices.Clone(g.Processes), own)
}

// Foreign lists the slices of a GPU that no session of the project has.
func Foreign(g resource.GPU, placements resource.Placements) []resource.LiveSlice {
	var foreign []resource.LiveSlice
	for i := range g.Slices {
		owns := func(own *resource.PriorSession) bool { return own.Handle != nil && is(g.Slices[i], own) }
		if !slices.ContainsFunc(placements.On(g), owns) {
			foreign = append(foreign, g.Slices[i])
		}
	}
	return foreign
}

// expiredDrift reports a session that is up although its lifetime has ended. No apply ends it: cosplay expire does,
// unless prevent_destroy keeps it.
func expiredDrift(was resource.PriorSession, ended map[resource.Address]resource.End) []Drift {
	end, is := ended[was.Address]
	if !is {
		return nil
	}
	d := driftOf(was, LifetimeEnded, nil, Moment(end.At))
	d.Kind = Kind(end.Why)
	if was.PreventDestroy {
		d.Name = string(FieldPreventDestroy)
	}
	return []Drift{d}
}

func sessionDrift(was resource.PriorSession, live resource.Live) []Drift {
	var all []Drift
	add := func(class Class, from, to Value) {
		d := driftOf(was, class, from, to)
		d.GPU = was.Slice.GPU
		all = append(all, d)
	}
	if was.Handle != nil && !unread(was, live) && !gpuMissing(was, live) { // else the slice is unknown
		own, ok := OwnSlice(was, live)
		switch {
		case ok && own.UUID == "" && was.Handle.UUID != "":
			add(SliceMissing, Slice(was.Slice), IsWithoutCompute)
		case !ok:
			g, _ := live.GPU(was.Slice.Host, was.Slice.GPU)
			if taken := Overlapping(g, was.Slice); taken != nil {
				add(SliceReplaced, Slice(was.Slice), Taken(taken.Slice))
			} else {
				add(SliceMissing, Slice(was.Slice), IsMissing)
			}
		}
	}
	if was.Body != nil && !was.Unfinished {
		c, ok := live.Body(was.Slice.Host, was.Runtime, was.ID)
		switch {
		case !ok:
			add(BodyMissing, IsPresent, IsMissing)
		case was.Stopped && c.State != resource.Stopped:
			add(BodyStarted, IsStopped, IsRunning)
		case c.State == resource.Stopped && was.Stopped:
		case c.State == resource.Stopped && c.Unstarted:
			add(BodyUnstarted, IsRunning, IsUnstarted)
		case c.State == resource.Stopped:
			add(BodyStopped, IsRunning, IsStopped)
		case c.State == resource.Paused:
			add(BodyPaused, IsRunning, IsPaused)
		case c.State == resource.Restarting:
			add(BodyRestarting, IsRunning, Restarts(c.Restarts))
		case c.Hash != was.Body.Hash:
			add(BodyChanged, IsAsApplied, IsChanged)
		case c.ID != was.Body.ID:
			add(BodyReplaced, ID(was.Body.ID), ID(c.ID))
		}
		if c.Damaged != "" {
			add(DisguiseBroken, IsIntact, Damage(c.Damaged))
		}
		all = append(all, boundsDrift(was, c)...)
		all = append(all, fieldDrift(was, BodyAltered, alterations(was, c))...)
		all = append(all, replacedDrift(was, c)...)
		all = append(all, outdatedDrift(was, c)...)
		all = append(all, secretsDrift(was, c)...)
		if len(c.Earlier) > 0 { // their engine starts containers, so it is informational
			d := driftOf(was, DeviceEarlier, IsAsApplied, IsEarlier)
			d.Name, d.Informational = resource.DeviceHolders(c.Earlier), true
			all = append(all, d)
		}
		all = append(all, imageDrift(was, c, live)...)
	}
	return all
}

// outdatedDrift reports a container that keeps the facades of another cosplay, or those for another driver. The user
// decides when it ends, so this is informational; for a session that does not have to end it is a change.
func outdatedDrift(was resource.PriorSession, c resource.Body) []Drift {
	runtime := resource.RuntimeNamed(was.Runtime)
	if runtime.RenewsInPlace || was.Body.Foreign {
		return nil
	}
	var all []Drift
	for _, o := range c.Outdated {
		d := driftOf(was, DisguiseOutdated, Text(o.From), Text(o.To))
		d.Kind, d.Informational = Kind(o.Part), true
		all = append(all, d)
	}
	return all
}

// secretsDrift reports a container of an older cosplay whose sensitive values are in the container's own environment.
// An update of cosplay does not replace it.
func secretsDrift(was resource.PriorSession, c resource.Body) []Drift {
	if !c.SecretsInEnv || len(was.Sealed) == 0 || was.Body.Foreign {
		return nil
	}
	d := driftOf(was, SecretsInEnv, IsInFile, IsInEnvironment)
	d.Informational = true
	return []Drift{d}
}

// imageDrift reports an image's name that refers to another image now. The container keeps the image that it was
// created from, so it is informational.
func imageDrift(was resource.PriorSession, c resource.Body, live resource.Live) []Drift {
	host, _ := live.Host(was.Slice.Host)
	if was.Spec.IsZero() || host.Engine == nil || c.Image == "" || was.Body.Foreign {
		return nil
	}
	d := driftOf(was, ImageMoved, ID(c.Image), ID(host.Engine.Images[was.Spec.Image]))
	if offered := host.Engine.Offered[was.Spec.Image]; offered != "" {
		d = driftOf(was, ImageOffered, ID(c.Image), Text(offered))
	}
	if d.To == ID("") || d.From == d.To {
		return nil
	}
	d.Name, d.Informational = was.Spec.Image, true
	return []Drift{d}
}

// OwnSlice finds a session's MIG slice.
func OwnSlice(s resource.PriorSession, live resource.Live) (resource.LiveSlice, bool) {
	if s.Handle == nil {
		return resource.LiveSlice{}, false
	}
	g, _ := live.GPU(s.Slice.Host, s.Slice.GPU)
	for _, l := range g.Slices {
		if is(l, &s) {
			return l, true
		}
	}
	return resource.LiveSlice{}, false
}

// is reports whether a slice that exists is the one of a session.
func is(l resource.LiveSlice, s *resource.PriorSession) bool {
	return resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}.Match(l) != resource.OtherSlice
}

// Overlapping finds a slice that occupies slots of a wanted one.
func Overlapping(g resource.GPU, want resource.Slice) *resource.LiveSlice {
	for _, l := range g.Slices {
		if l.Crosses(want) {
			found := l // a copy: the state keeps it, and what was read may change
			return &found
		}
	}
	return nil
}
