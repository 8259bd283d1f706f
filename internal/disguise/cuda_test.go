package disguise_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/disguise"
	"cosplay/internal/sim"
)

func (m machine) cuda() string { return sim.CUDAPath(m.dir) }

// compiled builds a program of testdata and gives its path.
func compiled(t testing.TB, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("cc", "-O2", "-Wall", "-I../../driver", "-o", program, "testdata/"+name+".c", "-ldl", "-lpthread").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// session is a slice in the disguise of a target, with the CUDA facade.
type cudaSession struct {
	t     testing.TB
	dir   string
	slice string
}

func (m machine) installCUDA(t testing.TB, target, slice string) cudaSession {
	t.Helper()
	dir := m.install(t, target, slice)
	check(t, disguise.InstallCUDA(dir, m.cuda()))
	return cudaSession{t, dir, slice}
}

// shared says that others use the slice too: then only what is allocated counts.
func (s cudaSession) shared() cudaSession {
	s.t.Helper()
	figures := disguise.FiguresOf(session(s.t, "rtx-2060"), s.slice)
	figures.OwnSlice = false
	check(s.t, disguise.WriteFigures(filepath.Join(s.dir, "figures"), figures))
	return s
}

func (s cudaSession) facade() string { return filepath.Join(lib(s.dir), driver.CUDA) }

func (s cudaSession) usage() disguise.Usage {
	s.t.Helper()
	u, err := disguise.ReadUsage(filepath.Join(s.dir, "usage"))
	check(s.t, err)
	return u
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

// treatment is how the facade treats each function of CUDA, by functions.txt.
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

// Whatever a driver exports is covered, or named as passed on with a reason.
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

// Every function that takes memory, tried at the cap; with what contexts take
// counted, and without.
func TestEntryPoints(t *testing.T) {
	program := compiled(t, "entries")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	how := treatment(t)
	want := []string{"capture"}
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
