package driver_test

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
)

func open(t *testing.T, name string) *elf.File {
	t.Helper()
	data, err := driver.Library(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The library exports exactly the expected names; otherwise programs that bind lazily die. It needs at most one
// function of libc, weakly and without a version.
func TestExports(t *testing.T) {
	for _, c := range []struct {
		library string
		names   []string
		count   int
		needs   string
	}{{driver.NVML, driver.Names(), 398, ""}, {driver.CUDA, driver.CUDANames(), 656, "getenv"}} {
		symbols, err := open(t, c.library).DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		var exported []string
		for _, s := range symbols {
			if s.HasVersion && s.VersionIndex.Index() > 1 {
				t.Errorf("%s has the version %s", s.Name, s.Version)
			}
			if s.Section == elf.SHN_UNDEF {
				if s.Name != c.needs || elf.ST_BIND(s.Info) != elf.STB_WEAK {
					t.Errorf("%s is undefined: %s would need libc", s.Name, c.library)
				}
				continue
			}
			exported = append(exported, s.Name)
		}
		slices.Sort(exported)
		if len(c.names) != c.count || !slices.IsSorted(c.names) {
			t.Errorf("of %s there are %d names, sorted: %v; want %d in order", c.library, len(c.names), slices.IsSorted(c.names), c.count)
		}
		if !slices.Equal(exported, c.names) {
			t.Errorf("%s exports %d names that are not the %d of names.txt", c.library, len(exported), len(c.names))
		}
	}
}

// Whatever would bind a library to one libc: needed files, versions, TLS, constructors.
func TestLoadsEverywhere(t *testing.T) {
	for _, name := range []string{driver.NVML, driver.CUDA} {
		file := open(t, name)
		soname, err := file.DynString(elf.DT_SONAME)
		if err != nil || !slices.Equal(soname, []string{name}) {
			t.Errorf("the soname is %v, %v", soname, err)
		}
		needed, err := file.DynString(elf.DT_NEEDED)
		if err != nil || len(needed) != 0 {
			t.Errorf("%s needs %v, %v", name, needed, err)
		}
		for _, tag := range []elf.DynTag{elf.DT_VERNEED, elf.DT_INIT, elf.DT_INIT_ARRAY, elf.DT_FINI, elf.DT_FINI_ARRAY, elf.DT_TEXTREL} {
			if values, err := file.DynValue(tag); err != nil || len(values) != 0 {
				t.Errorf("%s has %v: %v, %v", name, tag, values, err)
			}
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_TLS {
				t.Errorf("%s has thread-local storage", name)
			}
			if p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0 {
				t.Errorf("the stack of %s is executable", name)
			}
		}
	}
}

func TestMissingLibrary(t *testing.T) {
	_, err := driver.Library("libnothing.so.1")
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("the error is %v, want one that says make build", err)
	}
}

// The programs that verify runs in a session work in any image: one is static, the other loads with every glibc,
// because it needs no versioned symbol.
func TestProbes(t *testing.T) {
	who := open(t, driver.Who)
	if interp := who.Section(".interp"); interp != nil {
		t.Errorf("%s needs a loader", driver.Who)
	}
	probe := open(t, driver.Probe)
	if probe.Section(".interp") == nil {
		t.Errorf("%s has no loader", driver.Probe)
	}
	needed, err := probe.ImportedLibraries()
	if err != nil || !slices.Equal(needed, []string{"libc.so.6", "libdl.so.2"}) {
		t.Errorf("it needs %v, %v", needed, err)
	}
	symbols, err := probe.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var taken []string
	for _, s := range symbols {
		if s.HasVersion {
			t.Errorf("%s has the version %s", s.Name, s.Version)
		}
		taken = append(taken, s.Name)
	}
	slices.Sort(taken)
	if want := []string{"__libc_start_main", "alarm", "dlerror", "dlopen", "dlsym", "setenv"}; !slices.Equal(taken, want) {
		t.Errorf("it takes %v, want %v", taken, want)
	}
}
