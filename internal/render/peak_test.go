package render

import (
	"testing"

	"cosplay/internal/resource"
)

// TestPeakCell: who overcame all refusals did not run out.
func TestPeakCell(t *testing.T) {
	for _, test := range []struct {
		use  resource.Use
		want string
	}{
		{resource.Use{}, ""},
		{resource.Use{PeakMiB: 5812}, "5812 MiB"},
		{resource.Use{PeakMiB: 6144, OutOfMemory: 3, Overcome: 3}, "6144 MiB"},
		{resource.Use{PeakMiB: 6144, OutOfMemory: 3, Overcome: 2}, "ran out"},
	} {
		if got := peakCell(test.use).text(); got != test.want {
			t.Errorf("%+v reads %q, want %q", test.use, got, test.want)
		}
	}
}
