package render

import (
	"strconv"
	"time"

	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// FitsJUnit returns what fits found out as JUnit's XML: a test case for each GPU that --need names, otherwise one for the command.
func FitsJUnit(v FitsView) ([]byte, error) {
	var suites junitSuites
	began := time.Now().Add(-v.Took)
	add := func(name string, t resource.Target, failure *junitReason) {
		one := JUnitView{Host: "localhost", Target: t, Began: began}
		properties := []junitProperty{{"command", v.Command}, {"peak_mib", strconv.Itoa(v.PeakMiB)}}
		if best := v.smallest(); best != nil {
			properties = append(properties, junitProperty{"smallest", best.Card.Target().Key}, junitProperty{"smallest_memory_mib", strconv.Itoa(best.Card.MemoryMiB)})
		}
		suites.add(one.suite(name, began, v.Took, failure, properties))
	}
	answer := v.answer()
	for _, t := range v.Needed {
		var failure *junitReason
		if v.Broken != nil || !v.runs(t) {
			failure = &junitReason{Message: v.Command + " does not run on " + CardName(t), Type: "capacity", Text: v.whyNot(answer)}
		}
		add(CardName(t), t, failure)
	}
	if len(v.Needed) == 0 {
		var failure *junitReason
		if !v.Passes() {
			failure = &junitReason{Message: answer, Type: "capacity", Text: v.whyNot(answer)}
		}
		add(v.Command, resource.Target{}, failure)
	}
	return suites.xml()
}

// whyNot is the answer, with the request that could not be served or the end of what the command printed.
func (v FitsView) whyNot(answer string) string {
	words := answer + "\n"
	if v.Refused != nil && v.Refused.Error != nil {
		words += "Out of memory on " + CardName(v.RefusedOn) + " in " + requestWords(v.Command, *v.Refused.Error) + "\n"
	}
	if v.Broken != nil {
		words += terminal.Safe(v.Broken.Output)
	}
	return words
}
