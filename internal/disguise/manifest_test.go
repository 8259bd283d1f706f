package disguise_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cosplay/internal/disguise"
)

// listed is a folder with a file, one of what is used, a link, and a driver.
func listed(t *testing.T) (dir, driver string) {
	t.Helper()
	dir, driver = t.TempDir(), filepath.Join(t.TempDir(), "libcuda.so.1")
	for path, content := range map[string]string{filepath.Join(dir, "figures"): "one", driver: "three"} {
		check(t, os.WriteFile(path, []byte(content), 0o600))
	}
	check(t, disguise.MakeUsage(filepath.Join(dir, "usage"), 1))
	check(t, os.Symlink(driver, filepath.Join(dir, "link")))
	check(t, disguise.WriteManifest(dir, "1.0", []string{"figures", "link"}, []string{"usage"}, []string{driver}))
	return dir, driver
}

// zero overwrites a file by zeros of the same length, as any program of a session can do with the usage file.
func zero(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	check(t, os.WriteFile(path, make([]byte, info.Size()), 0o666))
}

func glance(t *testing.T, version, dir string) disguise.Sight {
	t.Helper()
	inspector := disguise.Inspector{Version: version}
	got, err := inspector.Glance(dir)
	check(t, err)
	return got
}

func TestSeal(t *testing.T) {
	write := func(path, content string, keepTime bool) {
		t.Helper()
		info, err := os.Stat(path)
		check(t, err)
		check(t, os.WriteFile(path, []byte(content), 0o600))
		when := info.ModTime()
		if !keepTime {
			when = when.Add(time.Second)
		}
		check(t, os.Chtimes(path, when, when))
	}
	for name, c := range map[string]struct {
		change          func(dir, driver string)
		glance, examine string
	}{
		"nothing":            {func(string, string) {}, "", "[]"},
		"touched":            {func(dir, _ string) { write(dir+"/figures", "one", false) }, "", "[]"},
		"changed":            {func(dir, _ string) { write(dir+"/figures", "ONE", false) }, "figures was changed", "[figures was changed]"},
		"longer":             {func(dir, _ string) { write(dir+"/figures", "longer", true) }, "figures was changed", "[figures was changed]"},
		"changed and hidden": {func(dir, _ string) { write(dir+"/figures", "ONE", true) }, "", "[figures was changed]"},
		"removed":            {func(dir, _ string) { os.Remove(dir + "/figures") }, "figures is missing", "[figures is missing]"},
		"counted":            {func(dir, _ string) { cudaSession{dir: dir}.write(t, map[int64]uint64{atTotal + 16: mib}) }, "", "[]"},
		"nonsense":           {func(dir, _ string) { cudaSession{dir: dir}.write(t, map[int64]uint64{0: 0}) }, "usage is damaged", "[usage is damaged]"},
		"zeroed":             {func(dir, _ string) { zero(t, dir+"/usage") }, "usage is damaged", "[usage is damaged]"},
		"cut":                {func(dir, _ string) { write(dir+"/usage", "", false) }, "usage was changed", "[usage was changed]"},
		"closed":             {func(dir, _ string) { check(t, os.Chmod(dir+"/usage", 0o644)) }, "usage cannot be written to by all", "[usage cannot be written to by all]"},
		"linked elsewhere": {func(dir, driver string) {
			os.Remove(dir + "/link")
			check(t, os.Symlink(filepath.Dir(driver)+"/libCUDA.so.1", dir+"/link"))
		}, "link was changed", "[link was changed]"},
		"driver": {func(_, driver string) { write(driver, "THREE", false) }, "", "[DRIVER was changed]"},
	} {
		dir, driver := listed(t)
		c.change(dir, driver)
		if got := glance(t, "1.0", dir).Damaged; got != c.glance {
			t.Errorf("%s: a glance reports %q; want %q", name, got, c.glance)
		}
		all, err := disguise.Examine(dir)
		if got := strings.ReplaceAll(fmt.Sprint(all), driver, "DRIVER"); err != nil || got != c.examine {
			t.Errorf("%s: an examination reports %s, %v; want %s", name, got, err, c.examine)
		}
	}
}

// TestUseAtAGlance: a quick inspection reads what the session uses, unless the file is not sound.
func TestUseAtAGlance(t *testing.T) {
	dir, _ := listed(t)
	cudaSession{dir: dir}.write(t, map[int64]uint64{atTotal: 5 * mib})
	read, err := disguise.ReadUsage(dir + "/usage")
	check(t, err)
	if got := glance(t, "1.0", dir).Use; got == nil || got.NowBytes != 5*mib || !reflect.DeepEqual(*got, read.Use()) {
		t.Errorf("a glance reads %+v, want %+v", got, read.Use())
	}
	cudaSession{dir: dir}.write(t, map[int64]uint64{atTotal: 1 << 60})
	if got := glance(t, "1.0", dir); got.Use != nil || got.Damaged != "" {
		t.Errorf("of more memory than any GPU has, a glance reads %+v", got)
	}
}

// Without a manifest, a quick inspection finds no damage, and a thorough one reports that it is missing.
func TestNoSeal(t *testing.T) {
	dir := t.TempDir()
	if got := glance(t, "1.0", dir); got.Damaged != "" {
		t.Errorf("a glance reports %+v", got)
	}
	if _, err := disguise.Examine(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an examination reports %v", err)
	}
	if err := disguise.WriteManifest(dir, "1.0", []string{"figures"}, nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there is listed: %v", err)
	}
}

// The Python part is listed in a folder with any name; Python's cache is not.
func TestPythonPart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exp[1]")
	part := filepath.Join(dir, disguise.PythonDir)
	check(t, os.MkdirAll(filepath.Join(part, "__pycache__"), 0o755))
	for _, name := range []string{"sitecustomize.py", "target.json", "notes.txt", "__pycache__/a.py"} {
		check(t, os.WriteFile(filepath.Join(part, name), nil, 0o644))
	}
	files, err := disguise.PythonPart(dir)
	if want := "python/sitecustomize.py python/target.json"; err != nil || strings.Join(files, " ") != want {
		t.Errorf("%v, %v, want %s", files, err, want)
	}
}
