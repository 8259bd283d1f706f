package fit

import (
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// computeOnly are the compute capabilities of GPUs without video encoders, RT cores and display: GA100, GH100, GB100.
var computeOnly = []string{"8.0", "9.0", "10.0", "10.3"}

// missingUnits lists the units beside the SMs that the target has and a slice lacks. An empty profile is the whole GPU.
// What a profile has is NVIDIA's MIG User Guide's.
func missingUnits(m resource.Model, profile string, t resource.Target) (missing []string) {
	here, there := !slices.Contains(computeOnly, m.ComputeCapability), !slices.Contains(computeOnly, t.ComputeCapability)
	suffix := variant(profile)
	if there && (!here || suffix == "-me") {
		missing = append(missing, "NVENC")
	}
	if profile != "" && !decodes(m, profile) {
		missing = append(missing, "NVDEC")
	}
	if hasRTCores(t.Name, t.ComputeCapability) && !hasRTCores(m.Name, m.ComputeCapability) {
		missing = append(missing, "RT cores")
	}
	if profile != "" && there && !strings.Contains(suffix, "+gfx") {
		missing = append(missing, "graphics")
	}
	return missing
}

// decodes reports whether a MIG slice has a video decoder. The smallest slices of a GA100 have none unless their profile
// names it.
func decodes(m resource.Model, profile string) bool {
	p, _ := m.Profile(resource.Slice{Profile: profile}.Instance().Profile)
	suffix := variant(p.Name)
	smallest := p.ComputeSlices == 1 && p.MemorySlices == 1
	return suffix != "-me" && (m.ComputeCapability != "8.0" || !smallest || strings.Contains(suffix, "+me"))
}

// variant is what the name of a profile says of media engines and graphics: "+me", "+gfx", "-me", or "".
func variant(profile string) string {
	if i := strings.IndexAny(profile, "+-"); i >= 0 {
		return profile[i:]
	}
	return ""
}

// hasRTCores reports whether a GPU has RT cores: those since Turing that are made for graphics, apart from the GTX 16.
func hasRTCores(name, computeCapability string) bool {
	return !before(computeCapability, "7.5") && !slices.Contains(computeOnly, computeCapability) && !strings.Contains(name, "GTX")
}
