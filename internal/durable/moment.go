package durable

import "fmt"

// OnMoment is called at each moment at which a crash would do most harm: before and after every write to disk in this
// package, and every effect of a run. Only tests set it, to end the process there; users have no way to set it.
var OnMoment func(what string)

// Moment marks such a moment.
func Moment(format string, args ...any) {
	if OnMoment != nil {
		OnMoment(fmt.Sprintf(format, args...))
	}
}
