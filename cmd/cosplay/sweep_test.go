package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cosplay/internal/agent"
	hosts "cosplay/internal/machine"
	"cosplay/internal/public"
	"cosplay/internal/sim"
)

// sweepAnswers are the ways in which a driver does not offer a function.
var sweepAnswers = []string{"NOT_SUPPORTED", "NO_PERMISSION", "FUNCTION_NOT_FOUND", "999", "absent"}

// sweepConfig has sessions in slices and one by MPS, and as many GPUs as sessions, so that there is room also where each
// session needs a whole GPU.
const sweepConfig = `
host "lab" { simulate = "3 x h200" }
session "w" {
  count  = 2
  target = "2060"
}
session "part" {
  target  = "2060"
  sharing = "mps"
}
`

// TestEveryFunctionUnavailable makes each function of the simulated driver unavailable,
// once before apply and once between apply and destroy: plan, apply, drift and destroy
// end as the agent's table of calls says, and the hardware is as before.
//
// COSPLAY_SWEEP=all plays every function with every answer; without it each call of the
// agent has one of the answers, and of the functions that it does not call every tenth
// is played.
func TestEveryFunctionUnavailable(t *testing.T) {
	t.Parallel()
	var (
		all     = os.Getenv("COSPLAY_SWEEP") == "all"
		counts  = map[string]int{}
		writing sync.Mutex
	)
	t.Run("functions", func(t *testing.T) {
		for i, function := range driverFunctions(t) {
			for n, answer := range sweepAnswers {
				_, called := calledAs(function, answer)
				if !all && (n != i%len(sweepAnswers) || !called && i%10 != 0) {
					continue
				}
				for _, when := range []string{"before apply", "before destroy"} {
					t.Run(function+"="+answer+" "+when, func(t *testing.T) {
						t.Parallel()
						s := newUnavailable(t, function, answer)
						end := s.beforeApply
						if when == "before destroy" {
							end = s.beforeDestroy
						}
						outcome := end()
						writing.Lock()
						defer writing.Unlock()
						counts[when+": "+outcome]++
						counts["stories"]++
					})
				}
			}
		}
	})
	for _, outcome := range slices.Sorted(keysOf(counts)) {
		fmt.Printf("sweep: %4d %s\n", counts[outcome], outcome)
	}
}

func keysOf(counts map[string]int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range counts {
			if !yield(name) {
				return
			}
		}
	}
}

// driverFunctions are those that the simulated driver implements; all others answer
// Not Supported in every test.
func driverFunctions(t *testing.T) []string {
	t.Helper()
	file, err := elf.Open("../../driver/lib/libnvidia-ml.so.1")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if elf.ST_BIND(s.Info) == elf.STB_GLOBAL && elf.ST_TYPE(s.Info) == elf.STT_FUNC && strings.HasPrefix(s.Name, "nvml") {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	for _, c := range agent.Calls() {
		if !slices.Contains(names, c.Name) {
			t.Errorf("the agent calls %s, which the simulated driver does not implement", c.Name)
		}
	}
	return names
}

// sweepSame are functions of the simulated driver that answer through another one.
var sweepSame = map[string]string{
	"nvmlDeviceGetMemoryInfo_v2":             "nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
}

// calledAs is the agent's call that a function with an answer is felt by: a fault of a
// function is one of all its versions, an absent function is itself alone.
func calledAs(function, answer string) (agent.Call, bool) {
	for _, c := range agent.Calls() {
		version, _ := strings.CutPrefix(c.Name, function)
		switch {
		case c.Name == function,
			answer != "absent" && strings.HasPrefix(c.Name, function) && len(version) == 3 && strings.HasPrefix(version, "_v"),
			answer != "absent" && sweepSame[function] == c.Name:
			return c, true
		}
	}
	return agent.Call{}, false
}

// unavailable is the story of one function.
type unavailable struct {
	project
	host   *sim.Host
	fault  string
	before []byte
	call   agent.Call
	called bool
}

func newUnavailable(t *testing.T, function, answer string) unavailable {
	s := unavailable{project: newProject(t, sweepConfig)}
	s.call, s.called = calledAs(function, answer)
	if answer != "absent" && (s.call.Name == "nvmlShutdown" || s.call.Name == "nvmlErrorString") {
		s.called = false // what they answer is no matter
	}
	s.fault = function + ":0=" + answer
	models, err := hosts.SimulatedModels("", "3 x h200")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.dir, ".cosplay/sim/lab")
	if err := sim.Create(dir, models, sim.Options{Seed: "lab", Simulates: "3 x h200"}); err != nil {
		t.Fatal(err)
	}
	if s.host, err = sim.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.host.Close() })
	s.before = s.hardware()
	return s
}

// breaks makes the function unavailable.
func (s unavailable) breaks() {
	s.t.Helper()
	fault, err := sim.ParseFault(s.fault)
	if err == nil {
		err = s.host.SetFault(fault)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s unavailable) heals() {
	s.t.Helper()
	if err := s.host.ClearFaults(); err != nil {
		s.t.Fatal(err)
	}
}

// ends runs a command and checks its exit code.
func (s unavailable) ends(want int, args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	out, _ := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); got != want {
		s.t.Errorf("cosplay %s ends with %d, want %d:\n%s", strings.Join(args, " "), got, want, out)
	}
	return string(out)
}

// asBefore checks that nothing of cosplay is left on the host.
func (s unavailable) asBefore() {
	s.t.Helper()
	s.run("status") // the driver forgets clients that ended without a word when the next one comes
	if !bytes.Equal(s.hardware(), s.before) {
		shown, _ := s.host.Show()
		s.t.Errorf("the hardware is not as before: %+v", shown.GPUs)
	}
}

// required reports whether no command can work without the call.
func (s unavailable) required() bool {
	return s.called && s.call.Feature == "" && !s.call.Optional
}

// perGPU reports whether a required call makes GPUs unusable, and not the host.
func (s unavailable) perGPU() bool {
	return s.call.Name == "nvmlDeviceGetHandleByIndex_v2" || s.call.Name == "nvmlDeviceGetUUID"
}

func (s unavailable) beforeApply() string {
	s.breaks()
	if s.required() {
		nothing := 1
		if s.perGPU() { // what no GPU holds needs no GPU to be removed
			nothing = 0
		}
		s.ends(1, "plan")
		s.ends(1, "apply", "--auto-approve")
		s.ends(nothing, "drift")
		s.ends(nothing, "destroy", "--auto-approve")
		s.heals()
		s.asBefore()
		return "every command refuses, nothing is touched"
	}
	s.ends(0, "plan")
	s.ends(0, "apply", "--auto-approve")
	s.ends(0, "drift")
	s.ends(0, "plan", "--detailed-exitcode")
	outcome := s.destroys()
	if s.called && s.call.Feature != "" {
		return "without " + string(s.call.Feature) + "; " + outcome
	}
	return "as always; " + outcome
}

func (s unavailable) beforeDestroy() string {
	s.run("apply", "--auto-approve")
	s.breaks()
	if s.required() {
		code := 1
		if s.perGPU() {
			code = 2 // the GPU is lost
		}
		s.ends(code, "drift")
		held := s.hardware()
		s.ends(1, "destroy", "--auto-approve")
		if !bytes.Equal(s.hardware(), held) && !s.perGPU() {
			s.t.Error("destroy has changed the hardware")
		}
		s.heals()
		s.run("destroy", "--auto-approve")
		s.asBefore()
		return "destroy stops, and restores everything once the function is back"
	}
	s.ends(0, "drift")
	s.ends(0, "plan")
	return s.destroys()
}

// destroys destroys everything, and again once the function is back where something was
// left.
func (s unavailable) destroys() string {
	s.t.Helper()
	want := agent.Restores
	if s.called && s.applied() {
		want = s.call.Destroy
	}
	if want == agent.Restores {
		s.ends(0, "destroy", "--auto-approve")
		s.heals()
		s.asBefore()
		return "destroy restores everything"
	}
	s.ends(1, "destroy", "--auto-approve")
	s.rest()
	s.heals()
	s.run("destroy", "--auto-approve")
	s.asBefore()
	return "destroy restores the rest, and everything once the function is back"
}

// applied reports whether apply has changed what destroy needs the call for.
func (s unavailable) applied() bool {
	shown, err := s.host.Show()
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.ContainsFunc(shown.GPUs, func(g public.SimulatedGPU) bool {
		switch s.call.Feature {
		case "mig":
			return g.MIG
		case "power":
			return g.PowerMW != 700_000
		case "clock":
			return g.ClockLockMHz != 0
		case "compute-mode":
			return g.ComputeMode != "default"
		}
		return g.Persistence
	})
}

// rest checks that everything was restored that does not need the call.
func (s unavailable) rest() {
	s.t.Helper()
	shown, err := s.host.Show()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, g := range shown.GPUs {
		for feature, left := range map[string]bool{"mig": g.MIG || len(g.Slices) > 0, "power": g.PowerMW != 700_000, "clock": g.ClockLockMHz != 0, "persistence": g.Persistence, "compute-mode": g.ComputeMode != "default"} {
			if left && feature != string(s.call.Feature) {
				s.t.Errorf("destroy without %s left the GPU's %s: %+v", s.call.Name, feature, g)
			}
		}
	}
}
