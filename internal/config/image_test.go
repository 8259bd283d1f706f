package config_test

import (
	"strings"
	"testing"
)

// TestImageNames checks that names are stored as engines list them.
func TestImageForms(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0f", 32)
	for typed, want := range map[string]string{
		"debian":                     "debian:latest",
		"debian:12":                  "debian:12",
		"docker.io/library/debian":   "debian:latest",
		"registry.lab:5000/team/x:1": "registry.lab:5000/team/x:1",
		"debian@" + digest:           "debian@" + digest,
		"debian:12@" + digest:        "debian@" + digest,
		"b44d1936cd2a":               "b44d1936cd2a",
		digest:                       digest,
		strings.Repeat("0f", 32):     digest,
		"beefbeefbeefs":              "beefbeefbeefs:latest",
	} {
		intent, diags := load(t, map[string]string{"f.hcl": "session \"w\" {\n  target = \"2060\"\n  image = \"" + typed + "\"\n}"})
		if diags.HasErrors() {
			t.Errorf("%s: %v", typed, diags)
			continue
		}
		if got := intent.Sessions[0].Spec.Image; got != want {
			t.Errorf("%s is kept as %s, want %s", typed, got, want)
		}
	}
}
