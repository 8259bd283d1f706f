package project_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/resource"
)

// TestFeed: a feed reads all at first and after a change of the state, and the figures alone in between.
func TestFeed(t *testing.T) {
	dir := t.TempDir()
	write := func(count string) {
		projecttest.Write(t, dir, "host \"lab\" { simulate = \"1 x h200\" }\nsession \"worker\" {\n  count  = "+count+"\n  target = \"2060\"\n}\n")
		projecttest.Apply(t, dir, project.AsConfigured)
	}
	write("2")
	p := projecttest.Open(t, dir)
	t.Cleanup(func() { _ = p.Close() })
	feed := project.Feed{Project: p}
	var last project.Reading
	var allAt time.Time
	next := func(want int, full bool) {
		t.Helper()
		begun := time.Now()
		r, err := feed.Next(context.Background())
		last = r
		if err != nil {
			t.Fatal(err)
		}
		if before, again := allAt, r.AllAt != allAt; again != full || r.GPUsAt.Before(r.AllAt) || full && r.AllAt.Before(begun) {
			t.Errorf("full %v: all was read at %s, the GPUs at %s; before: %s", full, r.AllAt, r.GPUsAt, before)
		}
		allAt = r.AllAt
		if r.Full != full || len(r.Prior.Sessions) != want || len(r.Live.Hosts[0].Bodies) != want || len(r.Used) != want {
			t.Errorf("full %v: %d sessions, %d bodies, %d counted; want %v, %d", r.Full, len(r.Prior.Sessions), len(r.Live.Hosts[0].Bodies), len(r.Used), full, want)
		}
		if g, there := r.Live.GPU("lab", r.Live.Hosts[0].GPUs[0].UUID); !there || g.Host != "lab" || len(g.Slices) != want {
			t.Errorf("the GPU %+v", g)
		}
	}
	changed := func(want int) {
		t.Helper()
		if len(last.Changed) != want {
			t.Errorf("%v have changed, want %d", last.Changed, want)
		}
	}
	next(2, true)
	changed(2)
	next(2, false)
	changed(0)
	write("3")
	next(3, true)
	changed(1)
	next(3, false)
	write("1")
	next(1, true)
	changed(2)
	write("3")
	next(3, true)
	all, err := filepath.Glob(filepath.Join(dir, ".cosplay/sessions/default/lab/worker-1/usage"))
	if err != nil || len(all) != 1 {
		t.Fatalf("the account of a session: %v, %v", all, err)
	}
	const total, atPeak, counted = 24, 40, 5 << 20
	account, err := os.OpenFile(all[0], os.O_WRONLY, 0)
	if err == nil {
		for _, at := range []int64{total, atPeak} {
			_, err = account.WriteAt(binary.NativeEndian.AppendUint64(nil, counted), at)
		}
		_ = account.Close()
	}
	before := last.Used
	if r, err2 := feed.Next(context.Background()); err != nil || err2 != nil || r.Full || r.Used[resource.Nth("worker", 1)].PeakMiB != 5 || r.Used[resource.Nth("worker", 1)].NowBytes != counted || !slices.Equal(r.Changed, []resource.Address{resource.Nth("worker", 1)}) {
		t.Errorf("a changed account: %v, %v, full %v, %+v, changed %v", err, err2, r.Full, r.Used, r.Changed)
	}
	if before[resource.Nth("worker", 1)].PeakMiB != 0 {
		t.Errorf("the reading before has changed: %+v", before)
	}
	feed.Project.Machine.Rest()
	next(3, false)
	if r, err := feed.Next(context.Background()); err != nil || r.Used[resource.Nth("worker", 2)].NowBytes != 0 {
		t.Errorf("%v, %+v", err, r.Used)
	}
	write("2")
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if r, err := feed.Next(stopped); err == nil {
		t.Errorf("a reading that was stopped: %+v", r)
	}
	next(2, true)
	if use := last.Used[resource.Nth("worker", 1)]; use.NowBytes != 0 || use.PeakMiB != 5 {
		t.Errorf("what a program had that no GPU lists: %+v", use)
	}
}
