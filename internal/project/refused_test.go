package project

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// TestRefusedError: the error names the place of a diagnostic only where it has one, and leaves warnings out.
func TestRefusedError(t *testing.T) {
	r := &Refused{Diagnostics: hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: "no room", Detail: "Free some.", Subject: &hcl.Range{}},
		{Severity: hcl.DiagWarning, Summary: "slow"},
		{Severity: hcl.DiagError, Summary: "wrong", Subject: &hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 3}}},
	}}
	if want := "no room: Free some.\na.hcl line 3: wrong."; r.Error() != want {
		t.Errorf("%q, not %q", r.Error(), want)
	}
}
