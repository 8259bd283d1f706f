package fit

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// tensorTypes lists the number formats that matter to users, with the first compute capability whose tensor cores
// support each.
var tensorTypes = []struct {
	name  string // in lower case, as in a target's TensorTypes
	since string
}{
	{"fp16", "7.0"}, {"int8", "7.5"}, {"bf16", "8.0"}, {"tf32", "8.0"}, {"fp8", "8.9"}, {"fp6", "10.0"}, {"fp4", "10.0"},
}

// Limits lists, in a few words each, the differences that a disguise of a slice as the target cannot hide: features
// that work only on the GPU, features and units that only the target has, and values that stay those of the GPU. An
// empty profile is the whole GPU. The text does not name the target, because several targets may share a limit. With
// inPyTorch PyTorch reports the target's compute capability.
func Limits(m resource.Model, profile string, t resource.Target, inPyTorch bool) []string {
	var limits []string
	extra, missing := differences(m, t)
	missing = append(missing, missingUnits(m, profile, t)...)
	if len(extra) == 1 && extra[0] != "tensor cores" {
		limits = append(limits, extra[0]+" works here")
	} else if len(extra) > 0 {
		limits = append(limits, prose.And(extra)+" work here")
	}
	if missing != nil {
		limits = append(limits, "no "+prose.Or(missing)+" here")
	}
	if media := profile + "+me"; slices.Contains(missing, "NVDEC") && slices.ContainsFunc(m.Profiles, func(p resource.Profile) bool { return p.Name == media }) {
		limits = append(limits, fmt.Sprintf("slice = %q has NVDEC", media))
	}
	if m.ComputeCapability != t.ComputeCapability {
		limit := fmt.Sprintf("compute capability %s, not %s", m.ComputeCapability, t.ComputeCapability)
		if inPyTorch {
			limit += ", except in PyTorch"
		}
		limits = append(limits, limit)
	}
	if here, there := memoryKind(m.ComputeCapability), memoryKind(t.ComputeCapability); here != there {
		limits = append(limits, fmt.Sprintf("latency of %s memory, not of %s", here, there))
	}
	if m.L2MiB > 0 && m.L2MiB != t.L2MiB {
		limits = append(limits, fmt.Sprintf("%g MiB L2 of the whole GPU, not %g MiB", m.L2MiB, t.L2MiB))
	}
	return limits
}

// differences lists the features that the GPU has and the target lacks, and the number formats that the target's tensor
// cores support and the GPU's do not.
func differences(m resource.Model, t resource.Target) (extra, missing []string) {
	for _, typ := range tensorTypes {
		here, there := !before(m.ComputeCapability, typ.since), slices.Contains(t.TensorTypes, typ.name)
		if here && !there {
			extra = append(extra, strings.ToUpper(typ.name))
		} else if there && !here {
			missing = append(missing, strings.ToUpper(typ.name))
		}
	}
	if len(t.TensorTypes) == 0 && len(extra) > 0 {
		extra = []string{"tensor cores"}
	}
	if !before(m.ComputeCapability, "9.0") && before(t.ComputeCapability, "9.0") {
		extra = append(extra, "TMA")
	}
	return extra, missing
}

// before reports whether a compute capability is lower: "8.9" is before "10.0".
func before(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// memoryKind returns how a GPU's memory is built. Data center GPUs have stacked memory (HBM).
func memoryKind(computeCapability string) string {
	switch computeCapability {
	case "6.0", "7.0", "8.0", "9.0", "10.0", "10.3":
		return "HBM"
	}
	return "GDDR"
}
