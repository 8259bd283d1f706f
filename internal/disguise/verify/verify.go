// Package verify defines the self-test of the disguise: the checks, the questions to programs in a session, and the
// comparison of their answers with the expected ones. It is a pure function of values; internal/selftest asks the
// questions.
package verify

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/prose"
)

// Way is how a question was asked.
type Way string

// The ways: by entering the session, or from outside.
const (
	Exec    Way = "exec"
	SSH     Way = "ssh"
	Outside Way = "host"
)

// Outcome is the result of a check.
type Outcome string

// The outcomes. A check is skipped only if it is impossible, because a Python module or something of the driver or
// the image is missing. It is not applicable if a simulated host cannot run what it checks.
const (
	Passed        Outcome = "passed"
	Failed        Outcome = "failed"
	Skipped       Outcome = "skipped"
	NotApplicable Outcome = "not_applicable"
)

// Class is the subject of a check.
type Class string

// The classes, in the order of output.
const (
	Entry       Class = "entry"       // whether programs can run at all
	Environment Class = "environment" // variables and identity
	SMI         Class = "nvidia-smi"
	NVML        Class = "nvml"
	CUDA        Class = "cuda"
	Python      Class = "python"
	Slice       Class = "slice"
	Settings    Class = "settings" // of the physical GPU
	Files       Class = "files"    // of the disguise
)

// Result is the result of one check, asked in one way.
type Result struct {
	Check    string // stable: "nvml.memory"
	Class    Class
	Way      Way
	Outcome  Outcome
	Expected string
	Got      prose.Advice // what was found and, of a failed check, how to fix it
	Why      string       // it was skipped, or is not applicable
	By       string       // "CPU" where PyTorch computed on it in place of a GPU, "shapes" where nothing computed
}

// check is one check. It passes if the found text equals the expected one.
type check[S any] struct {
	name     string
	class    Class
	applies  func(Wanted) bool // nil: always
	expected func(Wanted) string
	found    func(Wanted, S) answer
	fix      string
}

// answer is the found text, or why the check was impossible. Its fix replaces the check's.
type answer struct {
	prose.Advice
	skip   string
	cannot string // why a simulated host cannot run it
	by     string // as in Result
}

func found(words string) answer { return answer{Advice: prose.Advice{What: words}} }
func skip(why string) answer    { return answer{skip: why} }

// always is the expected text of a check that does not depend on the session.
func always(words string) func(Wanted) string { return func(Wanted) string { return words } }

// of gives all checks of a group the same class and fix.
func of[S any](class Class, fix string, checks ...check[S]) []check[S] {
	for i := range checks {
		checks[i].class, checks[i].fix = class, fix
	}
	return checks
}

func (c check[S]) run(w Wanted, seen S, way Way) Result {
	r := Result{Check: c.name, Class: c.class, Way: way, Outcome: Passed, Expected: c.expected(w)}
	a := c.found(w, seen)
	r.Got.What, r.Why, r.By = a.What, cmp.Or(a.cannot, a.skip), a.by
	switch {
	case a.cannot != "":
		r.Outcome = NotApplicable
	case a.skip != "":
		r.Outcome = Skipped
	case a.What != r.Expected:
		r.Outcome, r.Got.Fix = Failed, cmp.Or(a.Fix, c.fix)
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

// Judge runs every check of a session: those inside once for each way of entering, and those from outside.
func Judge(w Wanted, inside []Inside, outside Observed) []Result {
	var all []Result
	for _, in := range inside {
		entry := enter(w, in)
		all = append(all, entry)
		if entry.Outcome == Passed { // otherwise there are no answers to check
			all = append(all, runAll(insideChecks, w, in, in.Way)...)
		}
	}
	return append(all, runAll(outsideChecks, w, outside, Outside)...)
}

// JudgeDevice runs the checks of a session's later device, which counts from 1, and of its GPU. Inside has the answer to
// DeviceQuestion.
func JudgeDevice(device int, w Wanted, inside []Inside, outside Observed) []Result {
	var all []Result
	for _, in := range inside {
		if in.Vacant == "" { // enter reports it, once for the session
			all = append(all, runAll(deviceChecks, w, in, in.Way)...)
		}
	}
	all = append(all, runAll(settingsChecks, w, outside, Outside)...)
	for i := range all {
		r := &all[i]
		r.Expected, r.Got.What = fmt.Sprintf("device %d: %s", device, r.Expected), fmt.Sprintf("device %d: %s", device, r.Got.What)
	}
	return all
}

var (
	insideChecks  = slices.Concat(environmentChecks, smiChecks, nvmlChecks, cudaChecks, pythonChecks, sliceChecks)
	outsideChecks = slices.Concat(settingsChecks, filesChecks)
	deviceChecks  = slices.DeleteFunc(slices.Clone(cudaChecks), func(c check[Inside]) bool {
		return !slices.Contains([]string{"cuda.name", "cuda.uuid", "cuda.total", "cuda.below", "cuda.above"}, c.name)
	})
)
