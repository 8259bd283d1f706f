package selftest

import (
	"slices"
	"strings"
	"testing"

	"cosplay/internal/projecttest"
)

// TestMissingKeys: doctor reports each file of keys that cannot be read, always in the
// same order.
func TestMissingKeys(t *testing.T) {
	files := []string{"/nowhere/a.pub", "/nowhere/b.pub", "/nowhere/c.pub", "/nowhere/d.pub", "/nowhere/e.pub"}
	p := projecttest.Open(t, projecttest.New(t, `
host "lab" { simulate = "1 x h200" }
session "worker" {
  target = "2060"
  ssh {
    authorized_keys = ["`+strings.Join(files, `", "`)+`"]
  }
}
`))
	var c checkup
	c.login(p, "lab")
	var reported []string
	for _, f := range c.found {
		if f.Thing == "ssh keys" && f.Grade == Missing {
			reported = append(reported, strings.TrimSuffix(strings.Fields(f.Found)[1], ":")) // open PATH: no such file
		}
	}
	if !slices.Equal(reported, files) {
		t.Errorf("reported: %v", reported)
	}
}
