package resource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A compute instance that is smaller than its GPU instance has the profile that nvidia-smi prints: "1c.2g.35gb" is one
// of the two compute slices of a 2g.35gb, with all of its memory.

// divided splits the name of a profile into the compute slices of a compute instance and the profile of its GPU
// instance. A compute instance that fills its GPU instance has the GPU instance's name, and 0.
func divided(profile string) (computeSlices int, instance string) {
	digits, rest, cut := strings.Cut(profile, "c.")
	if !cut {
		return 0, profile
	}
	if n, err := strconv.Atoi(digits); err == nil && n > 0 {
		return n, rest
	}
	return 0, profile
}

// DividedProfile names the profile of a compute instance that has a part of the compute slices of its GPU instance.
func DividedProfile(computeSlices int, instance string) string {
	return fmt.Sprintf("%dc.%s", computeSlices, instance)
}

// Variant reports whether a profile has the same SMs and memory as another one, and other media engines or graphics:
// "1g.18gb+me". A session gets one only if its configuration names it.
func Variant(profile string) bool { return strings.ContainsAny(profile, "+-") }

// Divides reports whether the slice is a compute instance that leaves a part of its GPU instance to others.
func (s Slice) Divides() bool {
	return s.ComputeSlices() > 0
}

// Instance is the GPU instance of a slice, as a slice that fills it would be.
func (s Slice) Instance() Slice {
	s = s.Place()
	_, s.Profile = divided(s.Profile)
	s.ComputeStart = 0
	return s
}

// ComputeSlices is the number of compute slices of a compute instance that leaves a part of its GPU instance to others;
// 0 for any other slice.
func (s Slice) ComputeSlices() int {
	n, _ := divided(s.Profile)
	return n
}

// Crosses reports whether no more than one of two slices of a GPU can exist: they take the same slots, unless they are
// compute instances of one GPU instance.
func (s Slice) Crosses(o Slice) bool {
	n, instance := divided(s.Profile)
	m, other := divided(o.Profile)
	if n > 0 && m > 0 && instance == other && s.Start == o.Start {
		return s.ComputeStart < o.ComputeStart+m && o.ComputeStart < s.ComputeStart+n
	}
	return s.Start < o.Start+o.Size && o.Start < s.Start+s.Size
}

// computeSizes are the compute slices that compute instances can have.
var computeSizes = []int{1, 2, 3, 4, 7}

// Divisions lists the profiles of compute instances that are smaller than a GPU instance of a profile.
func (m Model) Divisions(p Profile) (all []Profile) {
	for _, n := range computeSizes {
		if n >= p.ComputeSlices || p.ComputeSlices == 4 && n == 3 {
			break
		}
		part := p
		part.Name, part.SMs = DividedProfile(n, p.Name), n*m.sliceSMs(p)
		all = append(all, part)
	}
	return all
}

// sliceSMs is the number of SMs of one compute slice of a GPU instance: those of the smallest GPU instance.
func (m Model) sliceSMs(p Profile) int {
	least := p.SMs / p.ComputeSlices
	for _, o := range m.Profiles {
		if o.ComputeSlices == 1 {
			least = min(least, o.SMs)
		}
	}
	return least
}

// ComputeStarts lists the compute slices of its GPU instance at which a compute instance of a profile can begin. One
// that fills its GPU instance begins at 0.
func (m Model) ComputeStarts(profile string) []int {
	n, instance := divided(profile)
	p, ok := m.Profile(instance)
	if n == 0 || !ok {
		return []int{0}
	}
	stride := n
	if n == 3 { // as if it were one of four
		stride = 4
	}
	var starts []int
	for at := 0; at+n <= p.ComputeSlices; at += stride {
		starts = append(starts, at)
	}
	return starts
}

// Profile finds a profile by name: of a GPU instance, or of a compute instance that is smaller.
func (m Model) Profile(name string) (Profile, bool) {
	n, instance := divided(name)
	p, ok := find(m.Profiles, func(p Profile) bool { return p.Name == instance })
	if n == 0 || !ok {
		return p, ok
	}
	parts := m.Divisions(p)
	if i := slices.IndexFunc(parts, func(part Profile) bool { return part.Name == name }); i >= 0 {
		return parts[i], true
	}
	return Profile{}, false
}

// In reports whether a process runs in a MIG slice. Some drivers do not say in which compute instance it runs.
func (p Process) In(h Handle) bool {
	return p.GPUInstance != nil && *p.GPUInstance == h.GPUInstance &&
		(p.ComputeInstance == nil || *p.ComputeInstance == h.ComputeInstance)
}
