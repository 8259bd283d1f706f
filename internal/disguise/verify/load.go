package verify

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// Load is the SM clock while a session filled memory. NVML has no getter for a clock lock; only a busy GPU shows it.
type Load struct {
	Samples []resource.ClockSample // in the order of time
	Failed  string                 // why there was no load; "" if there was
}

// busySamples is the number of equal samples of a busy GPU that prove a lock: a rising clock does not stay at one
// value for so many.
const busySamples = 10

// MHz returns the SM clock under load, which is known once enough samples agree. Above the lock one sample is enough,
// because a lock lets no clock exceed it.
func (l Load) MHz(lock int) (mhz int, known bool) {
	same, busy := 0, l.busy()
	for _, now := range busy {
		switch {
		case now > lock:
			return slices.Max(busy), true
		case now != mhz:
			mhz, same = now, 0
		}
		same++
	}
	return mhz, same >= busySamples
}

// Settled reports whether more samples could not change the result: a clock below the lock may still rise.
func (l Load) Settled(lock int) bool {
	mhz, known := l.MHz(lock)
	return known && mhz >= lock
}

// busy returns the clocks of a busy GPU.
func (l Load) busy() (clocks []int) {
	for _, s := range l.Samples {
		if !s.LowClockReason {
			clocks = append(clocks, s.MHz)
		}
	}
	return clocks
}

// unproven returns why a load proved nothing.
func (l Load) unproven() string {
	const cannot = "the clock lock is not provable: "
	switch busy := len(l.busy()); {
	case l.Failed == noGlibc:
		return noGlibc
	case l.Failed != "":
		return cannot + l.Failed
	case len(l.Samples) == 0:
		return cannot + "no program could be run in the session"
	case busy == 0:
		return cannot + "under load the GPU stayed idle, or power or heat held its clock down"
	default:
		return cannot + fmt.Sprintf("under load the SM clock did not settle within %d readings", busy)
	}
}

const noGlibc = "the image has no glibc, without which no program loads NVIDIA's libraries"

// LoadFailed returns why the program that fills memory failed, from its output and exit status.
func LoadFailed(out Output) (why string, failed bool) {
	if out.absent() {
		return noGlibc, true
	}
	printed := parse(out.Text)
	if why, failed := printed.failure("load.load", "load.init", "load.fill"); failed {
		return "CUDA: " + why, true
	}
	if taken, ok := printed.numbers("load.take", 2); ok && taken[1] != success {
		return fmt.Sprintf("CUDA: error %d for %s", taken[1], inMiB(taken[0])), true
	}
	if out.Code != 0 {
		return out.ended(), true
	}
	return "", false
}

// LockCheck is the name of the check of the clock lock.
const LockCheck = "settings.clock"

// clock checks the lock under load; without a load it uses the GPU's present clock.
func clock(w Wanted, o Observed) answer {
	lock := w.Applied.Value(resource.SMClock)
	if o.Live == nil {
		return noGPU(o)
	}
	mhz, known := o.Load.MHz(lock)
	if lacks, given := o.Live.Degradation(resource.FeatureClock); given && !(known && mhz == lock) {
		return skip("cosplay does not manage the SM clock: " + lacks.String())
	}
	if known {
		return found(resource.Clock(mhz) + underLoad)
	}
	if o.LockLost {
		return found(fmt.Sprintf("not in effect; %d MHz now", o.Live.SMClockMHz))
	}
	return skip(o.Load.unproven())
}

const underLoad = " under load"
