// Package metrics describes a fleet in the terms of Prometheus: base units, a name with its unit, labels that stay. No
// label has a value of env.
package metrics

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Fleet is what is known of a fleet at one moment.
type Fleet struct {
	Version string // of cosplay
	Prior   resource.Prior
	Live    resource.Live
	Drift   []diff.Drift
	Used    map[resource.Address]resource.Use
	Ends    map[resource.Address]resource.End
}

const mib = 1 << 20

// missing is the state of a session without its container or folder.
const missing = "missing"

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// WriteFile writes the metrics for the textfile collector of node_exporter: a reader sees the old file or the new one.
func (f Fleet) WriteFile(path string) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(NewCollector(func() (Fleet, bool) { return f, true })); err != nil {
		return err
	}
	if err := prometheus.WriteToTextfile(path, registry); err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	return nil
}

// Collector is a fleet for a registry, as it was last observed. It is safe for concurrent use.
type Collector struct{ latest func() (Fleet, bool) }

// NewCollector asks latest for the fleet at each scrape; false means that nothing was observed yet.
func NewCollector(latest func() (Fleet, bool)) Collector { return Collector{latest} }

// Describe sends nothing: which metrics there are depends on what the driver and the sessions offer.
func (c Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of the fleet.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	f, known := c.latest()
	if !known {
		return
	}
	s := sender{out}
	s.gauge("cosplay_build_info", "The version of cosplay, as a label; the value is 1.", 1, prometheus.Labels{"version": f.Version})
	for _, session := range f.Prior.Sessions {
		f.session(s, session)
	}
	own := f.own()
	for _, h := range f.Live.Hosts {
		for i := range h.GPUs {
			f.gpu(s, &h.GPUs[i], own)
		}
	}
	type place struct{ host, gpu, session, class string }
	found := map[place]float64{}
	for _, d := range f.Drift {
		at := place{host: d.Host, gpu: d.GPU, class: string(d.Class)}
		if d.Session != nil {
			at.session = d.Session.String()
		}
		if !d.Informational {
			found[at]++
		}
	}
	for at, n := range found {
		labels := prometheus.Labels{"host": at.host, "gpu": at.gpu, "session": at.session, "class": at.class}
		s.gauge("cosplay_drift", "How much drift of a class is found now.", n, labels)
	}
}

func (f Fleet) session(s sender, session resource.PriorSession) {
	labels := prometheus.Labels{"host": session.Slice.Host, "gpu": session.Slice.GPU, "session": session.Address.String(), "target": session.Target.Key}
	if !f.Live.Unread(session.Slice.Host) {
		f.state(s, session, labels)
	}
	if session.UpAt != 0 {
		s.gauge("cosplay_session_start_timestamp_seconds", "When the session came up.", float64(session.UpAt), labels)
	}
	if end, ends := f.Ends[session.Address]; ends {
		s.gauge("cosplay_session_expiry_timestamp_seconds", "When the session expires if it is not active until then.", float64(end.At), labels)
	}
	s.gauge("cosplay_session_memory_limit_bytes", "GPU memory that the session may use, of all its devices.", float64(session.Target.MemoryMiB*len(session.Slices()))*mib, labels)
	if use, counted := f.Used[session.Address]; counted {
		s.gauge("cosplay_session_memory_used_bytes", "GPU memory that the session's programs use now.", float64(use.NowBytes), labels)
		s.gauge("cosplay_session_memory_peak_bytes", "The most GPU memory that the session's programs used at once, on the device with the most.", float64(use.PeakMiB)*mib, labels)
		s.send(prometheus.CounterValue, "cosplay_session_out_of_memory_total", "Requests of programs for more GPU memory than was free.", float64(use.OutOfMemory), labels)
	}
}

// state sends the state of a session, which is not known while its container engine does not answer.
func (f Fleet) state(s sender, session resource.PriorSession, labels prometheus.Labels) {
	body, there := f.Live.Body(session.Slice.Host, session.Runtime, session.ID)
	now := missing
	if there {
		now = cmp.Or(body.State, resource.Running)
	}
	for _, state := range []string{resource.Running, resource.Stopped, resource.Paused, resource.Restarting, missing} {
		s.gauge("cosplay_session_state", "1 for the state that the session has, 0 for the others.", bit(now == state), with(labels, "state", state))
	}
	s.gauge("cosplay_session_up", "1 if the session can be used, else 0.", bit(now == resource.Running), labels)
}

// ownSlice names a slice of the project, by its GPU and its UUID.
type ownSlice struct{ gpu, uuid string }

// own are the slices of the sessions.
func (f Fleet) own() map[ownSlice]bool {
	all := map[ownSlice]bool{}
	for _, s := range f.Prior.Sessions {
		if slice, there := diff.OwnSlice(s, f.Live); there {
			all[ownSlice{s.Slice.GPU, slice.UUID}] = true
		}
	}
	return all
}

func (f Fleet) gpu(s sender, g *resource.GPU, own map[ownSlice]bool) {
	labels := prometheus.Labels{"host": g.Host, "gpu": g.UUID}
	gauge := func(feature resource.Feature, name, help string, value float64) {
		if feature == "" || !g.Without(feature) {
			s.gauge(name, help, value, labels)
		}
	}
	gauge(resource.FeatureClock, "cosplay_gpu_sm_clock_hertz", "SM clock now.", float64(g.SMClockMHz)*1e6)
	gauge(resource.FeaturePower, "cosplay_gpu_power_limit_watts", "Power limit.", float64(g.PowerMW)/1000)
	if g.DrawMW > 0 { // 0 is what the driver does not report
		gauge("", "cosplay_gpu_power_watts", "Power draw now.", float64(g.DrawMW)/1000)
	}
	if g.TemperatureC > 0 {
		gauge("", "cosplay_gpu_temperature_celsius", "Temperature of the GPU.", float64(g.TemperatureC))
	}
	if g.UtilizationPercent != nil {
		gauge("", "cosplay_gpu_utilization_ratio", "Part of the last sampling period of the driver in which a program ran on the GPU.", float64(*g.UtilizationPercent)/100)
	}
	gauge("", "cosplay_gpu_memory_used_bytes", "GPU memory in use, by all users.", float64(g.MemoryUsedMiB)*mib)
	if !g.MIG {
		return
	}
	ours, others := 0, 0
	for _, slice := range g.Slices {
		if own[ownSlice{slice.GPU, slice.UUID}] {
			ours += slice.Size
		} else {
			others += slice.Size
		}
	}
	for owner, slots := range map[string]int{"project": ours, "others": others, "free": g.Model.MemorySlices - ours - others} {
		s.gauge("cosplay_gpu_slots", "Memory slots of MIG, by who has them.", float64(slots), with(labels, "owner", owner))
	}
}

// with are labels and one more.
func with(labels prometheus.Labels, name, value string) prometheus.Labels {
	all := maps.Clone(labels)
	all[name] = value
	return all
}

// sender sends metrics.
type sender struct{ out chan<- prometheus.Metric }

func (s sender) gauge(name, help string, value float64, labels prometheus.Labels) {
	s.send(prometheus.GaugeValue, name, help, value, labels)
}

func (s sender) send(kind prometheus.ValueType, name, help string, value float64, labels prometheus.Labels) {
	s.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, value)
}
