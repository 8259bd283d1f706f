package project_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/machine"
	"cosplay/internal/preflight"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
)

// TestRights: only root changes hardware; the user who owns a simulated host changes it.
// Without the lock the problem is a warning: another user may apply the plan.
func TestRights(t *testing.T) {
	dir := projecttest.New(t, projecttest.SevenWorkers)
	p := projecttest.Open(t, dir)
	ctx := context.Background()
	o, diags, err := p.Plan(ctx, project.Aim{})
	if err != nil || len(diags) > 0 {
		t.Fatal(diags, err)
	}
	rights := func(h *machine.Host) hcl.Diagnostics {
		f := &preflight.Flight{Intent: p.Intent, Plan: o.Plan, Prior: o.Prior, Live: o.Live}
		project.CheckRights(p, ctx, f, h)
		return f.Diagnostics()
	}
	if found := rights(p.Machine.Hosts()["lab"]); len(found) > 0 {
		t.Errorf("simulated: %v", found)
	}
	t.Setenv("PATH", t.TempDir()) // without sudo
	const library = "/usr/lib/libnvidia-ml.so.1"
	c := p.Intent.Hosts[0]
	c.Simulate, c.Manage.Slices = "", false
	hardware := &machine.Host{Config: c, Library: library, Rooted: true, Agent: agent.New(agent.Options{Library: library, Privileged: true, User: "ann"})}
	found := rights(hardware)
	if len(found) != 1 || found[0].Severity != hcl.DiagWarning || !strings.Contains(found[0].Detail, "ann ALL=(root) NOPASSWD:") || found[0].Subject.Start.Line != 2 {
		t.Errorf("hardware, plan only: %v", found)
	}
	if err := p.Lock(ctx, "test", time.Second); err != nil {
		t.Fatal(err)
	}
	if found := rights(hardware); !found.HasErrors() {
		t.Errorf("hardware, apply: %v", found)
	}
}

// TestRuntimeChanged: a saved plan with containers is refused if sessions run as processes
// now.
func TestRuntimeChanged(t *testing.T) {
	p := projecttest.Open(t, projecttest.New(t, projecttest.SevenWorkers))
	ctx := context.Background()
	o, diags, err := p.Plan(ctx, project.Aim{})
	if err != nil || len(diags) > 0 {
		t.Fatal(diags, err)
	}
	for _, c := range o.Plan.Diff.Sessions {
		c.After.Runtime = "docker"
	}
	diags, err = p.Check(ctx, o.Plan, o.Prior, o.Live)
	if err != nil || len(diags) != 1 || !diags.HasErrors() || !strings.Contains(diags[0].Detail, "cosplay plan") {
		t.Errorf("%v, %v", diags, err)
	}
}

// TestLedgerNotWritable: if the ledger cannot be written, apply changes nothing.
func TestLedgerNotWritable(t *testing.T) {
	dir := projecttest.New(t, projecttest.SevenWorkers)
	p := projecttest.Open(t, dir)
	ctx := context.Background()
	if _, diags, err := p.Plan(ctx, project.Aim{Goal: project.NothingLeft}); err != nil || len(diags) > 0 {
		t.Fatal(diags, err)
	}
	if err := os.Symlink("nowhere", filepath.Join(p.Machine.SimDir("lab"), "ledger")); err != nil {
		t.Fatal(err)
	}
	before := projecttest.Hardware(t, dir)
	if _, diags, err := p.Plan(ctx, project.Aim{}); err != nil || diags.HasErrors() || len(diags) != 1 {
		t.Errorf("plan only: %v, %v", diags, err)
	}
	if err := p.Lock(ctx, "test", time.Second); err != nil {
		t.Fatal(err)
	}
	if _, diags, err := p.Plan(ctx, project.Aim{}); err != nil || !diags.HasErrors() || !strings.Contains(diags[0].Summary, "ledger") {
		t.Errorf("apply: %v, %v", diags, err)
	}
	if projecttest.Hardware(t, dir) != before {
		t.Error("the host was changed")
	}
}
