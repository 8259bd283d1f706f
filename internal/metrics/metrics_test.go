package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// everything is a fleet with all that there are metrics for: one session that runs and one whose container is missing.
func everything() Fleet {
	at, gone := resource.Address{Name: "worker"}, resource.Address{Name: "gone"}
	session := func(a resource.Address) resource.PriorSession {
		s := resource.PriorSession{Session: resource.Session{Address: a, ID: a.Name, Runtime: "docker"}, UpAt: 1_800_000_000}
		s.Target.Key, s.Target.MemoryMiB, s.Slice.Host, s.Slice.GPU = "2060", 6144, "local", "GPU-0"
		return s
	}
	gpu := resource.GPU{Host: "local", UUID: "GPU-0", MIG: true, SMClockMHz: 1575, PowerMW: 700_000, DrawMW: 90_000, TemperatureC: 40, MemoryUsedMiB: 1024, UtilizationPercent: new(7)}
	gpu.Model.MemorySlices = 8
	slice := func(profile string, start, size int, uuid string) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{Host: "local", GPU: "GPU-0", Profile: profile, Start: start, Size: size}, Handle: resource.Handle{GPUInstance: start + 7, UUID: uuid}}
	}
	own := slice("1g.18gb", 0, 1, "MIG-own")
	gpu.Slices = []resource.LiveSlice{own, slice("2g.35gb", 2, 2, "MIG-theirs")}
	worker := session(at)
	worker.Slice, worker.Handle = own.Slice, &own.Handle
	return Fleet{
		Version: "1", Prior: resource.Prior{Sessions: []resource.PriorSession{worker, session(gone)}},
		Live:  resource.Live{Hosts: []resource.Host{{Name: "local", GPUs: []resource.GPU{gpu}, Bodies: []resource.Body{{Session: "worker", Host: "local", Runtime: "docker", State: resource.Running}}}}},
		Drift: []diff.Drift{{Class: diff.BodyMissing, Host: "local", GPU: "GPU-0", Session: &gone}},
		Used:  map[resource.Address]resource.Use{at: {NowBytes: 3 << 30, PeakMiB: 4096, OutOfMemory: 2}},
		Ends:  map[resource.Address]resource.End{at: {At: 1_800_003_600}},
	}
}

// TestFile: a file of metrics is what Prometheus' parser and its advice on names accept, and has what the documents list.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cosplay.prom")
	if err := everything().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(file)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string, labels ...string) float64 {
		for _, m := range families[name].GetMetric() {
			var has []string
			for _, l := range m.GetLabel() {
				has = append(has, l.GetValue())
			}
			if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		t.Errorf("no %s of %v", name, labels)
		return 0
	}
	for _, c := range []struct {
		got, want float64
		what      string
	}{
		{of("cosplay_session_memory_used_bytes", "session.worker"), 3 << 30, "memory in use"},
		{of("cosplay_session_memory_limit_bytes", "session.gone"), 6 << 30, "limit"},
		{of("cosplay_session_out_of_memory_total", "session.worker"), 2, "refused requests"},
		{of("cosplay_session_state", "session.worker", "running"), 1, "running"},
		{of("cosplay_session_state", "session.worker", "missing"), 0, "not missing"},
		{of("cosplay_session_state", "session.gone", "missing"), 1, "missing"},
		{of("cosplay_session_up", "session.gone"), 0, "not up"},
		{of("cosplay_session_expiry_timestamp_seconds", "session.worker"), 1_800_003_600, "end"},
		{of("cosplay_gpu_sm_clock_hertz"), 1575e6, "clock"},
		{of("cosplay_gpu_slots", "project"), 1, "slots of the project"},
		{of("cosplay_gpu_slots", "others"), 2, "slots of others"},
		{of("cosplay_gpu_slots", "free"), 5, "free slots"},
		{of("cosplay_drift", "session.gone"), 1, "drift"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	page, err := os.ReadFile("../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, written []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(cosplay_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !strings.HasPrefix(row[1], "cosplay_watch_") {
			listed = append(listed, row[1])
		}
	}
	for name := range families {
		written = append(written, name)
	}
	slices.Sort(listed)
	slices.Sort(written)
	if !slices.Equal(listed, written) {
		t.Errorf("docs/watch.md lists\n%q, written are\n%q", listed, written)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(func() (Fleet, bool) { return everything(), true }))
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("names that Prometheus does not advise: %v %v", problems, err)
	}
}
