// Package pattern has regular expressions that are compiled when they are first used: a command uses few of those in the
// binary, and compiling all of them is a noticeable part of a short one.
package pattern

import (
	"regexp"
	"sync"
)

// Of returns a function that returns the compiled expression. Like regexp.MustCompile, it panics if the expression is
// wrong, but only when it is first used; internal/archtest compiles all expressions.
func Of(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
