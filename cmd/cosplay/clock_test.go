package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

const lifetimes = `
host "lab" {
  simulate = "1 x h200"
  runtime  = "process"
}
session "a" {
  target = "2060"
  ttl    = "2h"
}
session "b" {
  target       = "2060"
  idle_timeout = "1h"
}
session "c" {
  target = "2060"
  ttl    = "3h"
}
`

// left is the time, in seconds, that each session has left.
func (p project) left() map[string]int {
	p.t.Helper()
	var shown public.Status
	if err := json.Unmarshal([]byte(p.run("status", "--json")), &shown); err != nil {
		p.t.Fatal(err)
	}
	left := map[string]int{}
	for _, s := range shown.Sessions {
		left[s.Name] = *s.TimeLeft
	}
	return left
}

// ahead moves the starts that the state has into the future, as a clock does that was ahead.
func (p project) ahead() {
	p.t.Helper()
	store := state.Store{Path: filepath.Join(p.dir, state.FileName)}
	prior, err := store.Load()
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range prior.Sessions {
		prior.Sessions[i].UpAt = resource.Moment(time.Now().Add(240 * time.Hour).Unix())
	}
	if _, err := store.Save(prior); err != nil {
		p.t.Fatal(err)
	}
}

// touch sets the times of the files of activity.
func (p project) touch(pattern string, at time.Time) {
	p.t.Helper()
	files, _ := filepath.Glob(filepath.Join(p.dir, ".cosplay/activity", pattern))
	for _, f := range files {
		if err := os.Chtimes(f, at, at); err != nil {
			p.t.Fatal(err)
		}
	}
	if len(files) == 0 {
		p.t.Fatal("no file is ", pattern)
	}
}

// TestClockAhead: a recorded time that lies in the future counts as the moment at which cosplay first sees that, for
// what status shows, for extend and for the end.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	p := newProject(t, lifetimes)
	p.run("apply", "--auto-approve")
	within := func(what string, left, most int) {
		t.Helper()
		if left > most || left < most-120 {
			t.Errorf("%s: %d s are left, want %d", what, left, most)
		}
	}
	p.ahead()
	for name, most := range map[string]int{"a": 7200, "b": 3600, "c": 10800} {
		within(name, p.left()[name], most)
	}
	p.touch("*-c.*", time.Now().Add(-time.Hour))
	within("seen an hour ago", p.left()["c"], 7200)
	if said := p.run("extend", "a", "1h"); !strings.Contains(said, "in 2h59m") && !strings.Contains(said, "in 3h") {
		t.Errorf("extend says %s", said)
	}

	// extend has saved the state, with the starts as cosplay saw them.
	if err := os.RemoveAll(filepath.Join(p.dir, ".cosplay/activity")); err != nil {
		t.Fatal(err)
	}
	within("recorded", p.left()["c"], 7200)

	// Activity by a clock that was ahead.
	p.run("status")
	if err := os.WriteFile(filepath.Join(p.dir, ".cosplay/activity", p.activity("b")), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.touch("*-b", time.Now().Add(240*time.Hour))
	within("active in the future", p.left()["b"], 3600)

	p.ahead()
	p.run("status")
	p.touch("*-[bc]*", time.Now().Add(-4*time.Hour))
	said := p.run("expire")
	if strings.Contains(said, "Ended session.a") || !strings.Contains(said, "Ended session.b") || !strings.Contains(said, "Ended session.c") {
		t.Errorf("expire says %s", said)
	}
}

// activity is the name of the file with the last activity of a session.
func (p project) activity(id string) string {
	p.t.Helper()
	prior, err := state.Store{Path: filepath.Join(p.dir, state.FileName)}.Load()
	if err == nil {
		err = os.MkdirAll(filepath.Join(p.dir, ".cosplay/activity"), 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return resource.ShortLineage(prior.Lineage) + "-" + id
}
