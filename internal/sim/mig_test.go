package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

func mode(t *testing.T, d nvml.Device) [2]int {
	t.Helper()
	current, pending, ret := d.GetMigMode()
	must(t, ret)
	return [2]int{current, pending}
}

func TestMIGMode(t *testing.T) {
	h := start(t, h200, l40s)
	d := gpu(t, 0)
	equal(t, "mode", mode(t, d), [2]int{0, 0})
	_, _, ret := gpu(t, 1).GetMigMode()
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = gpu(t, 1).SetMigMode(1)
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)

	set(t, h, 0, "process", "4711:1")
	activation, ret := d.SetMigMode(1)
	must(t, ret)
	want(t, activation, nvml.ERROR_IN_USE)
	equal(t, "mode while in use", mode(t, d), [2]int{0, 1})
	set(t, h, 0, "process", "none")
	migOn(t, d)
	equal(t, "mode", mode(t, d), [2]int{1, 1})

	gi, ret := createAt(t, d, h200, "1g.18gb", 0)
	must(t, ret)
	_, ret = d.SetMigMode(0)
	want(t, ret, nvml.ERROR_IN_USE)
	must(t, gi.Destroy())
	activation, ret = d.SetMigMode(0)
	must(t, ret)
	must(t, activation)
	equal(t, "mode", mode(t, d), [2]int{0, 0})
}

func TestProfilesAreHiddenWithoutMIG(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	_, ret := d.GetGpuInstanceProfileInfo(0)
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	_, ret = d.CreateGpuInstance(profileID(t, h200, "1g.18gb"))
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
}

// The profiles that NVML lists equal those of the model in every value.
func TestProfiles(t *testing.T) {
	models := []resource.Model{h200, a100, a30}
	start(t, models...)
	for i, m := range models {
		d := gpu(t, i)
		migOn(t, d)
		found := 0
		for kind := range nvml.GPU_INSTANCE_PROFILE_COUNT {
			v1, ret := d.GetGpuInstanceProfileInfo(kind)
			if ret == nvml.ERROR_NOT_SUPPORTED {
				continue
			}
			must(t, ret)
			v2, ret := d.GetGpuInstanceProfileInfoV(kind).V2()
			must(t, ret)
			v3, ret := d.GetGpuInstanceProfileInfoV(kind).V3()
			must(t, ret)
			name := strings.TrimPrefix(text(v2.Name[:]), "MIG ")
			equal(t, "name in version 3", text(v3.Name[:]), "MIG "+name)
			p, ok := m.Profile(name)
			if !ok {
				t.Fatalf("%s offers %q", m.Name, name)
			}
			got := fmt.Sprint(v1.Id, v1.MultiprocessorCount, v1.MemorySizeMB, v1.SliceCount, v1.InstanceCount)
			equal(t, name, got, fmt.Sprint(p.ID, p.SMs, p.MemoryMiB, p.ComputeSlices, p.MaxInstances))
			placements, ret := d.GetGpuInstancePossiblePlacements(&v1)
			must(t, ret)
			var starts []int
			for _, place := range placements {
				equal(t, name+" size", int(place.Size), p.MemorySlices)
				starts = append(starts, int(place.Start))
			}
			if !slices.Equal(starts, p.Starts) {
				t.Errorf("%s may start at %v, want %v", name, starts, p.Starts)
			}
			found++
		}
		equal(t, m.Name+": profiles", found, len(m.Profiles))
	}
}

// The sets of slices that fit on a GPU: each slice has a profile and a start.
func TestWhatFitsTogether(t *testing.T) {
	type piece struct {
		profile string
		start   int
		want    nvml.Return
	}
	const ok, full, bad = nvml.SUCCESS, nvml.ERROR_INSUFFICIENT_RESOURCES, nvml.ERROR_INVALID_ARGUMENT
	cases := map[string][]piece{
		"4g and 3g fill it":       {{"4g.71gb", 0, ok}, {"3g.71gb", 4, ok}, {"1g.18gb", 6, full}},
		"two 3g waste a slice":    {{"3g.71gb", 0, ok}, {"3g.71gb", 4, ok}, {"1g.18gb", 6, full}},
		"seven singles":           {{"1g.18gb", 0, ok}, {"1g.18gb", 1, ok}, {"1g.18gb", 2, ok}, {"1g.18gb", 3, ok}, {"1g.18gb", 4, ok}, {"1g.18gb", 5, ok}, {"1g.18gb", 6, ok}, {"1g.18gb", 0, full}},
		"no eighth slot":          {{"1g.18gb", 7, bad}},
		"4g at 0 only":            {{"4g.71gb", 4, bad}},
		"2g at even slots":        {{"2g.35gb", 1, bad}, {"2g.35gb", 2, ok}, {"2g.35gb", 0, ok}, {"2g.35gb", 4, ok}, {"2g.35gb", 4, full}},
		"an overlap":              {{"1g.18gb", 3, ok}, {"2g.35gb", 2, full}, {"2g.35gb", 0, ok}},
		"one with media engines":  {{"1g.18gb+me", 0, ok}, {"1g.18gb+me", 1, full}, {"1g.18gb", 1, ok}},
		"all of it":               {{"7g.141gb", 0, ok}, {"1g.18gb", 0, full}},
		"four with double memory": {{"1g.35gb", 0, ok}, {"1g.35gb", 2, ok}, {"1g.35gb", 4, ok}, {"1g.35gb", 6, ok}, {"1g.18gb", 0, full}},
		"compute runs out":        {{"4g.71gb", 0, ok}, {"2g.35gb", 4, ok}, {"1g.35gb", 6, ok}},
		"compute has run out":     {{"3g.71gb", 0, ok}, {"2g.35gb", 4, ok}, {"1g.35gb", 6, ok}, {"1g.18gb", 6, full}},
	}
	for name, pieces := range cases {
		t.Run(name, func(t *testing.T) {
			start(t, h200)
			d := gpu(t, 0)
			migOn(t, d)
			for _, p := range pieces {
				_, ret := createAt(t, d, h200, p.profile, p.start)
				if ret != p.want {
					t.Fatalf("%s at %d: NVML answered %v, want %v", p.profile, p.start, ret, p.want)
				}
			}
		})
	}
}

func TestGPUInstanceIDs(t *testing.T) {
	cases := []struct {
		model   resource.Model
		profile string
		start   int
		id      uint32
	}{
		{h200, "7g.141gb", 0, 0}, {h200, "3g.71gb", 4, 1}, {h200, "3g.71gb", 0, 2}, {h200, "4g.71gb", 0, 1},
		{h200, "2g.35gb", 0, 3}, {h200, "2g.35gb", 4, 5}, {h200, "1g.18gb", 0, 7}, {h200, "1g.18gb", 6, 13}, {h200, "1g.35gb", 2, 9},
		{a30, "4g.24gb", 0, 0}, {a30, "2g.12gb", 0, 1}, {a30, "2g.12gb", 2, 2}, {a30, "1g.6gb", 3, 6},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.profile, c.start), func(t *testing.T) {
			start(t, c.model)
			d := gpu(t, 0)
			migOn(t, d)
			gi, ret := createAt(t, d, c.model, c.profile, c.start)
			must(t, ret)
			info, ret := gi.GetInfo()
			must(t, ret)
			equal(t, "id", info.Id, c.id)
			equal(t, "start", info.Placement.Start, uint32(c.start))
			again, ret := d.GetGpuInstanceById(int(c.id))
			must(t, ret)
			equal(t, "instance by id", again, gi)
		})
	}
}

func TestClashingIDs(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	migOn(t, d)
	for i, p := range []string{"4g.71gb", "3g.71gb"} {
		gi, ret := createAt(t, d, h200, p, 4*i)
		must(t, ret)
		info, _ := gi.GetInfo()
		equal(t, p+" id", info.Id, uint32(i+1))
	}
}

func TestDriverChoosesPlacement(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	migOn(t, d)
	var starts []uint32
	for left := 7; ; left-- {
		remaining, ret := d.GetGpuInstanceRemainingCapacity(profileID(t, h200, "1g.18gb"))
		must(t, ret)
		equal(t, "remaining", remaining, left)
		gi, ret := d.CreateGpuInstance(profileID(t, h200, "1g.18gb"))
		if left == 0 {
			want(t, ret, nvml.ERROR_INSUFFICIENT_RESOURCES)
			break
		}
		must(t, ret)
		info, _ := gi.GetInfo()
		starts = append(starts, info.Placement.Start)
	}
	if !slices.Equal(starts, []uint32{6, 4, 5, 0, 1, 2, 3}) {
		t.Errorf("the driver placed at %v", starts)
	}
}

func TestMIGDevice(t *testing.T) {
	h := start(t, h200)
	d := gpu(t, 0)
	migOn(t, d)
	gi, ci := slice(t, d, h200, "3g.71gb", 4)
	_, _ = slice(t, d, h200, "1g.18gb", 0)
	max, ret := d.GetMaxMigDeviceCount()
	must(t, ret)
	equal(t, "most MIG devices", max, 7)
	mig, ret := d.GetMigDeviceHandleByIndex(0)
	must(t, ret)
	_, ret = d.GetMigDeviceHandleByIndex(2)
	want(t, ret, nvml.ERROR_NOT_FOUND)

	name, ret := mig.GetName()
	must(t, ret)
	equal(t, "name", name, "NVIDIA H200 MIG 3g.71gb")
	uuid, ret := mig.GetUUID()
	must(t, ret)
	if len(uuid) != 40 || !strings.HasPrefix(uuid, "MIG-") {
		t.Errorf("the UUID is %q", uuid)
	}
	found, ret := library.DeviceGetHandleByUUID(uuid)
	must(t, ret)
	equal(t, "device by UUID", found, mig)
	parent, ret := mig.GetDeviceHandleFromMigDeviceHandle()
	must(t, ret)
	equal(t, "parent", parent, d)
	id, ret := mig.GetGpuInstanceId()
	must(t, ret)
	equal(t, "GPU instance", id, 1)
	attributes, ret := mig.GetAttributes()
	must(t, ret)
	equal(t, "SMs", attributes.MultiprocessorCount, 60)
	equal(t, "memory", attributes.MemorySizeMB, 71168)
	is, ret := mig.IsMigDeviceHandle()
	must(t, ret)
	equal(t, "is MIG", is, true)

	set(t, h, 0, "process", "4711:500:1")
	memory, ret := mig.GetMemoryInfo_v2()
	must(t, ret)
	equal(t, "memory total", memory.Total, 71168<<20)
	equal(t, "memory used", memory.Used, 500<<20)
	other, ret := d.GetMigDeviceHandleByIndex(1)
	must(t, ret)
	memory, ret = other.GetMemoryInfo_v2()
	must(t, ret)
	equal(t, "memory used next door", memory.Used, 0)
	processes, ret := mig.GetComputeRunningProcesses()
	must(t, ret)
	equal(t, "processes", len(processes), 1)
	equal(t, "their GPU instance", processes[0].GpuInstanceId, 1)

	want(t, ci.Destroy(), nvml.ERROR_IN_USE)
	set(t, h, 0, "process", "none")
	want(t, gi.Destroy(), nvml.ERROR_IN_USE)
	must(t, ci.Destroy())
	must(t, gi.Destroy())
	_, ret = mig.GetName()
	want(t, ret, nvml.ERROR_INVALID_ARGUMENT)
	want(t, gi.Destroy(), nvml.ERROR_INVALID_ARGUMENT)
}

func TestComputeInstances(t *testing.T) {
	start(t, h200)
	d := gpu(t, 0)
	migOn(t, d)
	gi, ret := createAt(t, d, h200, "3g.71gb", 4)
	must(t, ret)
	one := compute(t, gi, 1)
	two := compute(t, gi, 1)
	info, ret := two.GetInfo()
	must(t, ret)
	equal(t, "id", info.Id, 1)
	equal(t, "placement", info.Placement, nvml.ComputeInstancePlacement{Start: 1, Size: 1})
	mig, ret := d.GetMigDeviceHandleByIndex(0)
	must(t, ret)
	name, ret := mig.GetName()
	must(t, ret)
	equal(t, "name", name, "NVIDIA H200 MIG 1c.3g.71gb")
	attributes, ret := mig.GetAttributes()
	must(t, ret)
	equal(t, "SMs", attributes.MultiprocessorCount, 16)
	whole, ret := gi.GetComputeInstanceProfileInfo(computeKinds[3], 0)
	must(t, ret)
	_, ret = gi.CreateComputeInstance(&whole)
	want(t, ret, nvml.ERROR_INSUFFICIENT_RESOURCES)
	_, ret = gi.GetComputeInstanceProfileInfo(computeKinds[4], 0)
	want(t, ret, nvml.ERROR_NOT_SUPPORTED)
	must(t, one.Destroy())
	must(t, two.Destroy())
	_, ret = gi.CreateComputeInstance(&whole)
	must(t, ret)
}

// Operations that return the host to its initial settings also restore its file.
func TestNoTrace(t *testing.T) {
	create(t, h200)
	before := state(t)
	must(t, library.Init())
	d := gpu(t, 0)
	must(t, d.SetPersistenceMode(1))
	must(t, d.SetPowerManagementLimit(400_000))
	must(t, d.SetGpuLockedClocks(1200, 1200))
	migOn(t, d)
	gi, ci := slice(t, d, h200, "2g.35gb", 2)
	gi2, ci2 := slice(t, d, h200, "1g.18gb", 0)
	for _, ret := range []nvml.Return{
		ci.Destroy(), gi.Destroy(), ci2.Destroy(), gi2.Destroy(),
		d.ResetGpuLockedClocks(), d.SetPowerManagementLimit(700_000), d.SetPersistenceMode(0),
	} {
		must(t, ret)
	}
	_, ret := d.SetMigMode(0)
	must(t, ret)
	must(t, library.Shutdown())
	sameState(t, before)
}
