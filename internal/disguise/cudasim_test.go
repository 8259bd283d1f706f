package disguise_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// alone runs a program on the simulated driver without a facade.
func (m machine) alone(t *testing.T, program, visible string) *holder {
	t.Helper()
	return holdOn(t, cudaSession{t: t, slice: visible}.command(program, m.cuda()))
}

// All programs of a simulated slice share its memory, contexts included, and NVML reports each program's use. A
// killed program disappears from the list.
func TestSimulatedSlice(t *testing.T) {
	program := compiled(t, "holder")
	m := newMachine(t, "h200")
	slice, instance := m.slice(t, 0, "1g.18gb", 0)
	other, _ := m.slice(t, 0, "1g.18gb", 1)
	const has = 16384 // MiB, by the profile
	first, second, neighbour := m.alone(t, program, slice), m.alone(t, program, slice), m.alone(t, program, other)
	first.tell("info", fmt.Sprintf("%d of %d", has-600, has))
	first.tell("take 10000", "0")
	second.tell(fmt.Sprintf("take %d", has-600-10000+1), outOfMemory)
	second.tell(fmt.Sprintf("take %d", has-600-10000), "0")
	second.tell("bytes 1", outOfMemory)
	neighbour.tell("info", fmt.Sprintf("%d of %d", has-300, has))
	listed := fmt.Sprint(ask(t, m.library())["processes"])
	for pid, mib64 := range map[int]int{first.cmd.Process.Pid: 10300, second.cmd.Process.Pid: has - 10300, neighbour.cmd.Process.Pid: 300} {
		if want := fmt.Sprintf("Pid:%d UsedGpuMemory:%d]", pid, mib64*mib); !strings.Contains(listed, want) {
			t.Errorf("NVML lists %s, want %s in it", listed, want)
		}
	}
	if err := m.DestroySlice(0, instance); err == nil {
		t.Error("a slice that is in use was destroyed")
	}
	first.kill()
	second.tell("take 10300", "0")
	second.kill()
	check(t, m.DestroySlice(0, instance))
	neighbour.kill()
	ask(t, m.library()).expect(t, answers{"processes": "[]"})
}

// CUDA's ways of naming devices, and what is none.
func TestSimulatedDevices(t *testing.T) {
	program := compiled(t, "shown")
	m := newMachine(t, "h200", "l40s")
	slice, _ := m.slice(t, 0, "3g.71gb", 0)
	whole := m.gpu(t, 1).UUID
	for visible, want := range map[string]answers{
		slice:               {"count": 1, "name": "NVIDIA H200 MIG 3g.71gb", "sms": 60},
		"0":                 {"count": 1, "name": "NVIDIA H200 MIG 3g.71gb"}, // with MIG on, a GPU is its first slice
		"1,0":               {"count": 2, "name": "NVIDIA L40S"},
		whole[:12]:          {"count": 1, "name": "NVIDIA L40S"},
		whole + ",9," + "0": {"count": 1, "name": "NVIDIA L40S"}, // up to the first that is none
	} {
		records(cudaSession{t: t, slice: visible}.run(program, m.cuda())).expect(t, want)
		if t.Failed() {
			t.Fatalf("with CUDA_VISIBLE_DEVICES=%s", visible)
		}
	}
	for _, visible := range []string{"", "2", "MIG-none"} {
		out, err := cudaSession{t: t, slice: visible}.command(program, m.cuda()).CombinedOutput()
		if err == nil || string(out) != "CU(cuInit)(0) answers 100\n" {
			t.Errorf("with CUDA_VISIBLE_DEVICES=%q it says %q, %v", visible, out, err)
		}
	}
}

// Code that is not code of CUDA is refused as CUDA refuses it, a module has only its functions, and a launch fails,
// or is not computed, with one line that says so. Attributes have the figures of the slice, and the rest is not
// supported.
func TestSimulatedKernels(t *testing.T) {
	const invalidImage, invalidPTX, notFound, invalidHandle, noFile, notSupported = 200, 218, 500, 400, 301, 801
	program := compiled(t, "kernels")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	refused := fmt.Sprintf("launch %d %d %d %d", notSupported, notSupported, notSupported, notSupported)
	for launches, warning := range map[string]string{
		refused:          "a simulated host cannot run kernels: cuLaunchKernel fails",
		"launch 0 0 0 0": "kernels do not run, and their results are invalid",
	} {
		check(t, m.SetCompute(launches != refused))
		c := cudaSession{t: t, slice: slice}.command(program, m.cuda())
		c.Dir = t.TempDir()
		var warnings strings.Builder
		c.Stderr = &warnings
		out, err := c.Output()
		check(t, err)
		loaded := fmt.Sprintf("0 add 0 %s ad %d no_such %d unloaded 1 1", launches, notFound, notFound)
		records(string(out)).expect(t, answers{
			"devices": 1, "ptx": loaded, "cubin": loaded, "fat": loaded,
			"text": invalidImage, "empty": invalidImage, "program": invalidImage, "no-target": invalidPTX,
			"compressed": fmt.Sprintf("0 add 0 %s ad 0 %s no_such 0 %s unloaded 1 1", launches, launches, launches),
			"file":       fmt.Sprint("0 ", noFile), "handle": invalidHandle,
			"attribute-2": 1024, "attribute-5": 1<<31 - 1, "attribute-8": 49152, "attribute-12": 65536, "attribute-14": 512,
			"attribute-16": 16, "attribute-38": 50 << 20 / 8, "attribute-39": 2048, "attribute-40": -notSupported,
			"attribute-75": 9, "attribute-81": 228 << 10, "attribute-97": 227 << 10, "attribute-106": 32, "attribute-120": 1,
		})
		if got := warnings.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, warning) {
			t.Errorf("with %s it warns %q, want one line with %q", launches, got, warning)
		}
	}
}

// A program of NVIDIA's runtime finds no GPU, and one line says why.
func TestRuntimeIsExplained(t *testing.T) {
	s := newSession(t)
	for _, release := range []string{"bookworm", "sid"} {
		library, ok := fetched(t, "cuda", release, "libcudart.so")
		if !ok {
			return
		}
		c := exec.Command(compiled(t, "runtime"), library)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+lib(s.dir))
		var said strings.Builder
		c.Stderr = &said
		out, err := c.Output()
		if err != nil || strings.Contains(string(out), "devices cudaSuccess") {
			t.Errorf("%s: it says %q (%v)", release, out, err)
		}
		if !strings.Contains(said.String(), "cannot run programs of the CUDA runtime") || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%s: it prints %q, want one line", release, said.String())
		}
	}
}

// Memory of a simulated GPU takes no memory of the machine until a program writes to it.
func TestSimulatedMemoryIsLazy(t *testing.T) {
	m := newMachine(t, "h200")
	h := m.alone(t, compiled(t, "holder"), "0")
	for range 5 {
		h.tell(fmt.Sprintf("take %d", 24<<10), "0")
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.cmd.Process.Pid))
	check(t, err)
	var size, resident int
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil || size*os.Getpagesize() < 120<<30 || resident*os.Getpagesize() > 64<<20 {
		t.Errorf("of %d pages %d are resident (%v), want 120 GiB and hardly any", size, resident, err)
	}
}

// The size of an array depends on extents, format and levels. The facade computes the same size as the driver, which
// the simulated driver models.
func TestSizesOfArrays(t *testing.T) {
	program := compiled(t, "arrays", "../../driver/cuda/array.c")
	for array, want := range map[string]uint64{ // width, height, depth, format, channels, flags, levels
		"1024 1024 0 0x20 4 0 1":             16 << 20, // floats
		"1024 0 0 0x08 1 0 1":                1 << 10,  // bytes
		"1024 1024 0 0x10 2 0 1":             4 << 20,  // halves
		"1024 1024 0 0x91 4 0 1":             1 << 19,  // BC1: half a byte each
		"1024 1024 0 0x9d 4 0 1":             1 << 20,  // BC7
		"1024 1024 0 0xb0 3 0 1":             3 << 19,  // NV12
		"1024 1024 0 0xc4 2 0 1":             4 << 20,  // normalized, of 16 bits
		"64 64 64 0x20 1 0 3":                1<<20 + 1<<17 + 1<<14,
		"64 64 6 0x20 1 0x01 2":              6 * (64*64 + 32*32) * 4, // layers
		"64 64 6 0x20 1 0x04 2":              6 * (64*64 + 32*32) * 4, // faces of a cube
		"4294967296 4294967296 9 0x20 1 0 1": 1<<64 - 1,
	} {
		c := exec.Command(program, strings.Fields(array)...)
		out, err := c.Output()
		if err != nil || string(out) != fmt.Sprintln(want) {
			t.Errorf("of %s it says %q (%v), want %d", array, out, err, want)
		}
	}
}
