package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// mark is what values carry with them through all that is made of them.
type mark string

const (
	sensitive = mark("sensitive") // it is not to be shown
	told      = mark("told")      // it is not known, for a mistake that has been told
)

// isSensitive reports whether any part of a value is not to be shown.
func isSensitive(v cty.Value) bool {
	_, marks := v.UnmarkDeep()
	_, there := marks[sensitive]
	return there
}

// redacted takes out of a diagnostic of the HCL library what a sensitive value
// may have left in it.
func redacted(d *hcl.Diagnostic) *hcl.Diagnostic {
	if d.Expression == nil || d.EvalContext == nil {
		return d
	}
	for _, mention := range d.Expression.Variables() {
		if v, diags := mention.TraverseAbs(d.EvalContext); !diags.HasErrors() && isSensitive(v) {
			d.Detail = "What is wrong is not shown, since the expression works on a sensitive value. Try it out with one that may be shown."
			return d
		}
	}
	return d
}
