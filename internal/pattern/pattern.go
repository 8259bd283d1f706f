// Package pattern has regular expressions that are compiled when they are first used. A command uses few of those in the
// binary, and compiling all of them took a sixth of the CPU time of a short command.
package pattern

import (
	"regexp"
	"sync"
)

// Of returns a function that returns the compiled expression. Like regexp.MustCompile, it panics if the expression is
// wrong, but only when it is first used: the test of this package compiles all expressions.
func Of(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
