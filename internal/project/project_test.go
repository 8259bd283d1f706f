package project

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cosplay/internal/sim"
)

const sevenWorkers = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 7
  target = "2060"
}
`

// newProject writes a configuration into a fresh folder.
func newProject(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, text)
	return dir
}

func write(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cosplay.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openProject(t testing.TB, dir string) *Project {
	t.Helper()
	p, _, diags, err := Open(Options{Dir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// makeSo plans and applies once, and returns the steps of the plan.
func makeSo(t testing.TB, dir string, goal Goal) string {
	t.Helper()
	p := openProject(t, dir)
	defer p.Close()
	ctx := context.Background()
	if err := p.Lock(ctx, "test", time.Second); err != nil {
		t.Fatal(err)
	}
	o, diags, err := p.Plan(ctx, Aim{Goal: goal})
	if err != nil {
		t.Fatal(err)
	}
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if o.Plan.Empty() {
		return ""
	}
	result, err := p.Apply(ctx, o.Plan, o.Prior, o.Live, ApplyOptions{Parallelism: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Failures {
		t.Fatal(f)
	}
	return o.Plan.String()
}

func hardware(t testing.TB, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, scratchDir, "sim", "lab", "host"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestApplyDestroyLeavesTheHostAsFound(t *testing.T) {
	dir := newProject(t, sevenWorkers)
	openProject(t, dir).open(openProject(t, dir).Intent.Hosts[0])
	before := hardware(t, dir)
	t.Log(makeSo(t, dir, AsConfigured))
	if again := makeSo(t, dir, AsConfigured); again != "" {
		t.Errorf("the second plan has steps:\n%s", again)
	}
	h, err := sim.Open(filepath.Join(dir, scratchDir, "sim", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	shown, _ := h.Show()
	if n := len(shown.GPUs[0].Slices); n != 7 {
		t.Errorf("%d slices, want 7", n)
	}
	t.Log(makeSo(t, dir, NothingLeft))
	if after := hardware(t, dir); after != before {
		now, _ := h.Show()
		t.Errorf("the host is not as it was: %+v", now)
	}
}
