package agent

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/resource"
)

// sampleClock reads the SM clock of one GPU, and whether something other than a lock holds
// it down. It is called many times a second.
func (l *nvmlLibrary) sampleClock(gpu string) (*resource.ClockSample, error) {
	d, err := l.device(gpu)
	if err != nil {
		return nil, err
	}
	now, err := d.smClock()
	if err != nil {
		return nil, err
	}
	reasons, err := d.throttleReasons()
	if err != nil && !unavailable(err) {
		return nil, err
	}
	return &resource.ClockSample{MHz: int(now), LowClockReason: err != nil || heldDown(reasons)}, nil
}

// heldDown reports whether a GPU is idle, or throttled by power or heat.
func heldDown(reasons uint64) bool {
	return reasons&^uint64(nvml.ClocksEventReasonApplicationsClocksSetting) != 0
}
