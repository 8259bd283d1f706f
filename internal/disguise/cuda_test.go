package disguise_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

func (m machine) cuda() string { return filepath.Join(m.dir, driver.CUDA) }

// compiled builds a program of testdata and returns its path.
func compiled(t testing.TB, name string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	flags = append(flags, "-O2", "-Wall", "-I../../driver", "-o", program, "testdata/"+name+".c", "-ldl", "-lpthread")
	out, err := exec.Command("cc", flags...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// cudaSession returns a slice with the disguise of a target, including the CUDA facade.
type cudaSession struct {
	t     testing.TB
	dir   string
	slice string
	of    resource.Session
	given resource.Handle
}

func (m machine) installCUDA(t testing.TB, target, slice string) cudaSession {
	t.Helper()
	s := cudaSession{t, t.TempDir(), slice, session(t, target), resource.Handle{UUID: slice}}
	check(t, disguise.Install(s.dir, s.of, s.given, m.library(), m.cuda()))
	return s
}

// over installs the disguise again, over another CUDA driver.
func (s cudaSession) over(cuda string) {
	s.t.Helper()
	check(s.t, disguise.Install(s.dir, s.of, s.given, mustRead(s.t, filepath.Join(s.dir, disguise.RealDir, driver.NVML)), cuda))
}

// shared marks the slice as used by foreign processes, too: then only allocations count.
func (s cudaSession) shared() cudaSession {
	s.t.Helper()
	s.given.Shared = true
	check(s.t, disguise.WriteFigures(filepath.Join(s.dir, "figures"), session(s.t, "rtx-2060").Target, s.given))
	return s
}

func (s cudaSession) facade() string { return filepath.Join(lib(s.dir), driver.CUDA) }

func (s cudaSession) usage() disguise.Usage {
	s.t.Helper()
	accounts, err := disguise.ReadAccounts(filepath.Join(s.dir, "usage"))
	check(s.t, err)
	return accounts[0]
}

func (s cudaSession) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+s.slice)
	return c
}

func (s cudaSession) run(program string, args ...string) string {
	s.t.Helper()
	out, err := s.command(program, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", filepath.Base(program), err, out)
	}
	return string(out)
}

// treatment returns how the facade treats each function of CUDA, from functions.txt.
func treatment(t testing.TB) func(name string) (string, bool) {
	t.Helper()
	data, err := os.ReadFile("../../driver/cudafacade/functions.txt")
	check(t, err)
	var rules [][2]string
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 3 {
			t.Errorf("functions.txt gives no reason: %s", scanner.Text())
		}
		rules = append(rules, [2]string{fields[0], fields[1]})
	}
	return func(name string) (string, bool) {
		for _, rule := range rules {
			if fits, err := path.Match(rule[0], name); err == nil && fits {
				return rule[1], true
			}
		}
		return "", false
	}
}

func exports(t testing.TB, library string) []string {
	t.Helper()
	file, err := elf.Open(library)
	check(t, err)
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	check(t, err)
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Every function that a driver exports is covered, or listed as passed through with a reason.
func TestEveryFunctionIsTreated(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	covered := exports(t, m.installCUDA(t, "rtx-2060", slice).facade())
	how := treatment(t)
	names := driver.CUDANames()
	if len(names) != 656 || !slices.IsSorted(names) {
		t.Errorf("there are %d names, sorted: %v; want the 656 of driver 550 in order", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		treated, known := how(name)
		_, ours := slices.BinarySearch(covered, name)
		switch {
		case !known:
			t.Errorf("functions.txt says nothing of %s", name)
		case ours != (treated != "passed"):
			t.Errorf("%s is %s, but that the facade defines it is %v", name, treated, ours)
		}
	}
	for _, name := range covered {
		if _, known := slices.BinarySearch(names, name); !known && name != "cuCtxCreate_v4" { // of CUDA 12.5
			t.Errorf("%s is exported and no function of CUDA", name)
		}
	}
}

// Each function that allocates memory is tried at the limit, with and without the memory of contexts.
func TestEntryPoints(t *testing.T) {
	program := compiled(t, "entries")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	how := treatment(t)
	want := []string{"capture", "tiles"}
	for _, name := range driver.CUDANames() {
		if treated, _ := how(name); treated == "counted" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	for name, s := range map[string]cudaSession{
		"own slice": m.installCUDA(t, "rtx-2060", slice), "shared": m.installCUDA(t, "rtx-2060", slice).shared(),
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Fields(s.run(program, s.facade()))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("tried were %v, want %v", got, want)
			}
			u := s.usage()
			if u.Total != 0 || u.Peak != 6144*mib || u.Refused < int64(2*len(want)) || len(u.Processes) != 0 {
				t.Errorf("the usage is %+v, want nothing left, a peak of 6144 MiB and at least %d refusals", u, 2*len(want))
			}
		})
	}
}

// records returns the lines that a program printed, by their first word.
func records(out string) answers {
	lines := answers{}
	for line := range strings.Lines(out) {
		question, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines[question] = answer
	}
	return lines
}

// TestShown: a program sees the target through the facade, and the GPU through a facade without figures.
func TestShown(t *testing.T) {
	program := compiled(t, "shown")
	m := newMachine(t, "h200", "h200")
	slice, _ := m.slice(t, 1, "1g.18gb", 0)
	s := m.installCUDA(t, "rtx-2060", slice)
	truth := records(s.run(program, m.cuda()))
	digits := strings.ReplaceAll(strings.TrimPrefix(slice, "MIG-"), "-", "")
	truth.expect(t, answers{"count": 1, "name": "NVIDIA H200 MIG 1g.18gb", "sms": 16, "uuid2": "0 " + digits, "ecc": 1, "capability": "9.0"})
	records(s.run(program, s.facade())).expect(t, answers{
		"count": 1, "name": "NVIDIA GeForce RTX 2060", "short": "NVIDIA", "total": 6144, "total32": 1<<32 - 1,
		"uuid": "0 " + digits, "uuid2": "0 " + digits, "capability": "9.0", "threads": 1024,
		"sms": 16, "clock": 1680000, "memory-clock": 7000000, "bus": 192, "ecc": 0, "properties": 1680000,
		"free": 6144 - 300 - 100, "of": 6144, "free32": 1<<32 - 1, "of32": 1<<32 - 1,
		"no-device": 101, "no-name": 1, "unknown": 1, "null": 0, "none": 1, "no-handle": 1, "no-array": 400, "lost": 1, "no-context": 201,
	})
	check(t, os.Remove(filepath.Join(s.dir, "figures")))
	if got := records(s.run(program, s.facade())); !maps.Equal(got, truth) {
		t.Errorf("without figures it reports %v, want the truth: %v", got, truth)
	}
}

// Every question about devices is answered with the session's own device, or none.
func TestVisibleDevices(t *testing.T) {
	program, holder := compiled(t, "shown"), compiled(t, "holder")
	m := newMachine(t, "h200")
	first, _ := m.slice(t, 0, "1g.18gb", 0)
	slice, _ := m.slice(t, 0, "1g.18gb", 1)
	m.alone(t, holder, first).tell("take 1000", "0")
	s := m.installCUDA(t, "rtx-2060", slice)
	run := func(visible ...string) (string, error) {
		c := exec.Command(program, s.facade())
		c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=") }), visible...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	uuid := "GPU-" + strings.TrimPrefix(slice, "MIG-")
	for _, visible := range [][]string{nil, {"0"}, {"0,1"}, {slice}, {slice + ",1"}, {slice[:12]}, {uuid}, {uuid[:12]}} {
		inherited := "not set" // by a child of the program
		for i := range visible {
			inherited = visible[i]
			visible[i] = "CUDA_VISIBLE_DEVICES=" + visible[i]
		}
		out, err := run(visible...)
		if err != nil {
			t.Fatalf("with %q: %v: %s", visible, err, out)
		}
		records(out).expect(t, answers{"count": 1, "name": "NVIDIA GeForce RTX 2060", "free": 6144 - 300 - 100, "visible": inherited})
		if t.Failed() {
			t.Fatalf("with %q", visible)
		}
	}
	for _, visible := range []string{"", "-1", "1", "1,0", "00", "GPU-", first, m.gpu(t, 0).UUID} {
		if out, err := run("CUDA_VISIBLE_DEVICES=" + visible); err == nil || out != "CU(cuInit)(0) answers 100\n" {
			t.Errorf("with %q it says %q, %v", visible, out, err)
		}
	}
}

// Invalid figures must not reveal the physical GPU.
func TestDamagedFiguresOfCUDA(t *testing.T) {
	program := compiled(t, "shown")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	s := m.installCUDA(t, "rtx-2060", slice)
	check(t, os.Remove(filepath.Join(s.dir, "figures")))
	check(t, os.WriteFile(filepath.Join(s.dir, "figures"), []byte("nonsense"), 0o444))
	out, err := s.command(program, s.facade()).CombinedOutput()
	if err == nil || string(out) != "CU(cuInit)(0) answers 803\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}

// baseNames are the names that a program asks for, without version and stream.
func baseNames() []string {
	var names []string
	for _, name := range driver.CUDANames() {
		for _, suffix := range []string{"_ptsz", "_ptds", "_v2", "_v3", "_v4"} {
			name = strings.TrimSuffix(name, suffix)
		}
		if !strings.HasPrefix(name, "cudbg") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// cuGetProcAddress gives the facade's function wherever it gives the driver's.
func TestResolve(t *testing.T) {
	program := compiled(t, "resolve")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	s := m.installCUDA(t, "rtx-2060", slice)
	args := append([]string{s.facade(), m.cuda()}, baseNames()...)
	var asked, swapped int
	if _, err := fmt.Sscanf(s.run(program, args...), "asked %d, swapped %d", &asked, &swapped); err != nil {
		t.Fatal(err)
	}
	if asked < 20_000 || swapped < 2000 || swapped > asked/4 {
		t.Errorf("of %d functions %d were the facade's", asked, swapped)
	}
}

// The facade has one needed library, at the private path, and six weak functions of libc without a version.
func TestCUDALoadsEverywhere(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	s := m.installCUDA(t, "rtx-2060", slice)
	file, err := elf.Open(s.facade())
	check(t, err)
	defer file.Close()
	loadsEverywhere(t, file, driver.CUDA, "$ORIGIN/../real/"+driver.CUDA)
	symbols, err := file.DynamicSymbols()
	check(t, err)
	var needs []string
	for _, symbol := range symbols {
		if symbol.HasVersion && symbol.VersionIndex.Index() > 1 {
			t.Errorf("%s has the version %s", symbol.Name, symbol.Version)
		}
		if symbol.Section == elf.SHN_UNDEF {
			needs = append(needs, symbol.Name)
			if elf.ST_BIND(symbol.Info) != elf.STB_WEAK {
				t.Errorf("%s is not weak", symbol.Name)
			}
		}
	}
	slices.Sort(needs)
	if !slices.Equal(needs, []string{"dladdr", "dlopen", "dlsym", "getenv", "setenv", "unsetenv"}) {
		t.Errorf("it needs %v", needs)
	}
}

func TestInstallCUDARefuses(t *testing.T) {
	m := newMachine(t, "h200")
	for path, says := range map[string]string{"/nowhere/libcuda.so.1": "no CUDA driver at", "libcuda.so.1": "absolute path"} {
		if err := disguise.Install(t.TempDir(), session(t, "rtx-2060"), resource.Handle{UUID: "MIG-1"}, m.library(), path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want one that says %q", err, says)
		}
	}
}

// An update of the folder keeps the usage file.
func TestInstallCUDAAgain(t *testing.T) {
	s := newSession(t).shared()
	h := s.hold(t, compiled(t, "holder"))
	h.tell("take 1000", "0")
	s.over(mustRead(t, filepath.Join(s.dir, disguise.RealDir, driver.CUDA)))
	h.tell("take 1000", "0")
	s.wantUsage(t, "total 2000 overhead 0 peak 2000 refused 0 processes 1")
	short := holdOn(t, s.command(compiled(t, "holder"), filepath.Join(s.dir, "lib/libcuda.so")))
	short.tell("take 4145", outOfMemory)
	short.tell("take 4144", "0")
}

func mustRead(t testing.TB, link string) string {
	t.Helper()
	path, err := os.Readlink(link)
	check(t, err)
	return path
}

// instantDriver builds a driver that takes no time and has unlimited memory.
func instantDriver(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "instant.so")
	out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-I../../driver", "-o", path, "testdata/instant.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// The cost of the CUDA facade in ns: for loading it, for an allocation with its free, and for a query. The instant
// driver takes no time; an allocation may cost at most 500 ns more than the driver's.
func BenchmarkCUDA(b *testing.B) {
	program := compiled(b, "cost")
	m := newMachine(b, "h200")
	slice, _ := m.slice(b, 0, "1g.18gb", 0)
	instant := instantDriver(b)
	for _, d := range []struct{ name, path string }{{"simulated", m.cuda()}, {"instant", instant}} {
		s := m.installCUDA(b, "rtx-2060", slice)
		s.over(d.path)
		for _, call := range []string{"load", "pair", "query"} {
			for _, l := range []struct{ name, path string }{{"plain", d.path}, {"disguised", s.facade()}} {
				b.Run(d.name+"/"+call+"/"+l.name, func(b *testing.B) {
					var best float64
					for range b.N {
						var ns float64
						if _, err := fmt.Sscan(s.run(program, l.path, call), &ns); err != nil {
							b.Fatal(err)
						}
						if best == 0 || ns < best {
							best = ns
						}
					}
					b.ReportMetric(best, "ns/call")
				})
			}
		}
	}
}
