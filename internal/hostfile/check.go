package hostfile

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"cosplay/internal/resource"
)

// check reports values that no host has. The checksum shows damage; this is for a file that another program wrote.
func check(h resource.Host) error {
	known := map[string]bool{}
	indexes := make([]int, 0, len(h.GPUs)+len(h.Unusable))
	for _, u := range h.Unusable {
		indexes = append(indexes, u.Index)
		if u.Call == "" || u.Code <= 0 {
			return fmt.Errorf("GPU %d does not answer, and the failed call is missing", u.Index)
		}
	}
	for _, g := range h.GPUs {
		indexes = append(indexes, g.Index)
		if err := checkGPU(g); err != nil {
			return fmt.Errorf("GPU %d: %w", g.Index, err)
		}
		if known[g.UUID] {
			return fmt.Errorf("%s is there twice", g.UUID)
		}
		known[g.UUID] = true
	}
	slices.Sort(indexes)
	for i, index := range indexes {
		if index != i {
			return fmt.Errorf("its GPUs do not have the indexes 0 to %d", len(indexes)-1)
		}
	}
	if len(indexes) == 0 {
		return errors.New("it has no GPU")
	}
	return nil
}

func checkGPU(g resource.GPU) error {
	m := g.Model
	numbers := append([]int{m.SMs, m.MemoryMiB, m.PowerMinMW, m.PowerDefaultMW, m.PowerMaxMW, m.MemorySlices, m.ComputeSlices, g.PowerMW, g.ComputeMode, g.SMClockMHz}, m.ClocksMHz...)
	switch {
	case g.UUID == "":
		return errors.New("it has no uuid")
	case slices.ContainsFunc(numbers, wild) || slices.ContainsFunc([]float64{m.BandwidthGBs, m.L2MiB, m.FP32PerSM, m.TensorPerSM}, wildFigure):
		return errors.New("a number is out of range, or the compute mode is unknown")
	case g.SMClockMHz > math.MaxUint16:
		return fmt.Errorf("no GPU has an SM clock of %d MHz", g.SMClockMHz)
	case !slices.IsSorted(m.ClocksMHz) || slices.Contains(m.ClocksMHz, 0):
		return errors.New("its clocks_mhz do not ascend")
	}
	for _, p := range m.Profiles {
		if slices.ContainsFunc([]int{p.ID, p.SMs, p.MemoryMiB, p.MaxInstances}, wild) || p.MemorySlices < 1 || p.ComputeSlices < 1 ||
			slices.ContainsFunc(p.Starts, func(start int) bool { return start < 0 || start+p.MemorySlices > m.MemorySlices }) {
			return fmt.Errorf("profile %q has a number that is out of range", p.Name)
		}
	}
	for _, d := range g.Degraded {
		if d.Call == "" || d.Code <= 0 {
			return fmt.Errorf("it lacks %q, and the failed call is missing", d.Feature)
		}
	}
	return errors.Join(checkSlices(g), checkProcesses(g))
}

func wild(n int) bool           { return n < 0 || n > math.MaxInt32 }
func wildFigure(x float64) bool { return x < 0 || x > math.MaxInt32 }

func checkSlices(g resource.GPU) error {
	for i, s := range g.Slices {
		profile, known := g.Model.Profile(s.Instance().Profile)
		switch {
		case !g.MIG:
			return errors.New("it has slices without MIG mode")
		case !known || !slices.Contains(profile.Starts, s.Start) || s.Size != profile.MemorySlices:
			return fmt.Errorf("it has no place for a slice %s at slot %d of %d slots", s.Profile, s.Start, s.Size)
		case s.Divides() && (s.UUID == "" || s.ComputeStart < 0 || s.ComputeStart+s.ComputeSlices() > profile.ComputeSlices), !s.Divides() && s.ComputeStart != 0:
			return fmt.Errorf("slice %s at slot %d has no compute slice %d", s.Profile, s.Start, s.ComputeStart)
		}
		for _, o := range g.Slices[:i] {
			if exclude(s, o) {
				return fmt.Errorf("slices %s at slot %d and %s at slot %d cannot exist at the same time", o.Profile, o.Start, s.Profile, s.Start)
			}
		}
	}
	return nil
}

// exclude reports whether two slices cannot exist at the same time.
func exclude(s, o resource.LiveSlice) bool {
	same := s.GPUInstance == o.GPUInstance
	switch {
	case same != (s.Instance() == o.Instance()), s.Crosses(o.Slice):
		return true
	case same && (s.ComputeInstance == o.ComputeInstance || s.UUID == ""):
		return true
	}
	return s.UUID != "" && s.UUID == o.UUID
}

func checkProcesses(g resource.GPU) error {
	for _, p := range g.Processes {
		in := func(s resource.LiveSlice) bool {
			return s.GPUInstance == *p.GPUInstance && (p.ComputeInstance == nil || s.UUID != "" && s.ComputeInstance == *p.ComputeInstance)
		}
		if p.PID <= 0 || wild(p.PID) || wild(p.MemoryMiB) || p.GPUInstance != nil && !slices.ContainsFunc(g.Slices, in) {
			return fmt.Errorf("process %d has a number that is out of range, or is in no slice", p.PID)
		}
	}
	return nil
}
