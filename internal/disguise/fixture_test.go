package disguise_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/disguise"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
)

// machine is a simulated host with one GPU.
type machine struct {
	*sim.Host
	dir string
}

func newMachine(t testing.TB, keys ...string) machine {
	t.Helper()
	var models []resource.Model
	for _, key := range keys {
		model, err := catalog.HostModel(key)
		check(t, err)
		models = append(models, model)
	}
	dir := t.TempDir()
	check(t, sim.Create(dir, models, sim.Options{Simulates: strings.Join(keys, ", "), Seed: "test"}))
	host, err := sim.Open(dir)
	check(t, err)
	t.Cleanup(func() { host.Close() })
	return machine{host, dir}
}

func (m machine) library() string { return sim.LibraryPath(m.dir) }

func (m machine) gpu(t testing.TB, index int) public.SimulatedGPU {
	t.Helper()
	shown, err := m.Show()
	check(t, err)
	return shown.GPUs[index]
}

// slice creates a MIG slice and returns its UUID and the id of its GPU instance.
func (m machine) slice(t testing.TB, gpu int, profile string, start int) (string, int) {
	t.Helper()
	m.set(t, gpu, "mig", "on")
	id, err := m.CreateSlice(gpu, profile, start)
	check(t, err)
	for _, s := range m.gpu(t, gpu).Slices {
		if s.GPUInstance == id {
			return s.Compute[0].UUID, id
		}
	}
	t.Fatalf("GPU instance %d is not there", id)
	return "", 0
}

func (m machine) set(t testing.TB, gpu int, key, value string) {
	t.Helper()
	check(t, m.Set(gpu, key, value))
}

// install installs a target's disguise for a slice and returns the folder.
func (m machine) install(t testing.TB, target, slice string) string {
	t.Helper()
	dir := t.TempDir()
	check(t, disguise.Install(dir, session(t, target), resource.Handle{UUID: slice}, m.library(), ""))
	return dir
}

func session(t testing.TB, target string) resource.Session {
	t.Helper()
	found, err := catalog.Target(target)
	check(t, err)
	return resource.Session{Address: resource.One("worker"), Target: found}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// smi runs nvidia-smi with the NVML library in a folder, and returns its output and exit status.
func smi(t *testing.T, path, library string, args ...string) (string, int) {
	t.Helper()
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func lib(dir string) string { return filepath.Join(dir, "lib") }
