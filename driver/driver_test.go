package driver_test

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
)

func nvml(t *testing.T) *elf.File {
	t.Helper()
	data, err := driver.Library(driver.NVML)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Every name of NVML is there and nothing else, or lazily binding programs die.
func TestExports(t *testing.T) {
	symbols, err := nvml(t).DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, s := range symbols {
		exported = append(exported, s.Name)
		if s.Section == elf.SHN_UNDEF {
			t.Errorf("%s is undefined: the library would need libc", s.Name)
		}
		if s.HasVersion && s.VersionIndex.Index() > 1 {
			t.Errorf("%s has the version %s", s.Name, s.Version)
		}
	}
	slices.Sort(exported)
	names := driver.Names()
	if len(names) != 398 || !slices.IsSorted(names) {
		t.Errorf("names.txt has %d names, sorted: %v; want 398 in order", len(names), slices.IsSorted(names))
	}
	if !slices.Equal(exported, names) {
		t.Errorf("the library exports %d names that are not the %d of names.txt", len(exported), len(names))
	}
}

// What ties a library to one libc: needed files, versions, TLS, constructors.
func TestLoadsEverywhere(t *testing.T) {
	file := nvml(t)
	soname, err := file.DynString(elf.DT_SONAME)
	if err != nil || !slices.Equal(soname, []string{driver.NVML}) {
		t.Errorf("the soname is %v, %v", soname, err)
	}
	needed, err := file.DynString(elf.DT_NEEDED)
	if err != nil || len(needed) != 0 {
		t.Errorf("it needs %v, %v", needed, err)
	}
	for _, tag := range []elf.DynTag{elf.DT_VERNEED, elf.DT_INIT, elf.DT_INIT_ARRAY, elf.DT_FINI, elf.DT_FINI_ARRAY, elf.DT_TEXTREL} {
		if values, err := file.DynValue(tag); err != nil || len(values) != 0 {
			t.Errorf("it has %v: %v, %v", tag, values, err)
		}
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_TLS {
			t.Error("it has thread-local storage")
		}
		if p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0 {
			t.Error("its stack is executable")
		}
	}
}

func TestMissingLibrary(t *testing.T) {
	_, err := driver.Library("libnothing.so.1")
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("the error is %v, want one that says make build", err)
	}
}
