package project

import (
	"errors"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/apply"
)

// TestPatience: only a failure that another plan avoids leads to another plan.
func TestPatience(t *testing.T) {
	first := apply.Failure{Err: &agent.Error{Refused: true}}
	without := apply.Failure{Err: &agent.Error{GivenUp: "a call"}}
	other := apply.Failure{Err: errors.New("no space")}
	left := apply.Failure{Err: first.Err, Left: &apply.UndoError{Err: other.Err}}
	for name, c := range map[string]struct {
		patience Patience
		failures []apply.Failure
		stopped  bool
		want     bool
	}{
		"nothing failed":                      {AfterOthers, nil, false, false},
		"another project was first":           {AfterOthers, []apply.Failure{first, first}, false, true},
		"and another step failed":             {AfterOthers, []apply.Failure{first, other}, false, false},
		"and a leftover remains":              {AfterOthers, []apply.Failure{left}, false, false},
		"the driver does not offer a call":    {WithoutCalls, []apply.Failure{other, without}, false, true},
		"the user stopped it":                 {WithoutCalls, []apply.Failure{without}, true, false},
		"the driver's call is not waited for": {AfterOthers, []apply.Failure{without}, false, false},
		"another project is waited for, too":  {WithoutCalls, []apply.Failure{first}, false, true},
	} {
		if got := c.patience.again(apply.Result{Failures: c.failures, Interrupted: c.stopped}); got != c.want {
			t.Errorf("%s: again is %v", name, got)
		}
	}
}

// TestRefused: the error of a refused plan is its errors; a warning, which can come first, refuses nothing.
func TestRefused(t *testing.T) {
	warning := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "--target is in effect"}
	wrong := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "it does not fit", Detail: "no room"}
	refused := &Refused{hcl.Diagnostics{warning, wrong}}
	if got, want := refused.Error(), "it does not fit: no room."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(refused.Diagnostics) != 2 {
		t.Errorf("the warning is lost: %v", refused.Diagnostics)
	}
}
