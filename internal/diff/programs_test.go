package diff_test

import (
	"testing"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// TestPrograms: a process is that of the session whose slice it is on; on a shared GPU, of the one that it is known to run in.
func TestPrograms(t *testing.T) {
	one, two, other := 1, 2, 7
	live := resource.Live{Hosts: []resource.Host{{Name: "lab", GPUs: []resource.GPU{
		{Host: "lab", UUID: "GPU-a", MIG: true, Processes: []resource.Process{{PID: 10, GPUInstance: &one}, {PID: 11, GPUInstance: &two}, {PID: 13, GPUInstance: &two, ComputeInstance: &other}, {PID: 12, GPUInstance: &one}},
			Slices: []resource.LiveSlice{{Slice: sliceOf("GPU-a", 0), Handle: resource.Handle{GPUInstance: 1, UUID: "MIG-1"}}, {Slice: sliceOf("GPU-a", 1), Handle: resource.Handle{GPUInstance: 2, UUID: "MIG-2"}}}},
		{Host: "lab", UUID: "GPU-b", Processes: []resource.Process{{PID: 20, Session: "a"}, {PID: 21}}},
		{Host: "lab", UUID: "GPU-c", Degraded: []resource.Degradation{{Feature: resource.ReadingProcesses}}},
	}}}}
	for i := range live.Hosts {
		live.Hosts[i].Index()
	}
	session := func(id, gpu string, sharing resource.Sharing, handle *resource.Handle) resource.PriorSession {
		s := resource.PriorSession{Handle: handle}
		s.ID, s.Slice = id, resource.Slice{Host: "lab", GPU: gpu, Sharing: sharing}
		if handle != nil {
			s.Slice = sliceOf(gpu, handle.GPUInstance-1)
		}
		return s
	}
	programs := diff.ProgramsOf(live)
	for name, test := range map[string]struct {
		session  resource.PriorSession
		of, on   int
		isListed bool
	}{
		"a slice":       {session("x", "GPU-a", "", &resource.Handle{GPUInstance: 1, UUID: "MIG-1"}), 2, 2, true},
		"another slice": {session("x", "GPU-a", "", &resource.Handle{GPUInstance: 2, UUID: "MIG-2"}), 1, 1, true},
		"a lost slice":  {session("x", "GPU-a", "", &resource.Handle{GPUInstance: 3, UUID: "MIG-3"}), 0, 0, true},
		"a whole GPU":   {session("x", "GPU-b", "", nil), 2, 2, true},
		"shared":        {session("a", "GPU-b", resource.SharingTime, nil), 1, 2, true},
		"shared, other": {session("b", "GPU-b", resource.SharingTime, nil), 0, 2, true},
		"not listed":    {session("x", "GPU-c", "", nil), 0, 0, false},
		"no such GPU":   {session("x", "GPU-d", "", nil), 0, 0, false},
	} {
		of, on, listed := len(programs.Of(test.session)), len(programs.On(test.session)), programs.Lists(test.session)
		if of != test.of || on != test.on || listed != test.isListed {
			t.Errorf("%s: %d of it, %d on its GPU, listed: %v; want %d, %d, %v", name, of, on, listed, test.of, test.on, test.isListed)
		}
	}
}

func sliceOf(gpu string, start int) resource.Slice {
	return resource.Slice{Host: "lab", GPU: gpu, Profile: "1g.18gb", Start: start, Size: 1}
}
