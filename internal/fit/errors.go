package fit

import (
	"fmt"

	"cosplay/internal/resource"
)

// NoRoomError reports that no slice of a GPU has as much memory as the target.
type NoRoomError struct {
	Model   string // the GPU's name
	Target  string // the target's name
	WantMiB int
	HaveMiB int // memory of the largest slice, the whole GPU
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("%s needs %d MiB and the largest slice of %s, the whole GPU, has %d MiB: take a smaller target or a larger GPU",
		e.Target, e.WantMiB, e.Model, e.HaveMiB)
}

// TooFarError reports that the best slice exceeds the max_error that the user set.
type TooFarError struct {
	Model    string // the GPU's name
	Target   string // the target's name
	Prefer   resource.Preference
	MaxError float64      // the limit, as a ratio
	Best     resource.Fit // the best fit that is available
}

func (e *TooFarError) Error() string {
	return fmt.Sprintf("the closest that %s comes to %s is %s at %d MHz, with an error in %s of %.1f %%, and fit.max_error allows %.1f %%: raise it, choose another fit.prefer or another GPU",
		e.Model, e.Target, sliceName(e.Best.Profile), e.Best.ClockMHz, figures(e.Prefer), 100*e.Best.Error(e.Prefer), 100*e.MaxError)
}

func sliceName(profile string) string {
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

func tooFar(m resource.Model, t resource.Target, o resource.FitOptions) *TooFarError {
	closest := resource.FitOptions{Prefer: o.Prefer}
	return &TooFarError{
		Model:    m.ShortModel(),
		Target:   t.ShortName(),
		Prefer:   o.Prefer,
		MaxError: *o.MaxError,
		Best:     Candidates(m, t, closest)[0],
	}
}
