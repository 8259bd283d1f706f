package place

import (
	"fmt"

	"cosplay/internal/fit"
	"cosplay/internal/resource"
)

// label names a GPU in output, with its host if there are several.
func (f *fleet) label(c *card) string {
	if f.hosts > 1 {
		return fmt.Sprintf("GPU %d of host %s", c.Index, c.Host)
	}
	return fmt.Sprintf("GPU %d", c.Index)
}

// deviation formats the preferred figures relative to the target's: "FP32 -8.9 %".
func deviation(f resource.Fit, prefer resource.Preference) string {
	fp32 := "FP32 " + fit.Percent(f.FP32Ratio())
	bandwidth := "bandwidth " + fit.Percent(f.BandwidthRatio())
	switch prefer {
	case resource.PreferBandwidth:
		return bandwidth
	case resource.PreferBalanced:
		return fp32 + " and " + bandwidth
	default:
		return fp32
	}
}
