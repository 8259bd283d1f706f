//go:build cgo && linux

package agent

// #include "direct.h"
import "C"

import (
	"reflect"
	"time"
	"unsafe"

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

// between is the part of the time between two samples, in percent, in which a program ran. go-nvml's own call (0.13.0)
// has metrics of 1,624 bytes, not of 40 as NVML's header, and copies 210 of them three times, a megabyte for each instance.
func (l *nvmlLibrary) between(before, after nvml.GpmSample) int {
	if before == nil || after == nil {
		return resource.ActivityUnknown
	}
	path := C.CString(l.path)
	defer C.free(unsafe.Pointer(path))
	var percent C.double
	err := l.host().call("nvmlGpmMetricsGet", func() nvml.Return {
		return nvml.Return(C.gpm_metric(path, C.uint(nvml.GPM_METRIC_GRAPHICS_UTIL), handle(before), handle(after), &percent))
	})
	if err == nil && percent >= 0 && percent <= 100 {
		return int(percent + 0.5)
	}
	return resource.ActivityUnknown
}

// handle is what NVML knows a sample by; go-nvml does not export the type.
func handle(sample nvml.GpmSample) unsafe.Pointer {
	return reflect.ValueOf(sample).FieldByName("Handle").UnsafePointer()
}
