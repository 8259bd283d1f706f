package fit

import (
	"fmt"

	"cosplay/internal/resource"
)

// tooFar returns the error for a best slice that exceeds the max_error that the user set.
func tooFar(m resource.Model, t resource.Target, o resource.FitOptions) error {
	best := Candidates(m, t, resource.FitOptions{Prefer: o.Prefer})[0]
	return fmt.Errorf("the closest that %s comes to %s is %s at %d MHz, with an error in %s of %.1f %%, and fit.max_error allows %.1f %%: raise it, choose another fit.prefer or another GPU",
		m.ShortModel(), t.ShortName(), SliceName(best.Profile), best.ClockMHz, figures(o.Prefer), 100*best.Error(o.Prefer), 100**o.MaxError)
}

// SliceName returns the name of a slice with this profile in output; an empty profile is the whole GPU.
func SliceName(profile string) string {
	if profile == "" {
		return "the whole GPU"
	}
	return profile
}

func figures(p resource.Preference) string {
	switch p {
	case resource.PreferBandwidth:
		return "bandwidth"
	case resource.PreferBalanced:
		return "FP32 and bandwidth"
	default:
		return "FP32"
	}
}
