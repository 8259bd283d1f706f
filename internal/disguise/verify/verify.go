// Package verify is the self-test of the disguise: which checks there are, what
// is asked in a session, and the comparison of what its programs saw with what
// they should have seen. Pure: whoever asks is internal/project.
package verify

import (
	"cmp"
	"slices"
)

// Way is how something was asked.
type Way string

// The ways: into a session, or from outside of it.
const (
	Exec    Way = "exec"
	SSH     Way = "ssh"
	Outside Way = "host"
)

// Outcome is what came of a check.
type Outcome string

// The outcomes. What cannot be checked, for lack of a Python module or of
// something that the driver or the image does not have, is skipped; nothing else.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Class is what a check is about.
type Class string

// The classes, in the order in which they are shown.
const (
	Entry       Class = "entry"       // whether programs can be run at all
	Environment Class = "environment" // variables and identity
	SMI         Class = "nvidia-smi"
	NVML        Class = "nvml"
	CUDA        Class = "cuda"
	Python      Class = "python"
	Slice       Class = "slice"
	Settings    Class = "settings" // of the physical GPU
	Files       Class = "files"    // of the disguise
)

// Result is what came of one check, asked in one way.
type Result struct {
	Check    string // stable: "nvml.memory"
	Class    Class
	Way      Way
	Outcome  Outcome
	Expected string
	Found    string
	Why      string // it was skipped
	Hint     string // what to do, of a failed one
}

// check is one of them, as a value. It passes when what was found reads as what
// was expected.
type check[S any] struct {
	name     string
	class    Class
	applies  func(Wanted) bool // nil: always
	expected func(Wanted) string
	found    func(Wanted, S) answer
	hint     string
}

// answer is what a check found, or why it could not look. Its hint replaces the check's.
type answer struct{ found, skip, hint string }

func found(words string) answer { return answer{found: words} }
func skip(why string) answer    { return answer{skip: why} }

// run compares.
func (c check[S]) run(w Wanted, seen S, way Way) Result {
	r := Result{Check: c.name, Class: c.class, Way: way, Outcome: Passed, Expected: c.expected(w)}
	a := c.found(w, seen)
	r.Found, r.Why = a.found, a.skip
	switch {
	case a.skip != "":
		r.Outcome = Skipped
	case a.found != r.Expected:
		r.Outcome, r.Hint = Failed, cmp.Or(a.hint, c.hint)
	}
	return r
}

func runAll[S any](checks []check[S], w Wanted, seen S, way Way) []Result {
	var all []Result
	for _, c := range checks {
		if c.applies == nil || c.applies(w) {
			all = append(all, c.run(w, seen, way))
		}
	}
	return all
}

// Judge runs every check of a session: those inside, once for each way that was
// gone, and those from outside.
func Judge(w Wanted, inside []Inside, outside Observed) []Result {
	var all []Result
	for _, in := range inside {
		entry := enter(w, in)
		all = append(all, entry)
		if entry.Outcome == Passed { // else there is nothing to judge by
			all = append(all, runAll(insideChecks(), w, in, in.Way)...)
		}
	}
	return append(all, runAll(outsideChecks(), w, outside, Outside)...)
}

func insideChecks() []check[Inside] {
	return slices.Concat(environmentChecks, smiChecks, nvmlChecks, cudaChecks, pythonChecks, sliceChecks)
}

func outsideChecks() []check[Observed] {
	return slices.Concat(settingsChecks, filesChecks)
}

// Names lists all checks in their order.
func Names() []string {
	names := []string{entryName}
	for _, c := range insideChecks() {
		names = append(names, c.name)
	}
	for _, c := range outsideChecks() {
		names = append(names, c.name)
	}
	return names
}
