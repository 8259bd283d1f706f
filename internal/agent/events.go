//go:build cgo && linux

package agent

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A request waits for an event for this long at most, in steps.
const (
	listening     = 2 * time.Second
	listeningStep = 500 * time.Millisecond
)

// events are the kinds of NVML's events that the agent waits for: a GPU that is lost, and a changed MIG configuration.
const events = nvml.EventTypeXidCriticalError | nvml.EventMigConfigChange

// await waits for an event of any GPU, for a bounded time. A change that is under way on the host ends it early: a
// process that has registered for events can make a driver refuse to switch MIG mode.
func (l *nvmlLibrary) await() (happened, ends bool, err error) {
	if l.book.Quiet(0) != nil {
		return false, true, nil
	}
	if l.events == nil {
		if l.events, err = l.listen(); err != nil {
			return false, false, err
		}
	}
	for range listening / listeningStep {
		_, err = get(l.host(), "nvmlEventSetWait_v2", func() (nvml.EventData, nvml.Return) {
			return l.events.Wait(uint32(listeningStep.Milliseconds()))
		})
		ends = l.book.Quiet(0) != nil
		if !isCode(err, nvml.ERROR_TIMEOUT) {
			return err == nil, ends, err
		}
		if ends {
			break
		}
	}
	return false, ends, nil
}

// listen registers for the events that each GPU has.
func (l *nvmlLibrary) listen() (nvml.EventSet, error) {
	set, err := get(l.host(), "nvmlEventSetCreate", l.EventSetCreate)
	if err != nil {
		return nil, err
	}
	devices, _, err := l.devices()
	if err != nil {
		return nil, err
	}
	registered := 0
	for _, d := range devices {
		kinds, err := get(d, "nvmlDeviceGetSupportedEventTypes", d.GetSupportedEventTypes)
		if err != nil || kinds&events == 0 {
			continue
		}
		if err := d.call("nvmlDeviceRegisterEvents", func() nvml.Return { return d.RegisterEvents(kinds&events, set) }); err == nil {
			registered++
		}
	}
	if registered == 0 {
		return nil, &Error{Call: "nvmlDeviceRegisterEvents", Code: int(nvml.ERROR_NOT_SUPPORTED), Message: nvml.ERROR_NOT_SUPPORTED.Error()}
	}
	return set, nil
}
