package fit

import (
	"fmt"
	"math"

	"cosplay/internal/resource"
)

// tooFar returns the error for a best slice that exceeds the max_error that the user set.
func tooFar(m resource.Model, t resource.Target, o resource.FitOptions) error {
	best := Candidates(m, t, resource.FitOptions{Prefer: o.Prefer})[0]
	return fmt.Errorf("the closest that %s comes to %s is %s at %d MHz, with an error in %s of %.1f %%, and fit.max_error allows %.1f %%: raise it, choose another fit.prefer or another GPU",
		m.ShortModel(), t.ShortName(), SliceName(best.Profile), best.ClockMHz, Figures(o.Prefer), 100*best.Error(o.Prefer), 100**o.MaxError)
}

// SliceName returns the name of a slice with this profile in output; an empty profile is the whole GPU.
func SliceName(profile string) string {
	if profile == "" {
		return "the whole GPU"
	}
	return profile
}

// Figures names what a preference puts first.
func Figures(p resource.Preference) string {
	switch p {
	case resource.PreferBandwidth:
		return "bandwidth"
	case resource.PreferBalanced:
		return "FP32 and bandwidth"
	default:
		return "FP32"
	}
}

// Percent formats a ratio as its deviation from 1, in one form for all output: "+0.0 %", "-8.9 %", "+79 %"; "?" if
// the value is not a ratio.
func Percent(ratio float64) string {
	p := 100 * (ratio - 1)
	if math.IsNaN(p) || math.IsInf(p, 0) {
		return "?"
	}
	if math.Abs(p) < 9.95 {
		p = math.Round(p*10)/10 + 0 // replaces -0.0 by 0.0
		return fmt.Sprintf("%+.1f %%", p)
	}
	return fmt.Sprintf("%+.0f %%", math.Round(math.Round(p*1e6)/1e6)) // one eighth is -87.49999999999999 %
}
