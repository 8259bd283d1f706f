package project_test

import (
	"path/filepath"
	"testing"

	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/sim"
)

func TestApplyDestroyLeavesTheHostAsFound(t *testing.T) {
	dir := projecttest.New(t, projecttest.SevenWorkers)
	p := projecttest.Open(t, dir)
	if _, err := p.Machine.Open(p.Intent.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	before := projecttest.Hardware(t, dir)
	t.Log(projecttest.Apply(t, dir, project.AsConfigured))
	if again := projecttest.Apply(t, dir, project.AsConfigured); again != "" {
		t.Errorf("the second plan has steps:\n%s", again)
	}
	h, err := sim.Open(filepath.Join(dir, machine.ScratchDir, "sim", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	shown, _ := h.Show()
	if n := len(shown.GPUs[0].Slices); n != 7 {
		t.Errorf("%d slices, want 7", n)
	}
	t.Log(projecttest.Apply(t, dir, project.NothingLeft))
	if after := projecttest.Hardware(t, dir); after != before {
		now, _ := h.Show()
		t.Errorf("the host is not as it was: %+v", now)
	}
}
