package durable

import "fmt"

// OnMoment is told of each moment at which a crash would be worst: right before
// and right after every write to disk in this package, and every effect of a
// run. Only tests set it, to die there; a cosplay that people run has no switch
// for it.
var OnMoment func(what string)

// Moment marks such a moment.
func Moment(format string, args ...any) {
	if OnMoment != nil {
		OnMoment(fmt.Sprintf(format, args...))
	}
}
