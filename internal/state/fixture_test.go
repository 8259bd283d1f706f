package state

import (
	"errors"
	"os"
	"strings"
	"testing"

	"cosplay/internal/resource"
)

func save(t testing.TB, s Store, p resource.Prior) resource.Prior {
	t.Helper()
	saved, err := s.Save(p)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// wantFault checks that a refusal states what is wrong, that nothing was changed, and the fix.
func wantFault(t *testing.T, err error, fault Fault) {
	t.Helper()
	var refusal *Refusal
	switch {
	case !errors.As(err, &refusal):
		t.Errorf("got %v, want a refusal for being %s", err, fault)
	case refusal.Fault != fault:
		t.Errorf("the fault is %s, want %s: %v", refusal.Fault, fault, err)
	case refusal.What == "", refusal.Fix == "", !strings.Contains(err.Error(), refusal.Path):
		t.Errorf("incomplete: %v", err)
	}
}

// some is a state with values in all fields.
func some() resource.Prior {
	const watts = 320000
	gpu := func(uuid string) resource.PriorGPU {
		return resource.PriorGPU{Host: "lab", UUID: uuid, Baseline: resource.Settings{}.With(resource.MIGMode, resource.Off), Applied: resource.Settings{}.With(resource.MIGMode, resource.On).With(resource.PowerLimit, watts)}
	}
	session := func(a resource.Address, gpu string, start int) resource.PriorSession {
		s := resource.Session{Address: a, ID: resource.SessionID(a), Slice: resource.Slice{Host: "lab", GPU: gpu, Profile: "1g.18gb", Start: start, Size: 1},
			Target:  resource.Target{Key: "rtx-2060", BoostMHz: 1680, MemoryMiB: 6144},
			Runtime: "process", Program: resource.Program{Env: map[string]string{"SEED": "7"}}}
		return resource.PriorSession{Session: s, Handle: &resource.Handle{GPUInstance: start + 7, UUID: "MIG-" + s.ID}, Body: &resource.Body{ID: "/x/" + s.ID, Session: s.ID}}
	}
	return resource.Prior{
		BootIDs: map[string]string{"lab": "boot-1"},
		GPUs:    []resource.PriorGPU{gpu("GPU-0"), gpu("GPU-1")},
		Sessions: []resource.PriorSession{
			session(resource.One("big"), "GPU-1", 0),
			session(resource.Nth("worker", 0), "GPU-0", 0),
			session(resource.Nth("worker", 1), "GPU-0", 1),
			session(resource.Each("worker", "a"), "GPU-1", 1),
		},
	}
}
