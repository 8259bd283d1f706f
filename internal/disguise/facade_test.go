package disguise_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

const mib = 1 << 20

// TestTwoSessionsOnOneGPU: go-nvml in two sessions on one H200, each in its own slice.
func TestTwoSessionsOnOneGPU(t *testing.T) {
	m := newMachine(t, "h200", "h200")
	first, firstInstance := m.slice(t, 1, "1g.18gb", 0)
	second, secondInstance := m.slice(t, 1, "2g.35gb", 2)
	m.set(t, 1, "process", fmt.Sprintf("4711:700:%d", firstInstance))
	m.set(t, 1, "process", fmt.Sprintf("4712:20000:%d", secondInstance))
	before := m.gpu(t, 1)
	truth := ask(t, m.library())

	// The slice has an eighth of the memory, so it is shown that part of the power.
	h200 := m.gpu(t, 1)
	draw := h200.PowerMW / 10 * 7 * 16384 / 143771
	gpu := h200.UUID
	reported := ask(t, lib(m.install(t, "rtx-2060", first))+"/"+driver.NVML, shown(first), first, second, gpu, "00000000:3B:00.0", "00000000:19:00.0")
	reported.expect(t, answers{
		"init": 0, "count": 1, "first": 0, "second": 2, "shutdown": 0, "after": "error 1",
		shown(first): 0, first: 0, second: 6, gpu: 6, "00000000:3B:00.0": 0, "00000000:19:00.0": 6,
		"name": "NVIDIA GeForce RTX 2060", "uuid": shown(first), "index": 0, "serial": "error 3", "brand": 5,
		"architecture": 6, "capability": "[9 0]", "cores": 1920, "bus": 192, "pcie": 3, "pcie now": 3,
		"temperature": truth["temperature"], "driver": truth["driver"],
		"memory":    memory("Free", 5444, "Total", 6144, "Used", 700),
		"memory v2": "map[Free:5708447744 Reserved:0 Total:6442450944 Used:734003200 Version:33554472]",
		"BAR1":      memory("Bar1Free", 256, "Bar1Total", 256, "Bar1Used", 0),
		"processes": fmt.Sprintf("[map[ComputeInstanceId:4294967295 GpuInstanceId:4294967295 Pid:4711 UsedGpuMemory:%d]]", 700*mib),
		"graphics":  "[]",
		"power":     160000, "power enforced": 160000, "power default": 160000, "power range": "[80000 160000]",
		"fields": fmt.Sprintf("[80000 160000 160000 160000 160000 error 3 error 3 %d %d error 3]", draw, draw),
		"draw":   draw, "utilization": "map[Gpu:100 Memory:50]", "VBIOS": "error 3", "PCI ids": "[4318 0]", "hottest memory": "error 3",
		"clock max": 1680, "memory clock max": 7000, "application clock": "error 3", "ECC": "error 3",
		"MIG": "error 3", "is MIG": false, "MIG devices": 0, "MIG device": "error 6", "GPU instance": "error 3",
		"attributes": "error 3", "profile": "error 3",
		"set power": 4, "set clock": 4, "set MIG": "error 3", "set persistence": 4,
	})
	// The usage that NVML reports must be plausible for the target.
	ask(t, lib(m.install(t, "rtx-3060", second))+"/"+driver.NVML).expect(t, answers{
		"name": "NVIDIA GeForce RTX 3060", "uuid": shown(second), "brand": 5, "architecture": 7, "cores": 3584,
		"memory":    memory("Free", 0, "Total", 12288, "Used", 12288),
		"processes": fmt.Sprintf("[map[ComputeInstanceId:4294967295 GpuInstanceId:4294967295 Pid:4712 UsedGpuMemory:%d]]", 20000*mib),
	})
	if after := m.gpu(t, 1); !reflect.DeepEqual(after, before) {
		t.Errorf("the GPU was changed from %+v to %+v", before, after)
	}
}

// A session with an idle slice is not shown what its neighbour does, and power, utilization and clocks never exceed the
// target's.
func TestIdleNeighbour(t *testing.T) {
	m := newMachine(t, "h200")
	busy, instance := m.slice(t, 0, "4g.71gb", 0)
	idle, _ := m.slice(t, 0, "1g.18gb", 4)
	m.set(t, 0, "process", fmt.Sprintf("4711:700:%d", instance))
	ask(t, lib(m.install(t, "rtx-2060", idle))+"/"+driver.NVML).expect(t, answers{"utilization": "map[Gpu:0 Memory:0]", "processes": "[]"})
	ask(t, lib(m.install(t, "gtx-1650", busy))+"/"+driver.NVML).expect(t, answers{
		"utilization": "map[Gpu:100 Memory:50]", "draw": 75_000, "power": 75_000,
	})
	ask(t, lib(m.install(t, "v100-sxm2-32gb", busy))+"/"+driver.NVML).expect(t, answers{"memory clock": 879}) // the H200 has 3125 MHz
}

// shown is the UUID that a slice shows.
func shown(slice string) string { return "GPU-" + slice[4:] }

// memory is an answer with three amounts in MiB, as it is printed.
func memory(a string, x int, b string, y int, c string, z int) string {
	return fmt.Sprint(map[string]int{a: x * mib, b: y * mib, c: z * mib})
}

// A whole GPU, not the first of its host, with MIG and without.
func TestWholeGPU(t *testing.T) {
	for _, host := range []string{"a100-sxm4-80gb", "l40s"} {
		t.Run(host, func(t *testing.T) {
			m := newMachine(t, "h200", host)
			gpu := m.gpu(t, 1).UUID
			m.set(t, 1, "process", "4711:1000")
			ask(t, lib(m.install(t, "rtx-3090", gpu))+"/"+driver.NVML, gpu, m.gpu(t, 0).UUID).expect(t, answers{
				"count": 1, gpu: 0, m.gpu(t, 0).UUID: 6, "uuid": gpu, "name": "NVIDIA GeForce RTX 3090", "index": 0,
				"cores": 10496, "bus": 384, "memory clock max": 9750, "power": 350000, "MIG": "error 3", "MIG devices": 0,
				"processes": fmt.Sprintf("[map[ComputeInstanceId:4294967295 GpuInstanceId:4294967295 Pid:4711 UsedGpuMemory:%d]]", 1000*mib),
			})
		})
	}
}

// A datacenter GPU that presents another datacenter GPU keeps features such as ECC.
func TestProfessionalTarget(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "7g.141gb", 0)
	ask(t, lib(m.install(t, "a100-sxm4-80gb", slice))+"/"+driver.NVML).expect(t, answers{
		"name": "NVIDIA A100-SXM4-80GB", "brand": 14, "ECC": "[1 1]", "application clock": 1410, "clock max": 1410, "cores": 6912,
		"BAR1": memory("Bar1Free", 131072, "Bar1Total", 131072, "Bar1Used", 0),
	})
}

// The driver's NVML calls its own exported functions, which resolve to the facade's. These calls must return the
// driver's values, while programs see the target.
func TestDriverCallsItself(t *testing.T) {
	dir := t.TempDir()
	behind := filepath.Join(dir, "talkative.so")
	rest := filepath.Join(dir, "rest.c") // go-nvml ends a program that calls what is not there
	stubs := "#include \"stub.h\"\nSTUB(" + strings.Join(driver.Names(), ")\nSTUB(") + ")\n"
	check(t, os.WriteFile(rest, []byte(stubs), 0o600))
	out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-I../../driver/sim", "-o", behind, "testdata/talkative.c", rest).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check(t, disguise.Install(dir, session(t, "rtx-2060"), resource.Handle{UUID: "MIG-41c2"}, behind, ""))
	ask(t, lib(dir)+"/"+driver.NVML).expect(t, answers{
		"driver": "0 2 7 1 GPU 1", "count": 1, "first": 0, "second": 2, "index": 0, "MIG devices": 0, "name": "NVIDIA GeForce RTX 2060",
	})
}

// A removed slice is reported as a lost GPU, even if another slice is at the same place.
func TestSliceGone(t *testing.T) {
	m := newMachine(t, "h200")
	slice, id := m.slice(t, 0, "1g.18gb", 0)
	dir := m.install(t, "rtx-2060", slice)
	check(t, m.DestroySlice(0, id))
	m.slice(t, 0, "1g.18gb", 0)
	ask(t, lib(dir)+"/"+driver.NVML, shown(slice)).expect(t, answers{"init": 0, "count": 1, "first": 15, shown(slice): 6, "second": 2})
}

// Invalid figures must not reveal the physical GPU.
func TestDamagedFigures(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	dir := m.install(t, "rtx-2060", slice)
	path := filepath.Join(dir, "figures")
	good, err := os.ReadFile(path)
	check(t, err)
	other := bytes.Clone(good)
	other[8] = 99 // version
	endless := bytes.Clone(good)
	for i := 16; i < 16+96; i++ {
		endless[i] = 'x' // name
	}
	for name, data := range map[string][]byte{"empty": nil, "short": good[:len(good)-1], "version": other, "endless name": endless, "text": bytes.Repeat([]byte("x"), 4096)} {
		check(t, os.Remove(path))
		check(t, os.WriteFile(path, data, 0o444))
		reported := ask(t, lib(dir)+"/"+driver.NVML, slice)
		reported.expect(t, answers{"count": "error 18", "first": 18, slice: 18})
		if t.Failed() {
			t.Fatalf("with figures that are damaged: %s", name)
		}
	}
}

func installed(t *testing.T) (dir string, file *elf.File) {
	t.Helper()
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	dir = m.install(t, "rtx-2060", slice)
	file, err := elf.Open(lib(dir) + "/" + driver.NVML)
	check(t, err)
	t.Cleanup(func() { file.Close() })
	return dir, file
}

// The facade has one needed library, at the private path, and works with any libc.
func TestLoadsEverywhere(t *testing.T) {
	_, file := installed(t)
	loadsEverywhere(t, file, driver.NVML, "$ORIGIN/../real/"+driver.NVML)
}

func loadsEverywhere(t *testing.T, file *elf.File, soname, needed string) {
	t.Helper()
	for tag, want := range map[elf.DynTag]string{elf.DT_NEEDED: needed, elf.DT_SONAME: soname} {
		if got, err := file.DynString(tag); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%v is %q, %v; want %q", tag, got, err, want)
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_VERNEED, elf.DT_INIT, elf.DT_INIT_ARRAY, elf.DT_FINI, elf.DT_FINI_ARRAY, elf.DT_TEXTREL, elf.DT_RPATH, elf.DT_RUNPATH} {
		if values, err := file.DynValue(tag); err != nil || len(values) != 0 {
			t.Errorf("it has %v: %v, %v", tag, values, err)
		}
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_TLS || (p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0) {
			t.Errorf("it has a segment %v with flags %v", p.Type, p.Flags)
		}
	}
}

// It defines functions of NVML and needs three weak ones without a version.
func TestSymbols(t *testing.T) {
	_, file := installed(t)
	symbols, err := file.DynamicSymbols()
	check(t, err)
	var needs []string
	exports := 0
	for _, s := range symbols {
		if s.HasVersion && s.VersionIndex.Index() > 1 {
			t.Errorf("%s has the version %s", s.Name, s.Version)
		}
		if s.Section == elf.SHN_UNDEF {
			needs = append(needs, s.Name)
			if elf.ST_BIND(s.Info) != elf.STB_WEAK {
				t.Errorf("%s is not weak", s.Name)
			}
			continue
		}
		exports++
		if _, known := slices.BinarySearch(driver.Names(), s.Name); !known {
			t.Errorf("%s is exported and no function of NVML", s.Name)
		}
	}
	slices.Sort(needs)
	if !slices.Equal(needs, []string{"dladdr", "dlopen", "dlsym"}) {
		t.Errorf("it needs %v", needs)
	}
	if exports < 120 || exports > 200 {
		t.Errorf("it defines %d functions; the rest of NVML's %d must fall through", exports, len(driver.Names()))
	}
}

// Install updates the folder, even if a link to the driver is in the facade's place.
func TestInstallAgain(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	dir := t.TempDir()
	check(t, os.Mkdir(lib(dir), 0o755))
	check(t, os.Symlink(m.library(), lib(dir)+"/"+driver.NVML))
	check(t, disguise.Install(dir, session(t, "rtx-2060"), resource.Handle{UUID: slice}, m.library(), ""))
	ask(t, m.library()).expect(t, answers{"name": "NVIDIA H200"})
	check(t, disguise.Install(dir, session(t, "rtx-2080"), resource.Handle{UUID: slice}, m.library(), ""))
	for _, name := range []string{driver.NVML, "libnvidia-ml.so"} {
		ask(t, lib(dir)+"/"+name).expect(t, answers{"name": "NVIDIA GeForce RTX 2080"})
	}
}

// writeFacade writes a facade that programs find at a path.
func writeFacade(path, library, realLibrary, figures string) error {
	facade, err := disguise.Facade(library, realLibrary, figures)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, facade, 0o755)
}

func TestInstallRefuses(t *testing.T) {
	m := newMachine(t, "h200")
	deep := filepath.Join("/", strings.Repeat("deep/", 820), driver.NVML)
	for _, c := range []struct {
		err  error
		says string
	}{
		{disguise.Install(t.TempDir(), session(t, "rtx-2060"), resource.Handle{UUID: "MIG-1"}, "/nowhere/"+driver.NVML, ""), "no NVML library at"},
		{disguise.Install(t.TempDir(), session(t, "rtx-2060"), resource.Handle{UUID: "MIG-1"}, driver.NVML, ""), "absolute path"},
		{disguise.Install(t.TempDir(), session(t, "rtx-2060"), resource.Handle{UUID: "MIG-" + strings.Repeat("1", 80)}, m.library(), ""), "too long"},
		{writeFacade(t.TempDir()+"/x", driver.NVML, deep, "/figures"), "below 4096 bytes"},
		{writeFacade(t.TempDir()+"/x", driver.NVML, "/lib", "figures"), "must be absolute"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("the error is %v, want one that says %q", c.err, c.says)
		}
	}
}

// The cost of a call in ns: on the simulated driver, through the facade without figures, and with the disguise. Each
// runs in a separate process.
func BenchmarkCall(b *testing.B) {
	m := newMachine(b, "h200")
	slice, _ := m.slice(b, 0, "1g.18gb", 0)
	through := filepath.Join(b.TempDir(), driver.NVML)
	check(b, writeFacade(through, driver.NVML, m.library(), "/nowhere/figures"))
	libraries := []struct{ name, path string }{
		{"plain", m.library()}, {"through", through}, {"disguised", lib(m.install(b, "rtx-2060", slice)) + "/" + driver.NVML},
	}
	for _, call := range []string{"count", "name", "power", "memory", "driver"} {
		for _, l := range libraries {
			b.Run(call+"/"+l.name, func(b *testing.B) {
				var best float64
				for range b.N {
					out, err := exec.Command(os.Args[0], timeArgument, l.path, call).Output()
					check(b, err)
					ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
					check(b, err)
					if best == 0 || ns < best {
						best = ns
					}
				}
				b.ReportMetric(best, "ns/call")
			})
		}
	}
}

// headersOfNVML is the folder of nvml.h.
func headersOfNVML(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	check(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "pkg/nvml")
}

// The newest list of processes, for which go-nvml passes no buffer, equals the older ones.
func TestProcessDetails(t *testing.T) {
	program, details := compiled(t, "holder"), compiled(t, "details", "-I"+headersOfNVML(t))
	s := newSession(t)
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 1000", "0")
	second.tell("take 2000", "0")
	want := fmt.Sprintf("2 processes\n%d 1300\n%d 2300\n", first.cmd.Process.Pid, second.cmd.Process.Pid)
	if got := s.run(details, filepath.Join(lib(s.dir), driver.NVML)); got != want {
		t.Errorf("it lists %q, want %q", got, want)
	}
}
