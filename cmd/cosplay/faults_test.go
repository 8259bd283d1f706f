package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/sim"
)

const trio = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 3
  target = "2060"
}
`

// hard is a code (uninitialized) after which cosplay neither tries again nor continues
// without the call.
const hard = 1

// TestFaults: each NVML call fails, or confirms and does nothing, at each of its
// occurrences during apply and destroy. The command reports it and exits with 1,
// the state matches the host, the next apply converges, and the next destroy
// leaves the host as it was.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"apply", "destroy"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, trio)
			p.run("plan")
			p.run("sim", "set", "0", "persistence", "on")
			p.run("sim", "set", "0", "power-limit", "500")
			c := faultCases{project: p, phase: phase, before: p.hardware(), fresh: p.copyOf()}
			if phase == "destroy" {
				p.run("apply", "--auto-approve", "--parallelism", "1")
				c.fresh = p.copyOf()
			}
			c.all()
		})
	}
}

// faultCases are those of one command.
type faultCases struct {
	project
	phase  string
	before []byte // the host as it was found
	fresh  func() // the project as it is before the command

	tried, struck, failed int // faults; those that the driver met; those that made the command fail
}

func (c *faultCases) all() {
	calls := c.calls()
	total := 0
	for _, function := range slices.Sorted(maps.Keys(calls)) {
		times := calls[function]
		total += times
		getter := strings.Contains(function, "Get")
		for _, n := range occurrences(times, getter) {
			c.one(sim.Fault{Function: function, Nth: n, Action: sim.Answer, Code: hard})
			if !getter { // a wrong answer cannot be detected
				c.one(sim.Fault{Function: function, Nth: n, Action: sim.Ignore})
			}
		}
	}
	c.t.Logf("%s: %d calls of %d functions; of %d faults %d struck, and %d made the command fail", c.phase, total, len(calls), c.tried, c.struck, c.failed)
	if c.struck < c.tried*3/4 || c.failed < c.tried/3 {
		c.t.Error("too few faults struck: the test proves too little")
	}
}

// occurrences are the calls of a function that are tried: of one that changes something
// the first and the last, of another the last, which comes after changes. A getter that
// fails at first stops the command before any change. Calls between differ only in the
// session that they are made for.
func occurrences(times int, getter bool) []int {
	switch {
	case every:
		all := make([]int, times)
		for n := range all {
			all[n] = n + 1
		}
		return all
	case getter:
		return []int{times}
	}
	return slices.Compact([]int{1, times})
}

// calls counts how often the command calls each function of NVML: faults that wait
// for a later call have a counter that shows how many calls there were.
func (c *faultCases) calls() map[string]int {
	const never = 1 << 20
	all := driver.Names()
	counts := map[string]int{}
	var batch []string
	flush := func() {
		c.fresh()
		for _, function := range batch {
			c.fault(sim.Fault{Function: function, Nth: never, Action: sim.Hang})
		}
		c.run(c.phase, "--auto-approve", "--parallelism", "1")
		for _, f := range c.shown().Faults {
			if f.Nth < never {
				counts[f.Function] = never - f.Nth
			}
		}
		batch = nil
	}
	for _, name := range all {
		// A fault of nvmlInit is one of nvmlInit_v2 too.
		if base, _, versioned := strings.Cut(name, "_v"); versioned && slices.Contains(all, base) {
			continue
		}
		if batch = append(batch, name); len(batch) == 16 {
			flush()
		}
	}
	flush()
	return counts
}

func (p project) fault(f sim.Fault) {
	p.t.Helper()
	host, err := sim.Open(filepath.Join(p.dir, ".cosplay/sim/lab"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer host.Close()
	if err := host.SetFault(f); err != nil {
		p.t.Fatal(err)
	}
}

// one lets the command run into a fault.
func (c *faultCases) one(f sim.Fault) {
	c.t.Helper()
	c.fresh()
	c.fault(f)
	c.tried++
	out, err := c.command(c.phase, "--auto-approve", "--parallelism", "1").CombinedOutput()
	var wrong []string
	if err != nil {
		c.failed++
		wrong = reported(f, string(out), err)
	}
	if len(c.shown().Faults) == 0 {
		c.struck++
	}
	c.run("sim", "fault", "--clear")
	if out, _ := c.command("drift", "--json").CombinedOutput(); !strings.Contains(string(out), `"has_drift": false`) {
		wrong = append(wrong, fmt.Sprintf("the state is not true:\n%s", out))
	}
	wrong = append(wrong, c.converges(3)...)
	wrong = append(wrong, c.destroysAll(c.before)...)
	if len(wrong) > 0 {
		c.t.Errorf("%s, %s (%v):\n%s", c.phase, f, err, strings.Join(wrong, "\n"))
	}
}

// reported compares the output of a command with the fault that it met.
func reported(f sim.Fault, out string, err error) (wrong []string) {
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		wrong = append(wrong, fmt.Sprintf("it is no exit code 1: %v", err))
	}
	words := oneLine(out)
	if !ofHost(f.Function) && !strings.Contains(words, "GPU 0") {
		wrong = append(wrong, "the message names no GPU")
	}
	if f.Action == sim.Answer && !strings.Contains(words, fmt.Sprintf("(%d)", hard)) {
		wrong = append(wrong, "the message has no code")
	}
	if strings.Contains(words, "Not all done") && !strings.Contains(words, "✗ [") {
		wrong = append(wrong, "the message names no step")
	}
	if len(wrong) > 0 {
		wrong = append(wrong, out)
	}
	return wrong
}

// ofHost reports whether a function is about no GPU.
func ofHost(function string) bool {
	return strings.HasPrefix(function, "nvmlInit") || strings.HasPrefix(function, "nvmlSystem") || strings.HasPrefix(function, "nvmlDeviceGetCount")
}
