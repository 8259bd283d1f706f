package place

import "cosplay/internal/resource"

// WholeGPU stands for the whole GPU where the name of a profile is.
const WholeGPU = "whole"

// Alone is the profile of the slice that a session of a target gets on an empty GPU of a model. A GPU that comes no closer
// than half or twice the target's rate does not fit.
func Alone(m resource.Model, t resource.Target) (profile string, fits bool) {
	const host = "empty"
	options := resource.DefaultFit()
	options.MaxError = new(0.5)
	gpu := GPU{GPU: resource.GPU{Host: host, UUID: "GPU-0", Model: m}}
	r := Place([]GPU{gpu}, []Request{{Address: resource.One("one"), Target: t, Want: resource.Request{Host: host, Target: t.Key, Fit: options}}})
	if len(r.Placed) != 1 {
		return "", false
	}
	if slice := r.Placed[0].Slice; !slice.Whole() {
		return slice.Instance().Profile, !slice.Divides()
	}
	return WholeGPU, true
}
