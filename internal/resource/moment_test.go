package resource_test

import (
	"testing"
	"time"

	"cosplay/internal/resource"
)

// TestMoment: points in time are read and written as package time does it, on every day of four centuries.
func TestMoment(t *testing.T) {
	at := time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC)
	for at.Year() < 2370 {
		text := at.Format(time.RFC3339)
		m, ok := resource.ParseMoment(text)
		if !ok || int64(m) != at.Unix() || m.String() != text {
			t.Fatalf("%s: %d, %v, %s", text, m, ok, m)
		}
		at = at.Add(24*time.Hour + 61*time.Second)
	}
	for text, want := range map[string]string{
		"2026-12-01T18:00:00+01:00": "2026-12-01T17:00:00Z",
		"2026-12-01T23:30:00-05:30": "2026-12-02T05:00:00Z",
		"2024-02-29t00:00:00z":      "2024-02-29T00:00:00Z",
		"2026-12-01T18:00:00.1234Z": "2026-12-01T18:00:00Z",
	} {
		if m, ok := resource.ParseMoment(text); !ok || m.String() != want {
			t.Errorf("%s: %s, %v", text, m, ok)
		}
	}
	for _, text := range []string{"", "2026-12-01", "2026-12-01 18:00:00", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-10T00:00:00Z",
		"2026-12-01T24:00:00Z", "2026-12-01T18:60:00Z", "2026-12-01T18:00:61Z", "2026-12-01T18:00:00", "1969-12-31T23:59:59Z", "2026-12-01T18:00:00+25:00"} {
		if m, ok := resource.ParseMoment(text); ok {
			t.Errorf("%q is read as %s", text, m)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]struct {
		s resource.Seconds
		w string
	}{
		"8h": {8 * 3600, "8h"}, "1h30m": {5400, "1h30m"}, "90m": {5400, "1h30m"}, "7d": {7 * 86400, "7d"}, "1s": {1, "1s"},
		"1d2h3m4s": {93784, "1d2h3m4s"}, "36h": {129600, "1d12h"},
	} {
		if s, ok := resource.ParseSeconds(text); !ok || s != want.s || s.String() != want.w {
			t.Errorf("%s: %d, %s, %v", text, s, s, ok)
		}
	}
	for _, text := range []string{"", "8", "h", "-1h", "1.5h", "0s", "0h0m", "30m1h", "8 h", "8H", "1w", "99999999999h"} {
		if s, ok := resource.ParseSeconds(text); ok {
			t.Errorf("%q is read as %s", text, s)
		}
	}
}
