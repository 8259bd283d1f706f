package disguise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/disguise"
)

// realCUDA is a session over NVIDIA's own CUDA driver, which
// scripts/install-nvidia-smi fetches, and the path of the CUDA runtime that comes
// with it. There is no GPU behind: the driver says so, and the runtime that it
// looked up all that it needs.
func realCUDA(t *testing.T) (s cudaSession, real, runtime string, ok bool) {
	t.Helper()
	smi, ok := judge(t)
	if !ok {
		return cudaSession{}, "", "", false
	}
	folder := filepath.Dir(smi)
	real, runtime = filepath.Join(folder, "libcuda.so.1"), filepath.Join(folder, "libcudart.so")
	for _, path := range []string{real, runtime} {
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if os.Getenv("COSPLAY_NVIDIA_SMI") != "" {
			t.Fatalf("there is no %s beside nvidia-smi: run scripts/install-nvidia-smi %s once more", path, folder)
		}
		t.Logf("no %s here, so nothing was tried on it", path)
		return cudaSession{}, "", "", false
	}
	s = newSession(t)
	check(t, disguise.InstallCUDA(s.dir, real))
	return s, real, runtime, true
}

// Of all that NVIDIA's driver gives out, what the facade covers is the facade's.
func TestResolveOverTheDriver(t *testing.T) {
	s, real, _, ok := realCUDA(t)
	if !ok {
		return
	}
	var asked, swapped int
	out := s.run(compiled(t, "resolve"), append([]string{s.facade(), real}, baseNames()...)...)
	if _, err := fmt.Sscanf(out, "asked %d, swapped %d", &asked, &swapped); err != nil || swapped < 1500 {
		t.Errorf("it says %q (%v), want at least 1500 that were the facade's", out, err)
	}
}

// NVIDIA's runtime finds all that it wants of the driver through the facade, and
// answers as without.
func TestRuntime(t *testing.T) {
	s, real, runtime, ok := realCUDA(t)
	if !ok {
		return
	}
	program := compiled(t, "runtime")
	answers := map[string]string{}
	for _, folder := range []string{filepath.Dir(real), lib(s.dir)} {
		c := exec.Command(program, runtime)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		answers[folder] = string(out)
	}
	if with, without := answers[lib(s.dir)], answers[filepath.Dir(real)]; with != without || !strings.Contains(with, "driver cudaSuccess 1") {
		t.Errorf("through the facade it says %q, and without %q", with, without)
	}
}
