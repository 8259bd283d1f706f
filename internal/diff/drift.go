package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Class names a kind of drift.
type Class string

// The classes, each with its own words.
const (
	GPUGone           Class = "gpu-gone"
	GPUUnusable       Class = "gpu-unusable"
	HostRebooted      Class = "host-rebooted"
	MIGMode           Class = "mig-mode"
	ClockLock         Class = "clock-lock"
	PowerLimit        Class = "power-limit"
	Persistence       Class = "persistence"
	SliceGone         Class = "slice-gone"
	SliceReplaced     Class = "slice-replaced"
	ContainerGone     Class = "container-gone"
	ContainerStopped  Class = "container-stopped"
	ContainerChanged  Class = "container-changed"
	ContainerReplaced Class = "container-replaced"
	ContainerLimited  Class = "container-limited"
	ImageMoved        Class = "image-moved"
	ForeignSlice      Class = "foreign-slice"
	DisguiseBroken    Class = "disguise-broken"
	DisguiseOutdated  Class = "disguise-outdated"
	SecretsOpen       Class = "secrets-open"
)

// possibly begins a cause that is not known: what was done to the machine shows,
// and not by which command.
const possibly = "possible cause: "

// Drift is one thing that is not as the last apply left it.
type Drift struct {
	Class   Class             `json:"class"`
	Host    string            `json:"host"`
	GPU     string            `json:"gpu,omitempty"`     // UUID
	Session *resource.Address `json:"session,omitempty"` // nil for drift of a GPU or host
	Thing   string            `json:"thing"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Cause   string            `json:"cause,omitempty"` // for people; one that is not known begins with "possible cause:"
	Told    bool              `json:"told,omitempty"`  // nobody's fault and never mended
}

// NoGPU reports whether it is a GPU of which nothing can be read.
func (d Drift) NoGPU() bool { return d.Class == GPUGone || d.Class == GPUUnusable }

func drifts(prior resource.Prior, live resource.Live) []Drift {
	var all []Drift
	all = append(all, rebooted(prior, live)...)
	seats := prior.Seats()
	for _, g := range prior.GPUs {
		all = append(all, gpuDrift(g, prior, seats, live)...)
	}
	for _, s := range prior.Sessions {
		all = append(all, sessionDrift(s, live)...)
	}
	slices.SortStableFunc(all, func(a, b Drift) int {
		if (a.Session == nil) != (b.Session == nil) {
			if a.Session == nil {
				return -1
			}
			return 1
		}
		if a.Session != nil {
			return a.Session.Compare(*b.Session)
		}
		return cmp.Compare(a.Host, b.Host)
	})
	return all
}

func rebooted(prior resource.Prior, live resource.Live) []Drift {
	var all []Drift
	for _, h := range live.Hosts {
		if was := prior.BootIDs[h.Name]; was != "" && was != h.BootID && prior.Holds(h.Name) {
			all = append(all, Drift{Class: HostRebooted, Host: h.Name, Thing: "host", From: "up", To: "rebooted",
				Cause: "the driver forgets slices, clock locks and power limits over a reboot"})
		}
	}
	return all
}

// sameBoot reports whether the host has not been rebooted since the state was
// written.
func sameBoot(prior resource.Prior, live resource.Live, host string) bool {
	h, _ := live.Host(host)
	return prior.BootIDs[host] == h.BootID
}

func gpuDrift(was resource.PriorGPU, prior resource.Prior, seats resource.Seats, live resource.Live) []Drift {
	g, ok := live.GPU(was.Host, was.UUID)
	if !ok {
		lost := Drift{Class: GPUGone, Host: was.Host, GPU: was.UUID, Thing: "GPU", From: "there", To: "gone",
			Cause: possibly + "removed, fallen off the bus, or hidden by the driver; dmesg shows it"}
		if u, is := live.Unusable(was.Host, was.UUID); is {
			lost.Class, lost.To, lost.Cause = GPUUnusable, "unusable", u.String()
		}
		return []Drift{lost}
	}
	if book, inHand := live.Held(was.Host, was.UUID); inHand {
		was.Applied = stillSet(was.Applied, book, g)
	}
	var all []Drift
	add := func(class Class, thing, from, to, cause string) {
		if from != to {
			all = append(all, Drift{Class: class, Host: was.Host, GPU: was.UUID, Thing: thing, From: from, To: to, Cause: cause})
		}
	}
	if on := was.Applied.MIG; on != nil && !g.Without(resource.FeatureMIG) {
		add(MIGMode, "MIG mode", resource.OnOff(*on), migText(g), possibly+"nvidia-smi -mig, or a reboot")
	}
	if on := was.Applied.Persistence; on != nil && !g.Without(resource.FeaturePersistence) {
		add(Persistence, "persistence mode", resource.OnOff(*on), resource.OnOff(g.Persistence), possibly+"nvidia-smi -pm, or a reboot")
	}
	if mw := was.Applied.PowerMW; mw != nil && !g.Without(resource.FeaturePower) {
		add(PowerLimit, "power limit", resource.Watts(*mw), resource.Watts(g.PowerMW), possibly+"nvidia-smi -pl, or a restart of the driver")
	}
	if mhz := was.Applied.ClockMHz; !was.ClockUnsure && lockLost(was, g, sameBoot(prior, live, was.Host)) {
		add(ClockLock, "SM clock", resource.Clock(*mhz), lockText(was, g), lockCause(was))
	}
	return append(all, foreignDrift(was, seats, g)...)
}

// lockText says what is known of a lock that is gone.
func lockText(was resource.PriorGPU, g resource.GPU) string {
	mhz := was.ClockRefutedMHz
	if mhz == 0 && !g.Held {
		mhz = g.SMClockMHz
	}
	if mhz == 0 || mhz == g.Model.MaxClockMHz() {
		return "lifted"
	}
	return "at " + resource.Clock(mhz)
}

func lockCause(was resource.PriorGPU) string {
	if was.ClockRefutedMHz != 0 {
		return fmt.Sprintf("cosplay verify read %d MHz under load", was.ClockRefutedMHz)
	}
	return possibly + "nvidia-smi -rgc or -lgc, or a restart of the driver"
}

// LockLost tells whether the clock lock on a GPU in hand is known to be gone.
func LockLost(held resource.PriorGPU, prior resource.Prior, live resource.Live) bool {
	g, ok := live.GPU(held.Host, held.UUID)
	return ok && lockLost(held, g, sameBoot(prior, live, held.Host))
}

func lockLost(was resource.PriorGPU, g resource.GPU, sameBoot bool) bool {
	if was.Applied.ClockMHz == nil || *was.Applied.ClockMHz == 0 || g.Without(resource.FeatureClock) {
		return false
	}
	forgotten := !sameBoot || (was.Applied.Persistence != nil && *was.Applied.Persistence && !g.Persistence && !g.Without(resource.FeaturePersistence))
	return forgotten || was.ClockRefutedMHz != 0 || g.LockState(*was.Applied.ClockMHz) == resource.LockLifted
}

// ForeignProcesses are somebody else's programs that use the GPU. A slice is its
// session's alone; a whole GPU anybody can use.
func ForeignProcesses(g resource.GPU, seats resource.Seats) []resource.Process {
	own := func(p resource.Process) bool {
		return slices.ContainsFunc(seats.On(g), func(s *resource.PriorSession) bool {
			return s.Slice.Whole() && p.Session == s.ID || (p.GPUInstance != nil && s.Handle != nil && s.Handle.GPUInstance == *p.GPUInstance)
		})
	}
	return slices.DeleteFunc(slices.Clone(g.Processes), own)
}

// foreignDrift tells of slices on a GPU in hand that are not ours. They are
// planned around and never touched.
func foreignDrift(was resource.PriorGPU, seats resource.Seats, g resource.GPU) []Drift {
	var all []Drift
	for _, s := range Foreign(g, seats) {
		all = append(all, Drift{Class: ForeignSlice, Host: was.Host, GPU: was.UUID, Thing: "foreign slice",
			From: "-", To: fmt.Sprintf("%s, slot %d", s.Profile, s.Start), Cause: "cosplay leaves it alone", Told: true})
	}
	return all
}

// Foreign lists the slices of a GPU that no session of ours holds.
func Foreign(g resource.GPU, seats resource.Seats) []resource.LiveSlice {
	foreign := slices.Clone(g.Slices)
	for _, own := range seats.On(g) {
		if own.Handle != nil {
			foreign = slices.DeleteFunc(foreign, func(l resource.LiveSlice) bool { return is(l, own) })
		}
	}
	return foreign
}

func sessionDrift(was resource.PriorSession, live resource.Live) []Drift {
	var all []Drift
	add := func(class Class, thing, from, to, cause string) {
		address := was.Address
		all = append(all, Drift{Class: class, Host: was.Slice.Host, GPU: was.Slice.GPU, Session: &address,
			Thing: thing, From: from, To: to, Cause: cause})
	}
	if was.Handle != nil && !unread(was, live) && !gpuGone(was, live) { // else the slice is unknown
		own, ok := OwnSlice(was, live)
		switch {
		case ok && own.UUID == "" && was.Handle.UUID != "":
			add(SliceGone, "slice", was.Slice.String(), "without its compute instance", possibly+"nvidia-smi mig -dci")
		case !ok:
			g, _ := live.GPU(was.Slice.Host, was.Slice.GPU)
			if taken := Overlapping(g, was.Slice); taken != nil {
				add(SliceReplaced, "slice", was.Slice.String(), fmt.Sprintf("taken by another %s at slot %d", taken.Profile, taken.Start),
					"recreated outside cosplay; the new slice is foreign")
			} else {
				add(SliceGone, "slice", was.Slice.String(), "gone", possibly+"nvidia-smi mig -dgi, or a reboot")
			}
		}
	}
	if was.Container != nil && !was.Unfinished {
		c, ok := live.Container(was.Slice.Host, was.Runtime, was.ID)
		switch {
		case !ok:
			add(ContainerGone, resource.RuntimeNamed(was.Runtime).Body, "there", "gone", possibly+"removed by hand")
		case c.State == resource.Stopped:
			add(ContainerStopped, resource.RuntimeNamed(was.Runtime).Body, "running", "stopped", possibly+"stopped by hand, or its program ended")
		case c.Hash != was.Container.Hash:
			add(ContainerChanged, resource.RuntimeNamed(was.Runtime).Body, "as applied", "changed", "edited or recreated outside cosplay")
		case c.ID != was.Container.ID:
			add(ContainerReplaced, resource.RuntimeNamed(was.Runtime).Body, shortID(was.Container.ID), shortID(c.ID), "removed and recreated outside cosplay")
		}
		if c.Damaged != "" {
			add(DisguiseBroken, "disguise", "whole", c.Damaged, "files in the session's folder were changed outside cosplay")
		}
		all = append(all, boundsDrift(was, c)...)
		all = append(all, outdatedDrift(was, c)...)
		all = append(all, openDrift(was, c)...)
		all = append(all, imageDrift(was, c, live)...)
	}
	return all
}

// outdatedDrift tells of a container that goes on with the facades of another
// cosplay, or in front of another driver. Nobody has touched it, and the plan
// leaves it to its user when it ends; a session that needs no end is a change.
func outdatedDrift(was resource.PriorSession, c resource.Container) []Drift {
	runtime := resource.RuntimeNamed(was.Runtime)
	if runtime.RenewsInPlace || was.Container.Foreign {
		return nil
	}
	var all []Drift
	for _, o := range c.Outdated {
		address := was.Address
		all = append(all, Drift{Class: DisguiseOutdated, Host: was.Slice.Host, Session: &address, Thing: o.Part, From: o.From, To: o.To,
			Cause: "a " + runtime.Body + " keeps what it was started with: " + runtime.StopCommand + ", then cosplay apply", Told: true})
	}
	return all
}

// openDrift reports a container of an older cosplay whose sensitive values are in
// the container's own environment. An update of cosplay does not replace it.
func openDrift(was resource.PriorSession, c resource.Container) []Drift {
	if !c.Open || len(was.Sealed) == 0 || was.Container.Foreign {
		return nil
	}
	address := was.Address
	return []Drift{{Class: SecretsOpen, Host: was.Slice.Host, Session: &address, Thing: "sensitive values",
		From: "in a file of the session's user", To: "in the container's environment",
		Cause: "an older cosplay made the container: docker inspect and docker commit show the values until cosplay apply --replace", Told: true}}
}

// imageDrift tells of an image's name that has come to mean another image. The
// container goes on with the one that it was made from, so it is only told.
func imageDrift(was resource.PriorSession, c resource.Container, live resource.Live) []Drift {
	host, _ := live.Host(was.Slice.Host)
	if was.Box == nil || host.Engine == nil || c.Image == "" || was.Container.Foreign {
		return nil
	}
	now := host.Engine.Images[was.Box.Image]
	if now == "" || now == c.Image {
		return nil
	}
	address := was.Address
	return []Drift{{Class: ImageMoved, Host: host.Name, Session: &address, Thing: "image " + was.Box.Image, From: shortID(c.Image), To: shortID(now),
		Cause: "built or pulled again; each container keeps its own until it is replaced", Told: true}}
}

// shortID is an id as Docker's own commands print it.
func shortID(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

// OwnSlice finds a session's MIG slice.
func OwnSlice(s resource.PriorSession, live resource.Live) (resource.LiveSlice, bool) {
	if s.Handle == nil {
		return resource.LiveSlice{}, false
	}
	g, ok := live.GPU(s.Slice.Host, s.Slice.GPU)
	if !ok {
		return resource.LiveSlice{}, false
	}
	for _, l := range g.Slices {
		if is(l, &s) {
			return l, true
		}
	}
	return resource.LiveSlice{}, false
}

// is tells whether a slice that exists is the one that a session was given.
func is(l resource.LiveSlice, s *resource.PriorSession) bool {
	return resource.LiveSlice{Slice: s.Slice, Handle: *s.Handle}.Match(l) != resource.OtherSlice
}

// Overlapping finds what sits where a slice is wanted.
func Overlapping(g resource.GPU, want resource.Slice) *resource.LiveSlice {
	for _, l := range g.Slices {
		if l.Start < want.Start+want.Size && want.Start < l.Start+l.Size {
			return &l
		}
	}
	return nil
}
