package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

const timeSliceTable = `+-------------------------------------+
| GPU compute policies:               |
| GPU     Name           Value        |
|=====================================|
| 0       Timeslice      Medium       |
+-------------------------------------+
`

// uninitialized is what NVIDIA's program prints on a simulated host.
const uninitialized = `
+-------------------------------------+
| GPU compute policies:               |
| GPU     Name           Value        |
|=====================================|
Failed to get compute policies for GPU 0 : Uninitialized
Failed to retrieve compute policies for requested devices : Uninitialized
`

func TestParseTimeSlice(t *testing.T) {
	for value, name := range []string{"Default", "Short", "Medium", "Long"} {
		got, err := parseTimeSlice(strings.Replace(timeSliceTable, "Medium", name, 1))
		if got != value || err != nil {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	row := "| 1       Timeslice      Short        |\n"
	for name, table := range map[string]string{
		"nothing":         "",
		"no row":          strings.Replace(timeSliceTable, "Timeslice", "Other", 1),
		"another value":   strings.Replace(timeSliceTable, "Medium", "Huge", 1),
		"several GPUs":    timeSliceTable + row,
		"a longer row":    strings.Replace(timeSliceTable, "Medium", "Medium ms", 1),
		"another message": uninitialized,
	} {
		if got, err := parseTimeSlice(table); err == nil {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// An agent of root runs no program that another user could have placed or can change.
func TestFindSMI(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(own, []byte("#!/bin/sh\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got, err := findSMI(false, nil); got != own || err != nil {
		t.Errorf("in PATH: %q, %v", got, err)
	}
	none := filepath.Join(dir, "none")
	for name, paths := range map[string][]string{"only in PATH": {none}, "writable": {own}, "writable, and none": {none, own}, "a folder": {"/usr"}} {
		if got, err := findSMI(true, paths); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := findSMI(true, []string{none, "/bin/sh"}); got != shell || err != nil {
		t.Errorf("root's: %q, %v", got, err)
	}
	for _, path := range smiPaths {
		if !filepath.IsAbs(path) {
			t.Errorf("%s is not absolute", path)
		}
	}
	t.Setenv("PATH", "")
	if _, err := findSMI(false, nil); err == nil {
		t.Error("found without PATH")
	}
}

func TestSMIEnvironment(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "/other")
	t.Setenv("MARK", "1")
	if got := smiEnvironment(true, systemLibrary); !slices.Equal(got, []string{"LC_ALL=C"}) {
		t.Errorf("of root: %q", got)
	}
	if got := smiEnvironment(true, "/lib/x/libnvidia-ml.so.1"); !slices.Equal(got, []string{"LD_LIBRARY_PATH=/lib/x", "LC_ALL=C"}) {
		t.Errorf("of root with a library: %q", got)
	}
	got := smiEnvironment(false, "/lib/x/libnvidia-ml.so.1")
	if !slices.Contains(got, "MARK=1") || !slices.Contains(got, "LD_LIBRARY_PATH=/lib/x") || slices.Contains(got, "LD_LIBRARY_PATH=/other") {
		t.Errorf("with a library: %q", got)
	}
	if got := smiEnvironment(false, systemLibrary); !slices.Contains(got, "LD_LIBRARY_PATH=/other") {
		t.Errorf("with the system's: %q", got)
	}
}

// smi installs a stand-in for nvidia-smi and returns a GPU of a library that runs it.
func smi(t *testing.T, script string) device {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return device{lib: &nvmlLibrary{path: systemLibrary, timeSlices: true}, uuid: "GPU-1", name: "GPU 0"}
}

func TestTimeSliceFails(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   nvml.Return
	}{
		"not supported":     {"echo 'Failed to set timeslice policy for GPU 0 : Not Supported'; exit 255", nvml.ERROR_NOT_SUPPORTED},
		"with status 0":     {"echo 'Failed to set timeslice policy for GPU 0 : Not Supported'", nvml.ERROR_NOT_SUPPORTED},
		"not root":          {"echo 'Insufficient Permissions' >&2; exit 4", nvml.ERROR_NO_PERMISSION},
		"not initialized":   {"cat <<E\n" + uninitialized + "E\nexit 255", nvml.ERROR_UNKNOWN},
		"without a message": {"exit 1", nvml.ERROR_UNKNOWN},
	} {
		d := smi(t, c.script)
		for _, err := range []error{d.setTimeSlice(1), d.readTimeSlice(&resource.GPU{})} {
			lacks, is := degradation(err)
			if !isCode(err, c.code) || !is || lacks.Feature != resource.FeatureTimeSlice {
				t.Errorf("%s: %v, %v", name, err, lacks)
			}
		}
	}
	if got := outsideTable(uninitialized); got != "Failed to get compute policies for GPU 0 : Uninitialized" {
		t.Errorf("the message is %q", got)
	}
	d := smi(t, "case $4 in -l) printf '| 0 Timeslice Default |\\n';; esac")
	if err := d.setTimeSlice(1); err == nil || !strings.Contains(err.Error(), "reported success, but the time slice is default") {
		t.Errorf("a value that is not set: %v", err)
	}
}

// A program that hangs delays a request once, and what it may have set is not taken for unchanged.
func TestTimeSliceHangs(t *testing.T) {
	smiPatience = 50 * time.Millisecond
	t.Cleanup(func() { smiPatience = 4 * time.Second })
	d := smi(t, "echo x >>\"$0.calls\"; exec sleep 60")
	for range 3 {
		if err := d.setTimeSlice(1); !isCode(err, nvml.ERROR_TIMEOUT) || unavailable(err) {
			t.Errorf("%v", err)
		}
	}
	calls, _ := filepath.Glob(filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "*.calls"))
	if text, _ := os.ReadFile(strings.Join(calls, "")); string(text) != "x\n" {
		t.Errorf("called: %q", text)
	}
}

// nvidia-smi runs only for requests that need it, and for GPUs whose ledger has the setting.
func TestReadsTimeSlices(t *testing.T) {
	set, other := resource.TimeSlice, resource.PowerLimit
	for name, c := range map[string]struct {
		r    request
		want bool
	}{
		"read": {request{Op: opRead}, false}, "read with them": {request{Op: opRead, TimeSlices: true}, true},
		"set": {request{Op: opSet, Setting: &set}, true}, "another": {request{Op: opSet, Setting: &other}, false},
		"take":           {request{Op: opTake, Take: &ledger.Take{}}, false},
		"take with them": {request{Op: opTake, Take: &ledger.Take{Baseline: resource.Settings{}.With(set, 1)}}, true},
	} {
		l := &nvmlLibrary{}
		if l.readsTimeSlices(c.r); l.timeSlices != c.want {
			t.Errorf("%s: %v", name, l.timeSlices)
		}
	}
	d := smi(t, "echo '| 0 Timeslice Long |'")
	d.lib.timeSlices = false
	d.lib.book = ledger.Book{Dir: t.TempDir()}
	var g resource.GPU
	if err := d.readTimeSlice(&g); err != nil || g.TimeSlice != nil || !g.Without(resource.FeatureTimeSlice) {
		t.Errorf("not asked for: %v, %v", g.TimeSlice, err)
	}
}
