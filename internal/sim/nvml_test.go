package sim_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// go-nvml serves one library a process, so all tests here share one folder and
// make a new host in it each time.
var (
	dir     string
	library nvml.Interface
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == clientArgument {
		os.Exit(runClient(os.Args[2], os.Args[3:]))
	}
	folder, err := os.MkdirTemp("", "simulated-host")
	if err != nil {
		panic(err)
	}
	dir = folder
	library = nvml.New(nvml.WithLibraryPath(sim.LibraryPath(dir)))
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// start makes a host of the models and opens its NVML.
func start(t *testing.T, models ...resource.Model) *sim.Host {
	t.Helper()
	create(t, models...)
	must(t, library.Init())
	t.Cleanup(func() { library.Shutdown() })
	return open(t)
}

func create(t *testing.T, models ...resource.Model) {
	t.Helper()
	if err := sim.Create(dir, models, sim.Options{Simulates: "test", Seed: "test"}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *sim.Host {
	t.Helper()
	h, err := sim.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func must(t *testing.T, ret nvml.Return) {
	t.Helper()
	want(t, ret, nvml.SUCCESS)
}

func want(t *testing.T, got, want nvml.Return) {
	t.Helper()
	if got != want {
		t.Fatalf("NVML answered %v (%d), want %v (%d)", got, got, want, want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func gpu(t *testing.T, index int) nvml.Device {
	t.Helper()
	d, ret := library.DeviceGetHandleByIndex(index)
	must(t, ret)
	return d
}

func migOn(t *testing.T, d nvml.Device) {
	t.Helper()
	activation, ret := d.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	must(t, ret)
	must(t, activation)
}

// profileID is the id of a profile of the model.
func profileID(t *testing.T, m resource.Model, name string) *nvml.GpuInstanceProfileInfo {
	t.Helper()
	p, ok := m.Profile(name)
	if !ok {
		t.Fatalf("no profile %s", name)
	}
	return &nvml.GpuInstanceProfileInfo{Id: uint32(p.ID)}
}

func createAt(t *testing.T, d nvml.Device, m resource.Model, name string, start int) (nvml.GpuInstance, nvml.Return) {
	t.Helper()
	p, _ := m.Profile(name)
	return d.CreateGpuInstanceWithPlacement(profileID(t, m, name),
		&nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(p.MemorySlices)})
}

// slice makes a GPU instance with one compute instance that fills it.
func slice(t *testing.T, d nvml.Device, m resource.Model, name string, start int) (nvml.GpuInstance, nvml.ComputeInstance) {
	t.Helper()
	gi, ret := createAt(t, d, m, name, start)
	must(t, ret)
	p, _ := m.Profile(name)
	return gi, compute(t, gi, p.ComputeSlices)
}

var computeKinds = map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 7: 4}

func compute(t *testing.T, gi nvml.GpuInstance, slices int) nvml.ComputeInstance {
	t.Helper()
	info, ret := gi.GetComputeInstanceProfileInfo(computeKinds[slices], nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	must(t, ret)
	ci, ret := gi.CreateComputeInstance(&info)
	must(t, ret)
	return ci
}

func set(t *testing.T, h *sim.Host, gpu int, key, value string) {
	t.Helper()
	if err := h.Set(gpu, key, value); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "host"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sameState(t *testing.T, before []byte) {
	t.Helper()
	after := state(t)
	if bytes.Equal(before, after) {
		return
	}
	for i := range before {
		if before[i] != after[i] {
			t.Fatalf("the state differs first at byte %d of %d", i, len(before))
		}
	}
}
