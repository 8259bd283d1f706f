package disguise

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"

	"cosplay/internal/resource"
)

const (
	idleClockMHz = 300 // typical idle clock of cards since 2016
	laneGroup    = 64  // the number of lanes of an SM is a multiple of it
)

// mostDevices is the largest number of devices in one session: MOST_DEVICES of figures.h.
const mostDevices = 16

// ShownUUID returns the UUID of a session's GPU: that of its slice, or of the whole GPU. An earlier driver's name of
// instance ids is no UUID, so one is derived from it.
func ShownUUID(given resource.Handle) string {
	if !given.NamedByIDs() {
		return "GPU-" + strings.TrimPrefix(strings.TrimPrefix(given.UUID, "MIG-"), "GPU-")
	}
	sum := sha256.Sum256([]byte(given.UUID))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// PowerLimits are the lowest and the highest power limit that a session shows, in mW. The catalog has the highest one,
// which is the default; typical GPUs go down to half of it.
func PowerLimits(t resource.Target) (lowestMW, highestMW int) {
	return t.PowerW / 2 * 1000, t.PowerW * 1000
}

var architectures = map[string]int{
	"maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9, "blackwell": 10,
}

func brand(name string) int {
	for _, b := range []struct {
		word   string
		number int
	}{{"GeForce", 5}, {"TITAN", 6}, {"Tesla", 2}, {"Quadro RTX", 12}, {"Quadro", 1}, {"NVIDIA RTX", 13}} {
		if strings.Contains(name, b.word) {
			return b.number
		}
	}
	return 14 // NVIDIA
}

// cores returns the number of lanes that give the FP32 rate at the boost clock, with two operations per lane and
// clock.
func cores(t resource.Target) int {
	if t.SMs == 0 || t.BoostMHz == 0 {
		return 0
	}
	perSM := t.FP32TFLOPS * 1e6 / float64(2*t.BoostMHz*t.SMs)
	return t.SMs * laneGroup * max(1, int(math.Round(perSM/laneGroup)))
}

func memoryClockMHz(t resource.Target) int {
	if t.BusBits == 0 {
		return 0
	}
	return int(math.Round(t.BandwidthGBs * 1000 * 8 / float64(2*t.BusBits)))
}
