package verify

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// script is the program that Python runs.
//
//go:embed script.py
var script string

// Follow returns the last question, for Python. If the session's own programs use the GPU, as the probe has reported,
// the script uses only a little of its memory.
func Follow(answers map[string]Output) Question {
	q := Question{Key: askPython, Argv: []string{"python3", "-"}, Stdin: script}
	if busy, _ := parse(answers[askProbe].Text).first("busy"); busy == "1" {
		q.Argv = append(q.Argv, "gently")
	}
	return q
}

const pythonFix = "something in the session's Python bypasses the disguise: see the checks of cuda and nvml, and what PYTHONPATH and the packages set"

// python checks Python's answers about a module; "" is Python itself.
func python(module, key string, words func(string) string) func(Wanted, Inside) answer {
	return func(_ Wanted, in Inside) answer {
		out := in.Answers[askPython]
		printed := parse(out.Text)
		missing, lacks := printed.first(module + ".missing")
		broken, fails := printed.first(module + ".broken")
		value, said := printed.first(key)
		switch {
		case out.absent():
			return skip("there is no python3 in the session")
		case lacks:
			return skip(missing)
		case fails:
			return found(broken)
		case !said:
			return found(out.ended())
		case words != nil:
			return found(words(value))
		}
		return found(value)
	}
}

const noRuntime = "PyTorch finds no GPU there without compute = \"cpu\" in the host block"

// torch checks an answer of PyTorch about the GPU. On a simulated host it has one where the CPU computes in its place.
func torch(key string, words func(string) string) func(Wanted, Inside) answer {
	ask := python("torch", key, words)
	return func(w Wanted, in Inside) answer {
		out := in.Answers[askPython]
		printed := parse(out.Text)
		_, fails := printed.first("torch.broken")
		_, lacks := printed.first("torch.missing")
		if gpu, _ := printed.first("torch.gpu"); w.Simulated && gpu != "True" && !fails && !lacks && !out.absent() {
			return answer{cannot: noRuntime}
		}
		a := ask(w, in)
		if a.skip == "" {
			a.by, _ = printed.first("torch.by")
		}
		return a
	}
}

// memoryWords formats a count of bytes; other texts stay unchanged.
func memoryWords(bytes string) string {
	if n, err := strconv.ParseUint(bytes, 10, 64); err == nil {
		return inMiB(n)
	}
	return bytes
}

func propertyWords(both string) string {
	if i := strings.LastIndex(both, ", "); i >= 0 {
		return both[:i+2] + memoryWords(both[i+2:])
	}
	return both
}

var pythonChecks = slices.Concat([]check[Inside]{
	{name: "python.part", class: Python, applies: func(w Wanted) bool { return w.PythonIn != "" },
		expected: func(w Wanted) string { return "sitecustomize of " + w.PythonIn },
		found:    python("python", "python.part", func(dir string) string { return "sitecustomize of " + dir }),
		fix:      "PYTHONPATH is replaced in the session, or Python is run with -I or -S; keep the session's own folder first in it"},
}, of(Python, pythonFix, []check[Inside]{
	{name: "torch.name", expected: wantsName, found: torch("torch.name", nil)},
	{name: "torch.memory", expected: wantsMemory, found: torch("torch.memory", memoryWords)},
	{name: "torch.properties", expected: func(w Wanted) string { return w.Name + ", " + wantsMemory(w) }, found: torch("torch.properties", propertyWords)},
}...), of(Python, capFix, []check[Inside]{
	{name: "torch.below", expected: always("granted"), found: torch("torch.below", nil)},
	{name: "torch.above", expected: always("out of memory"), found: torch("torch.above", nil)},
}...), of(Python, "the target has no TF32: the program or its packages switch it on again", []check[Inside]{
	{name: "torch.tf32", applies: func(w Wanted) bool { return w.LacksTF32 }, expected: always("off"), found: python("torch", "torch.tf32", nil)},
}...), of(Python, pythonFix, []check[Inside]{
	{name: "torch.fork", expected: always("a child has the GPU"), found: torch("torch.fork", nil)},
	{name: "pynvml.name", expected: wantsName, found: python("pynvml", "pynvml.name", nil)},
	{name: "pynvml.memory", expected: wantsMemory, found: python("pynvml", "pynvml.memory", memoryWords)},
}...))
