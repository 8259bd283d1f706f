package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// What a call of kubelet does, as the metrics name it.
const (
	preparing = "prepare"
	removing  = "unprepare"
)

var (
	calls = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "cosplay_node_claim_duration_seconds", Help: "How long preparing or removing a claim takes, also one that fails.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
	}, []string{"call", "result"})
	repairs = promauto.NewCounter(prometheus.CounterOpts{
		Name: "cosplay_node_repairs_total", Help: "How often a claim's devices were not as they were prepared, and were repaired.",
	})
)

// counted counts a call that began at start.
func counted(call string, start time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	calls.WithLabelValues(call, result).Observe(time.Since(start).Seconds())
}

// Describe sends nothing: the metrics of Collect depend on the node.
func (d *driver) Describe(chan<- *prometheus.Desc) {}

// Collect sends what is known of the node's devices.
func (d *driver) Collect(out chan<- prometheus.Metric) {
	gauge := func(name, help string, value float64, labels prometheus.Labels) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, value)
	}
	if known, err := d.known(); err == nil {
		gauge("cosplay_node_claims", "Claims that are prepared, or were begun.", float64(len(known)), nil)
	}
	d.health.mutex.Lock()
	defer d.health.mutex.Unlock()
	gauge("cosplay_node_last_check_timestamp_seconds", "When the GPUs were last read.", float64(d.health.checked.Unix()), nil)
	gauge("cosplay_node_drifted", "Projects of claims that are not as they were prepared, and could not be repaired.", float64(len(d.health.broken)), nil)
	for _, g := range d.health.gpus {
		labels := prometheus.Labels{"gpu": g.UUID, "index": fmt.Sprint(g.Index)}
		up := 1.0
		if d.health.missed[g.UUID] >= lostAfter {
			up = 0
		}
		gauge("cosplay_node_gpu_up", "1 if the driver reports the GPU, 0 if not.", up, labels)
		gauge("cosplay_node_gpu_sm_clock_hertz", "Its SM clock.", float64(g.SMClockMHz)*1e6, labels)
	}
}

// serveHTTP serves /metrics and /healthz until ctx ends. The driver is healthy while its work proceeds and kubelet knows it:
// what a restart of it does not repair, such as GPUs that cannot be read, is in the metrics.
func (d *driver) serveHTTP(ctx context.Context, address string, registered func() error) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serving /metrics: %w. Fix: another --listen", err)
	}
	if err := prometheus.Register(d); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := errors.Join(d.proceeds(), registered()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return nil
}
