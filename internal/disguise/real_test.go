package disguise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/need"
)

// fetched returns a file that scripts/install-nvidia-smi has downloaded beside nvidia-smi.
func fetched(t *testing.T, parts ...string) (path string, ok bool) {
	t.Helper()
	smi, ok := need.Judge(t)
	if !ok {
		return "", false
	}
	path = filepath.Join(append([]string{filepath.Dir(smi)}, parts...)...)
	if _, err := os.Stat(path); err == nil {
		return path, true
	}
	if os.Getenv("COSPLAY_NVIDIA_SMI") != "" {
		t.Fatalf("there is no %s: run scripts/install-nvidia-smi %s once more", path, filepath.Dir(smi))
	}
	t.Logf("no %s here, so nothing was tried on it", filepath.Join(parts...))
	return "", false
}

// The releases of Debian whose CUDA is tried: the last one with 11, and the newest.
var cudaReleases = []string{"bookworm", "sid"}

// Every function that NVIDIA's driver returns and the facade covers is the facade's. The test needs no GPU: it calls
// what the driver answers without one.
func TestResolveOverTheDriver(t *testing.T) {
	program := compiled(t, "resolve")
	for _, release := range cudaReleases {
		real, ok := fetched(t, "cuda", release, driver.CUDA)
		if !ok {
			return
		}
		s := newSession(t)
		s.over(real)
		var asked, swapped int
		out := s.run(program, append([]string{s.facade(), real}, baseNames()...)...)
		if _, err := fmt.Sscanf(out, "asked %d, swapped %d", &asked, &swapped); err != nil || swapped < 1500 {
			t.Errorf("%s: it says %q (%v), want at least 1500 that were the facade's", release, out, err)
		}
	}
}

// NVIDIA's runtimes, both as libraries and statically linked, request the same functions through the facade as
// without it, get as many, and return the same results.
func TestRuntimes(t *testing.T) {
	recorder := filepath.Join(t.TempDir(), "asked.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", recorder, "testdata/asked.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		driver, runtime, library, program string
		asks                              int // functions, at least
	}{
		{"bookworm", "bookworm", "libcudart.so", "runtime", 380},
		{"bookworm", "bookworm", "libnppc.so", "npp", 380},
		{"sid", "bookworm", "libcudart.so", "runtime", 380},
		{"sid", "bookworm", "libnppc.so", "npp", 380},
		{"sid", "sid", "libcudart.so", "runtime", 400},
		{"sid", "sid", "libnppc.so", "npp", 400},
	} {
		real, ok := fetched(t, "cuda", c.driver, driver.CUDA)
		library, also := fetched(t, "cuda", c.runtime, c.library)
		if !ok || !also {
			return
		}
		t.Run(strings.Join([]string{c.library, c.runtime, "over", c.driver}, " "), func(t *testing.T) {
			s := newSession(t)
			s.over(real)
			program := compiled(t, c.program)
			said, asked := recorded(t, recorder, program, library, filepath.Dir(real))
			saidBehind, askedBehind := recorded(t, recorder, program, library, lib(s.dir))
			if said != saidBehind || said == "" {
				t.Errorf("through the facade it says %q, and without %q", saidBehind, said)
			}
			if !slices.Equal(asked, askedBehind) || len(asked) < c.asks {
				t.Errorf("through the facade it asks %d things, and without %d; want at least %d", len(askedBehind), len(asked), c.asks)
				for i := range min(len(asked), len(askedBehind)) {
					if asked[i] != askedBehind[i] {
						t.Fatalf("the first that differs is %q, was %q", askedBehind[i], asked[i])
					}
				}
			}
		})
	}
}

// recorded runs a program with the CUDA driver of a folder, and returns its output and its requests to the driver, in
// order.
func recorded(t *testing.T, recorder, program, library, folder string) (said string, asked []string) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "asked")
	c := exec.Command(program, library)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder, "LD_PRELOAD="+recorder, "ASKED="+list)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(list)
	check(t, err)
	asked = strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(asked)
	return string(out), asked
}

// One facade works with the C libraries of Debian 11, 12 and the newest.
func TestEveryLibc(t *testing.T) {
	s := newSession(t)
	stubs := t.TempDir()
	for soname, defines := range map[string]string{"libc.so.6": "void printf() {} void fflush() {} void atoi() {} void _exit() {}", "libdl.so.2": ""} { // by name alone
		c := exec.Command("cc", "-shared", "-nostdlib", "-fno-builtin", "-Wl,-soname="+soname, "-o", filepath.Join(stubs, soname), "-x", "c", "-")
		c.Stdin = strings.NewReader(defines)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	program := filepath.Join(stubs, "loads")
	if out, err := exec.Command("cc", "-O", "-I../../driver", "-nostdlib", "-fno-builtin", "-fno-stack-protector", "-o", program, "testdata/loads.c", s.facade(),
		"-Wl,--no-as-needed", filepath.Join(stubs, "libdl.so.2"), filepath.Join(stubs, "libc.so.6"), "-Wl,--allow-shlib-undefined").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, release := range []string{"bullseye", "bookworm", "sid"} {
		loader, ok := fetched(t, "libc", release, "loader")
		if !ok {
			return
		}
		out := s.run(loader, "--library-path", filepath.Dir(loader)+":"+lib(s.dir), program, "5844")
		if out != "0 NVIDIA GeForce RTX 2060 6144 2 0 0\n" {
			t.Errorf("%s: it says %q", release, out)
		}
	}
}
