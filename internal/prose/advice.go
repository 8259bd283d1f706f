package prose

import (
	"errors"
	"strings"
)

// Advice is an error in two parts: what happened, and what the user can do about it.
type Advice struct {
	What  string `json:"what,omitempty"`
	Fix   string `json:"fix,omitempty"` // an imperative without a full stop; "" if nothing helps
	Cause error  `json:"-"`
}

// Error is "WHAT. Fix: FIX".
func (a Advice) Error() string {
	if a.Fix == "" {
		return a.What
	}
	return strings.TrimSpace(Stop(a.What) + " Fix: " + a.Fix)
}

// Unwrap returns the cause; nil if it is not known.
func (a Advice) Unwrap() error { return a.Cause }

// AdviceOf parts the text of an error that ends with advice, after whatever was put before it. All of another error's
// text is what happened.
func AdviceOf(err error) Advice {
	a := Advice{What: err.Error(), Cause: err}
	if known, is := errors.AsType[Advice](err); is && known.Fix != "" {
		if what, ends := strings.CutSuffix(strings.TrimSuffix(a.What, "."), "Fix: "+known.Fix); ends {
			a.What, a.Fix = strings.TrimSpace(what), known.Fix
		}
	}
	return a
}
