package resource

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/prose"
)

// Feature is a part of what cosplay does with a GPU, or knows of it, for which it needs calls of the driver. A GPU
// whose driver does not offer such a call is used without the feature.
type Feature string

// The features. A setting that cosplay gives up is neither planned nor drift. A figure is taken from the catalog
// instead, a reading is shown as unknown.
const (
	FeatureMIG         Feature = "mig"         // MIG mode and slices
	FeatureParts       Feature = "parts"       // slices that are a part of a GPU instance
	FeatureClock       Feature = "clock"       // the SM clock lock
	FeaturePower       Feature = "power"       // the power limit
	FeaturePersistence Feature = "persistence" // persistence mode, without which the driver forgets lock and limit
	FeatureComputeMode Feature = "compute-mode"
	FeatureTimeSlice   Feature = "time-slice-length" // read only where a host asks for it, since it takes a program of the driver

	FigureName       Feature = "name"
	FigureCapability Feature = "compute-capability"
	FigureCores      Feature = "cores"
	FigureMemory     Feature = "memory"
	FigureBandwidth  Feature = "bandwidth"

	ReadingPCI         Feature = "pci-address"
	ReadingProcesses   Feature = "processes" // that use the GPU
	ReadingClock       Feature = "sm-clock"
	ReadingThrottle    Feature = "throttle-reasons"
	ReadingTemperature Feature = "temperature"
	ReadingDraw        Feature = "power-draw"
)

// Words names the feature in a sentence: "the SM clock".
func (f Feature) Words() string {
	if s, is := SettingNamed(string(f)); is && featureWords[f] == "" {
		return "the " + s.Words()
	}
	return cmp.Or(featureWords[f], string(f))
}

var featureWords = map[Feature]string{
	FeatureMIG: "MIG", FeatureParts: "slices that are a part of a GPU instance", FeaturePersistence: "persistence mode",
	FeatureTimeSlice: "the length of time slices",
	FigureName:       "the name", FigureCapability: "the compute capability", FigureCores: "the number of SMs",
	FigureMemory: "the memory size", FigureBandwidth: "the bandwidth",
	ReadingPCI: "the PCI address", ReadingProcesses: "the list of processes", ReadingClock: "the SM clock's reading",
	ReadingThrottle:    "the reasons for a low clock",
	ReadingTemperature: "the temperature", ReadingDraw: "the power draw",
}

// Managed reports whether the feature is one that cosplay changes: a setting, or slices.
func (f Feature) Managed() bool {
	_, is := SettingNamed(string(f))
	return is || f == FeatureParts
}

// Figure reports whether the feature is a figure that the catalog has as well.
func (f Feature) Figure() bool {
	return slices.Contains([]Feature{FigureCapability, FigureCores, FigureMemory, FigureBandwidth}, f)
}

// ReadTimeSlice is the command that reads the length of time slices. NVML has no function for it.
const ReadTimeSlice = "nvidia-smi compute-policy -l"

// Degradation is a feature that cosplay gives up on one GPU, and why.
type Degradation struct {
	Feature Feature `json:"feature"`
	Call    string  `json:"call"` // the NVML function, or the command of nvidia-smi
	Code    int     `json:"code"` // NVML's answer; 13 also where the library does not export the function, or nvidia-smi is missing
	Message string  `json:"message,omitempty"`

	// Set is true if the call would have changed the GPU. Its value can still be read.
	Set bool `json:"set,omitempty"`
}

// String is "nvmlDeviceGetMigMode: Not Supported (3)".
func (d Degradation) String() string { return fmt.Sprintf("%s: %s (%d)", d.Call, d.Message, d.Code) }

// Unusable is a GPU that does not answer a call that cosplay needs.
type Unusable struct {
	Index   int    `json:"index"`
	UUID    string `json:"uuid,omitempty"` // "" if the GPU does not report it
	Call    string `json:"call"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// String is "GPU is lost (15) from nvmlDeviceGetHandleByIndex_v2".
func (u Unusable) String() string { return fmt.Sprintf("%s (%d) from %s", u.Message, u.Code, u.Call) }

// Advice says what is wrong with the GPU, to follow "the GPU is", and how to fix it.
func (u Unusable) Advice() prose.Advice {
	return prose.Advice{What: "unusable: " + u.String(), Fix: u.fix()}
}

func (u Unusable) fix() string {
	const read = "read the Xid errors in dmesg, then "
	switch u.Code {
	case 3, 13: // NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND
		return "install another version of NVIDIA's driver (535 or later)"
	case 4: // NVML_ERROR_NO_PERMISSION
		return "give the user access to the device files of the GPU (/dev/nvidia*)"
	case 15: // NVML_ERROR_GPU_IS_LOST
		return read + "reboot the machine"
	}
	return read + "reset the GPU (nvidia-smi --gpu-reset) or reboot the machine"
}

// Without reports whether cosplay gives up a feature on the GPU.
func (g GPU) Without(f Feature) bool {
	_, without := g.Degradation(f)
	return without
}

// Unread reports whether a feature cannot be read: its value is unknown.
func (g GPU) Unread(f Feature) bool {
	d, without := g.Degradation(f)
	return without && !d.Set
}

// Degradation finds why a feature is given up. A length of time slices that was not read counts as given up, but is no
// entry of Degraded.
func (g GPU) Degradation(f Feature) (Degradation, bool) {
	d, found := find(g.Degraded, func(d Degradation) bool { return d.Feature == f })
	if !found && f == FeatureTimeSlice && g.TimeSlice == nil {
		return Degradation{Feature: f, Call: ReadTimeSlice, Code: 3, Message: "not read"}, true
	}
	return d, found
}

// Unfit names the figure without which no session can be fitted to the GPU: neither the driver nor the catalog has it.
func (g GPU) Unfit() (Feature, bool) {
	switch {
	case g.Model.MemoryMiB == 0:
		return FigureMemory, true
	case g.Model.SMs == 0:
		return FigureCores, true
	case len(g.Model.ClocksMHz) == 0:
		return FeatureClock, true
	}
	return "", false
}

// MaxPowerStepMW is the largest step, in mW, to which a driver may round a power limit. NVML does not report the step;
// drivers round to 1, 5 or 10 W.
const MaxPowerStepMW = 10_000

// RoundedPower reports whether a power limit read back from a driver, in mW, can be
// the one that was asked for, rounded.
func RoundedPower(askedMW, nowMW int) bool {
	off := askedMW - nowMW
	return -MaxPowerStepMW < off && off < MaxPowerStepMW
}
