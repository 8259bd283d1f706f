package watch_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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
	// At once: a repair that meets a folder on its way out fails, and the next one waits.
	"session folder": func(t *testing.T, _ *sim.Host, dir string) {
		folder := filepath.Join(dir, machine.ScratchDir, "sessions", "default", "lab", "worker-"+strconv.Itoa(rand.IntN(3)))
		check(t, os.Rename(folder, filepath.Join(t.TempDir(), "removed")))
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
		Monitor: watch.NewMonitor(time.Second),
		Found:   func(project.Outlook) []public.Drift { return nil },
		Report: func(e public.WatchEvent) {
			if events++; e.Kind == watch.Failed {
				failed++
			}
		},
	}
	if code, _ := ask(loop.Monitor, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("before the first cycle it is ready: %d", code)
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
	served(t, loop.Monitor)
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

func ask(m *watch.Monitor, path string) (code int, body string) {
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// served checks what the monitor of a loop that runs says, with the parser of Prometheus.
func served(t *testing.T, m *watch.Monitor) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := ask(m, path); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := ask(m, "/status"); code != http.StatusNotFound {
		t.Errorf("the state is served: %d", code)
	}
	_, text := ask(m, "/metrics")
	for range 500 { // the last repair may be newer than the last reading
		if !strings.Contains(text, "cosplay_drift{") {
			break
		}
		time.Sleep(10 * time.Millisecond)
		_, text = ask(m, "/metrics")
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	check(t, err)
	for name, count := range map[string]int{
		"cosplay_session_up": 3, "cosplay_session_memory_limit_bytes": 3, "cosplay_gpu_sm_clock_hertz": 1, "cosplay_gpu_slots": 3,
		"cosplay_watch_cycles_total": 1, "cosplay_watch_repairs_total": 1, "cosplay_watch_last_cycle_timestamp_seconds": 1, "cosplay_build_info": 1,
	} {
		if got := len(families[name].GetMetric()); got < count {
			t.Errorf("%s has %d values, want %d, in\n%s", name, got, count, text)
		}
	}
	if got := families["cosplay_session_memory_limit_bytes"].GetMetric()[0].GetGauge().GetValue(); got != 6144<<20 {
		t.Errorf("a 2060 has %v bytes", got)
	}
	if problems, err := testutil.GatherAndLint(m.Gatherer()); err != nil || len(problems) > 0 {
		t.Errorf("names that Prometheus does not advise: %v %v", problems, err)
	}
}
