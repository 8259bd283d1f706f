package fit_test

import (
	"testing"

	"cosplay/internal/fit"
)

func TestPercent(t *testing.T) {
	for ratio, want := range map[float64]string{
		1: "+0.0 %", 0.9999: "+0.0 %", 1.0004: "+0.0 %", 0.911: "-8.9 %", 1.79: "+79 %", 0.18: "-82 %",
		1.0994: "+9.9 %", 1.0996: "+10 %", 4.31: "+331 %", 0: "-100 %",
	} {
		if got := fit.Percent(ratio); got != want {
			t.Errorf("Percent(%g) = %q, want %q", ratio, got, want)
		}
	}
	zero := 0.0
	if got := fit.Percent(1 / zero); got != "?" {
		t.Errorf("a ratio to nothing is %q", got)
	}
}
