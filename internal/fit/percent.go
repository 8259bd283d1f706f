package fit

import (
	"fmt"
	"math"
)

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
	return fmt.Sprintf("%+.0f %%", p)
}
