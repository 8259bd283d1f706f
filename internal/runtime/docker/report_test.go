package docker

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/disguise/verify"
	"cosplay/internal/resource"
)

// TestReport: programs of a container can write to the session's report, and to no file beside it. A container of an
// older cosplay, which has none, counts as sound.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	made := w.prepare(t)
	prior := resource.PriorSession{Session: w.s, Body: &made, Handle: &w.given}
	prior.Compute = "cpu"
	for range w.Reports([]string{w.s.ID}) {
		t.Error("there is a report")
	}
	if altered, err := w.Altered(t.Context(), prior); err != nil || altered[verify.MountsCheck] != "" {
		t.Errorf("an older container: %v, %v", altered, err)
	}
	w.s.Compute = "cpu"
	w.prepare(t)
	text := `{"v":1,"id":"a","pid":7,"name":"train.py","start":1,"at":2,"launches":3}`
	slot := fmt.Sprintf("%-4096s", fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(text)), text))
	check(t, os.WriteFile(filepath.Join(w.s.Workspace, "slots"), []byte(strings.Repeat(" ", 4096)+slot), 0o644))
	_, failed, code := w.exec(t, nil, "sh", "-c", "cat slots > /run/cosplay/report && touch /run/cosplay/other")
	if !strings.Contains(failed, "Read-only file system") || strings.Contains(failed, "cosplay/report") || code == 0 {
		t.Errorf("it prints %q, and exits with %d", failed, code)
	}
	r, reports := resource.Report{}, 0
	for i, report := range w.Reports([]string{"nosuch", w.s.ID}) {
		r, reports = report, reports+i
	}
	if reports != 1 || len(r.Programs) != 1 || r.Programs[0].Name != "train.py" || r.Total.Launches != 3 {
		t.Errorf("%d: %+v", reports, r)
	}
	if altered, err := w.Altered(t.Context(), prior); err != nil || altered[verify.MountsCheck] != "" {
		t.Errorf("%v, %v", altered, err)
	}
}
