package project_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// TestSettled: without a journal no host is read; the journal of an interrupted run is
// folded into the state.
func TestSettled(t *testing.T) {
	dir := projecttest.New(t, projecttest.SevenWorkers)
	projecttest.Apply(t, dir, project.AsConfigured)
	p := projecttest.Open(t, dir)
	ctx := context.Background()
	if err := p.Lock(ctx, "state mv", time.Second); err != nil {
		t.Fatal(err)
	}
	prior, err := p.Settled(ctx)
	if err != nil || len(prior.Sessions) != 7 || len(p.Machine.Hosts()) != 0 {
		t.Fatalf("%d sessions, %d hosts asked, %v", len(prior.Sessions), len(p.Machine.Hosts()), err)
	}
	if run, err := p.Interrupted(); run != nil || err != nil {
		t.Errorf("no journal is %+v, %v", run, err)
	}

	// A run that forgot one session and was interrupted at the next.
	forget := func(i int) *plan.OpJSON { return &plan.OpJSON{Op: plan.Forget{Address: resource.Nth("worker", i)}} }
	begun := time.Now().Truncate(time.Second)
	j, err := durable.CreateJournal(p.Store.JournalPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []apply.Entry{
		{Event: apply.Begin, Time: begun, Lineage: prior.Lineage, Key: prior.Key, Serial: prior.Serial, BootIDs: prior.BootIDs},
		{Event: apply.Started, Step: "one", Op: forget(0)},
		{Event: apply.Done, Step: "one"},
		{Event: apply.Started, Step: "two", Op: forget(1)},
	} {
		if err := j.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	run, err := p.Interrupted()
	if err != nil || run == nil || !run.Begun.Equal(begun) || run.Done != 1 || run.Open != 1 {
		t.Errorf("%+v, %v", run, err)
	}
	if same, open, err := p.Remembered(); err != nil || !open || cmp.Diff(prior, same) != "" {
		t.Errorf("open %v, %v", open, err)
	}
	settled, err := p.Settled(ctx)
	if err != nil || len(settled.Sessions) != 6 || settled.Serial != prior.Serial+1 {
		t.Errorf("%d sessions, serial %d, %v", len(settled.Sessions), settled.Serial, err)
	}
	if _, err := os.Stat(p.Store.JournalPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal: %v", err)
	}
	if _, err := p.Store.Save(settled); err != nil {
		t.Error(err)
	}
}

// TestSettledOfDamage: a damaged state is reported also with a journal, and both files
// stay.
func TestSettledOfDamage(t *testing.T) {
	dir := projecttest.New(t, projecttest.SevenWorkers)
	projecttest.Apply(t, dir, project.AsConfigured)
	p := projecttest.Open(t, dir)
	for _, path := range []string{p.Store.Path, p.Store.JournalPath()} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := projecttest.Hardware(t, dir)
	if err := p.Lock(context.Background(), "state mv", time.Second); err != nil {
		t.Fatal(err)
	}
	var refusal *state.Refusal
	if _, err := p.Settled(context.Background()); !errors.As(err, &refusal) || refusal.Fault != state.Empty {
		t.Errorf("got %v", err)
	}
	for _, path := range []string{p.Store.Path, p.Store.JournalPath()} {
		if data, err := os.ReadFile(path); err != nil || len(data) != 0 {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	if projecttest.Hardware(t, dir) != before {
		t.Error("the host was changed")
	}
}
