package disguise_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/disguise"
	"cosplay/internal/resource"
)

func emulated() resource.Session { return resource.Session{Compute: "cpu"} }

// The report keeps the last programs and the sums of all, also if a writer is killed between two writes.
func TestReportOfManyPrograms(t *testing.T) {
	for _, programs := range []int{3, 32, 50} {
		dir := t.TempDir()
		path := filepath.Join(dir, disguise.ReportFile)
		check(t, disguise.MakeReport(path, emulated()))
		out, err := exec.Command(pythons(t)[0], "testdata/report_test.py", path, fmt.Sprint(programs)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r, err := disguise.ReadReport(dir)
		check(t, err)
		listed := min(programs, 32)
		if programs >= 32 {
			listed-- // that of the killed writer
		}
		if len(r.Programs) != listed || r.Earlier != programs-listed {
			t.Errorf("of %d programs %d are listed, and %d earlier ones", programs, len(r.Programs), r.Earlier)
		}
		total := resource.Work{Launches: programs + 4, FLOPs: float64(programs) * 1e15, ToDevice: programs * 1000}
		reduced := resource.Collective{Count: programs, Bytes: programs * 8}
		if got := r.Total; got.Launches != total.Launches || got.FLOPs != total.FLOPs || got.ToDevice != total.ToDevice || got.Collectives["all_reduce"] != reduced {
			t.Errorf("%d programs did %+v", programs, got)
		}
		first, last := r.Programs[0], r.Programs[listed-1]
		if first.End != 0 || first.Launches != 5 || first.Start != 1000 {
			t.Errorf("the one that runs: %+v", first)
		}
		if last.End == 0 || last.Start != 999+float64(programs) || last.Devices[0] != (resource.DevicePeak{Index: 0, Allocated: 512, Reserved: 2 << 20}) {
			t.Errorf("the last one: %+v", last)
		}
	}
}

// slot is the slot of a report with a JSON text.
func slot(text string) string {
	return fmt.Sprintf("%-4096s", fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(content), 0o644))
}

const sound = `{"v":1,"id":"a","pid":7,"name":"train.py","start":1,"at":2,"launches":3}`

// Programs of a session can write anything into its report: what is not sound counts as empty, and texts cannot
// control a terminal.
func TestReportIsNotBelieved(t *testing.T) {
	changed := func(from, to string) string { return slot(strings.Replace(sound, from, to, 1)) }
	for name, content := range map[string]string{
		"another sum":        strings.Replace(slot(sound), "train", "brain", 1),
		"no JSON":            slot("{"),
		"a number":           slot("1"),
		"another version":    changed(`"v":1`, `"v":2`),
		"a negative count":   changed(`"launches":3`, `"launches":-3`),
		"a huge count":       changed(`"launches":3`, `"launches":9223372036854775807`),
		"more than a number": changed(`"launches":3`, `"launches":1e99`),
		"a huge flops":       changed(`"launches":3`, `"flops":1e31`),
		"a text for a count": changed(`"launches":3`, `"launches":"3"`),
		"a negative time":    changed(`"start":1`, `"start":-1`),
		"an endless time":    changed(`"start":1`, `"start":1e300`),
		"an unknown kind":    changed(`"launches":3`, `"collectives":{"\u001b[2J":[1,2]}`),
		"a negative kind":    changed(`"launches":3`, `"collectives":{"all_reduce":[1,-2]}`),
		"a device too many":  changed(`"launches":3`, `"devices":{"4096":[1,2]}`),
		"a device's name":    changed(`"launches":3`, `"devices":{"../x":[1,2]}`),
		"an unknown use":     changed(`"launches":3`, `"memory":{"kinds":{"x":1}}`),
		"a negative use":     changed(`"launches":3`, `"memory":{"kinds":{"inputs":-1}}`),
		"a negative line":    changed(`"launches":3`, `"error":{"lines":[["a.py",1,"x","inputs",-1]]}`),
		"a line's kind":      changed(`"launches":3`, `"memory":{"lines":[["a.py",1,"x","y",1]]}`),
		"an unknown stage":   changed(`"launches":3`, `"memory":{"stages":{"x":1}}`),
		"negative work":      changed(`"launches":3`, `"step":{"count":1,"least":{"fp32":-1}}`),
		"a short slot":       slot(sound)[:4000],
		"nothing":            "",
		"zeros":              strings.Repeat("\x00", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, disguise.ReportFile), slot("{}")+content)
			r, err := disguise.ReadReport(dir)
			if err != nil || !r.Empty() || r.Total.Launches != 0 {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
	t.Run("texts", func(t *testing.T) {
		dir := t.TempDir()
		hostile := "\x1b]0;x\a\u202e\nää"
		long := hostile + strings.Repeat("ä", 1000)
		text, err := json.Marshal(map[string]any{"v": 1, "id": "a", "name": hostile, "failed": []string{hostile, long}, "out_of_memory": []any{2, hostile}})
		check(t, err)
		write(t, filepath.Join(dir, disguise.ReportFile), slot("{}")+slot(string(text)))
		r, err := disguise.ReadReport(dir)
		check(t, err)
		p := r.Programs[0]
		for _, shown := range []string{p.Name, p.Failure, p.FailureText, p.Refusal} {
			if strings.ContainsAny(shown, "\x1b\a\n\u202e") || len([]rune(shown)) > 643 || !strings.Contains(shown, "ää") {
				t.Errorf("%q", shown)
			}
		}
		if p.OutOfMemory != 2 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("size", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, disguise.ReportFile), strings.Repeat(slot(sound), 1000))
		if r, err := disguise.ReadReport(dir); err != nil || len(r.Programs) > 32 {
			t.Errorf("%v: %d programs", err, len(r.Programs))
		}
	})
}

// A report that programs replaced is not followed, and MakeReport makes a new one.
func TestReportIsAFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, slot("{}")+slot(sound))
	check(t, os.Chmod(secret, 0o600))
	for name, replace := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(secret, path) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, disguise.ReportFile)
			check(t, replace(path))
			if r, err := disguise.ReadReport(dir); err == nil {
				t.Errorf("it is read: %+v", r)
			}
			check(t, disguise.MakeReport(path, emulated()))
			info, err := os.Lstat(path)
			check(t, err)
			if info.Mode() != 0o666 || info.Size() != 0 {
				t.Errorf("it is %v of %d bytes", info.Mode(), info.Size())
			}
			if r, err := disguise.ReadReport(dir); err != nil || !r.Empty() {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
	if info, err := os.Stat(secret); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file behind the link: %v, %v", err, info.Mode())
	}
	dir := t.TempDir()
	check(t, disguise.MakeReport(filepath.Join(dir, disguise.ReportFile), resource.Session{Compute: "none"}))
	if _, err := disguise.ReadReport(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a session whose programs do not report: %v", err)
	}
}
