//go:build cgo && linux

package agent

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

// betweenSamples is the time that the use of a GPU instance is measured. NVML's manual asks for more than 100 ms between
// two samples.
const betweenSamples = 110 * time.Millisecond

// activity is how busy GPU instances are, in percent; resource.ActivityUnknown where the driver does not say it, as
// before Hopper.
func (l *nvmlLibrary) activity(of []resource.GPUInstance) []int {
	before := l.samples(of)
	defer l.freeSamples(before)
	busy, after := make([]int, len(of)), map[int]nvml.GpmSample{}
	if len(before) > 0 {
		time.Sleep(betweenSamples)
		after = l.samples(of)
		defer l.freeSamples(after)
	}
	for i := range of {
		busy[i] = l.between(before[i], after[i])
	}
	return busy
}

// samples takes a sample of each GPU instance for which the driver has one.
func (l *nvmlLibrary) samples(of []resource.GPUInstance) map[int]nvml.GpmSample {
	all := map[int]nvml.GpmSample{}
	for i, at := range of {
		d, err := l.device(at.GPU)
		if err != nil {
			continue
		}
		sample, err := get(d, "nvmlGpmSampleAlloc", l.GpmSampleAlloc)
		if err != nil {
			return all // there is no memory, or no such function
		}
		if d.call("nvmlGpmMigSampleGet", func() nvml.Return { return d.GpmMigSampleGet(at.ID, sample) }) != nil {
			l.freeSamples(map[int]nvml.GpmSample{i: sample})
			continue
		}
		all[i] = sample
	}
	return all
}

func (l *nvmlLibrary) freeSamples(all map[int]nvml.GpmSample) {
	for _, sample := range all {
		_ = l.host().call("nvmlGpmSampleFree", sample.Free)
	}
}

// between is the part of the time between two samples, in percent, in which a program ran.
func (l *nvmlLibrary) between(before, after nvml.GpmSample) int {
	if before == nil || after == nil {
		return resource.ActivityUnknown
	}
	metrics := nvml.GpmMetricsGetType{NumMetrics: 1, Sample1: before, Sample2: after}
	metrics.Metrics[0].MetricId = uint32(nvml.GPM_METRIC_GRAPHICS_UTIL)
	err := l.host().call("nvmlGpmMetricsGet", func() nvml.Return { return l.GpmMetricsGet(&metrics) })
	if found := metrics.Metrics[0]; err == nil && nvml.Return(found.NvmlReturn) == nvml.SUCCESS && found.Value >= 0 && found.Value <= 100 {
		return int(found.Value + 0.5)
	}
	return resource.ActivityUnknown
}
