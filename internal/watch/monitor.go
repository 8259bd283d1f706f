package watch

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cosplay/internal/metrics"
)

// Monitor has what others may ask about a loop while it runs. Its zero value is not usable.
type Monitor struct {
	interval time.Duration
	registry *prometheus.Registry
	cycles   *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	last     prometheus.Gauge

	mu     sync.Mutex
	fleet  metrics.Fleet
	known  bool
	ready  bool
	cycled time.Time
}

// NewMonitor makes a monitor of a loop with this interval.
func NewMonitor(interval time.Duration) *Monitor {
	results := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	}
	last := prometheus.GaugeOpts{Name: "cosplay_watch_last_cycle_timestamp_seconds", Help: "When the hosts were last read."}
	m := &Monitor{interval: interval, registry: prometheus.NewRegistry(), cycled: time.Now(),
		cycles:  results("cosplay_watch_cycles_total", "Readings of the hosts, by result."),
		repairs: results("cosplay_watch_repairs_total", "Repairs, by result."),
		last:    prometheus.NewGauge(last),
	}
	m.registry.MustRegister(m.cycles, m.repairs, m.last, metrics.NewCollector(m.latest))
	return m
}

func (m *Monitor) latest() (metrics.Fleet, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fleet, m.known
}

func (m *Monitor) observe(f metrics.Fleet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fleet, m.known = f, true
}

func (m *Monitor) cycle(failed bool) {
	m.cycles.WithLabelValues(result(failed)).Inc()
	m.last.SetToCurrentTime()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready, m.cycled = !failed, time.Now()
}

func (m *Monitor) repair(failed bool) { m.repairs.WithLabelValues(result(failed)).Inc() }

func result(failed bool) string {
	if failed {
		return "failure"
	}
	return "success"
}

// Gatherer has the metrics.
func (m *Monitor) Gatherer() prometheus.Gatherer { return m.registry }

// late is how long a cycle with a long repair may take before the loop counts as stuck.
const late = 30 * time.Minute

// Handler serves /healthz: the loop is not stuck; /readyz: the last cycle could read the hosts; and /metrics.
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(good func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			m.mu.Lock()
			is := good()
			m.mu.Unlock()
			if !is {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprintln(w, map[bool]string{true: "ok", false: "not ok"}[is])
		}
	}
	mux.HandleFunc("GET /healthz", answer(func() bool { return time.Since(m.cycled) < 2*m.interval+late }))
	mux.HandleFunc("GET /readyz", answer(func() bool { return m.ready }))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
