package fit

import (
	"fmt"
	"math"
)

// Percent writes a ratio as its deviation from 1, the same wherever a person
// reads one: "+0.0 %", "-8.9 %", "+79 %"; "?" for what is no ratio.
func Percent(ratio float64) string {
	p := 100 * (ratio - 1)
	if math.IsNaN(p) || math.IsInf(p, 0) {
		return "?"
	}
	if math.Abs(p) < 9.95 {
		p = math.Round(p*10)/10 + 0 // no -0.0
		return fmt.Sprintf("%+.1f %%", p)
	}
	return fmt.Sprintf("%+.0f %%", p)
}
