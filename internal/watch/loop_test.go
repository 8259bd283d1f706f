package watch_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/projecttest"
	"cosplay/internal/public"
	"cosplay/internal/sim"
	"cosplay/internal/watch"
)

func TestMain(m *testing.M) { projecttest.Main(m) }

// disturbances are what others do to a fleet on one GPU.
var disturbances = map[string]func(t *testing.T, host *sim.Host, dir string){
	"power limit": func(t *testing.T, host *sim.Host, _ string) { check(t, host.Set(0, "power-limit", "510")) },
	"persistence": func(t *testing.T, host *sim.Host, _ string) { check(t, host.Set(0, "persistence", "off")) },
	"reboot":      func(t *testing.T, host *sim.Host, _ string) { check(t, host.Reboot()) },
	"lost": func(t *testing.T, host *sim.Host, _ string) {
		check(t, host.Set(0, "lost", "on"))
		time.Sleep(5 * time.Millisecond)
		check(t, host.Set(0, "lost", "off"))
	},
	"session folder": func(t *testing.T, _ *sim.Host, dir string) {
		check(t, os.RemoveAll(filepath.Join(dir, machine.ScratchDir, "sessions", "default", "lab", "worker-"+strconv.Itoa(rand.IntN(3)))))
	},
}

// TestConverges: whatever is disturbed while the loop runs, the fleet comes back to what was applied, and the loop does
// not grow. COSPLAY_ROUNDS sets the number of disturbances.
func TestConverges(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("COSPLAY_ROUNDS"))
	if err != nil {
		rounds = 30
	}
	dir := projecttest.New(t, `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 3
  target = "2060"
}
`)
	projecttest.Apply(t, dir, project.AsConfigured)
	host, err := sim.Open(filepath.Join(dir, machine.ScratchDir, "sim", "lab"))
	check(t, err)
	repairs, err := watch.ParseRepairs([]string{watch.RepairAll})
	check(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	var events, failed int
	loop := watch.Loop{
		Open: func() (*watch.Opened, error) {
			p, _, diags, err := project.Open(project.Options{Dir: dir, Version: "test"})
			if err == nil && diags.HasErrors() {
				err = diags
			}
			return &watch.Opened{Project: p}, err
		},
		Policy: watch.Policy{Repairs: repairs, PerHour: 1 << 30}, Interval: 5 * time.Millisecond,
		Found: func(project.Outlook) []public.Drift { return nil },
		Report: func(e public.WatchEvent) {
			if events++; e.Kind == watch.Failed {
				failed++
			}
		},
	}
	go func() {
		_, err := loop.Run(ctx)
		ended <- err
	}()
	names := []string{"power limit", "persistence", "reboot", "lost", "session folder"}
	done := map[string]int{}
	var early usage
	for round := range rounds {
		name := names[rand.IntN(len(names))]
		done[name]++
		disturbances[name](t, host, dir)
		if !comesBack(t, dir) {
			t.Fatalf("round %d: the fleet does not come back after %s", round, name)
		}
		if round == rounds/3 {
			early = used()
		}
	}
	late := used()
	stop()
	check(t, <-ended)
	t.Logf("%d disturbances %v, %d events, %d failures; after a third %+v, at the end %+v", rounds, done, events, failed, early, late)
	if late.goroutines > early.goroutines+8 || late.descriptors > early.descriptors+12 || late.heapMiB > 2*early.heapMiB+16 {
		t.Errorf("the loop grows: after a third %+v, at the end %+v", early, late)
	}
}

// comesBack waits until a plan is empty.
func comesBack(t *testing.T, dir string) bool {
	for range 500 {
		p, _, diags, err := project.Open(project.Options{Dir: dir, Version: "test"})
		if err != nil || diags.HasErrors() {
			t.Fatal(err, diags)
		}
		o, diags, err := p.Plan(context.Background(), project.Aim{})
		clean := err == nil && !diags.HasErrors() && o.Plan.Empty() && !o.Plan.Diff.NotAsApplied()
		check(t, p.Close())
		if clean {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

type usage struct{ goroutines, descriptors, heapMiB int }

func used() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd")
	return usage{runtime.NumGoroutine(), len(open), int(m.HeapAlloc >> 20)}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
