package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

var (
	chaosRounds = flag.Int("rounds", 50, "how many rounds of chaos")
	chaosSeed   = flag.Uint64("seed", 1, "the seed of the chaos; 0 is a new one, as make chaos has it: a change is not judged by luck")
	chaosDocker = flag.Bool("docker", false, "chaos with containers")
)

// chaosStory is how many rounds a host lives through, from its making until both
// projects are destroyed.
const chaosStory = 25

// fewStories run one after another, in the place that their test has among those that run at once. Stories that ran beside
// each other would wait behind all other tests, and the last of them would run alone.
const fewStories = 2

// TestChaos: applies, changes of the configuration, destroys, kills, faults, a
// second project, neighbours and reboots, in any order. Nothing foreign is ever
// harmed, no baseline is lost, and in the end the host is what it was.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	if *chaosDocker {
		needEngine(t)
	} else {
		t.Parallel()
	}
	stories := (*chaosRounds + chaosStory - 1) / chaosStory
	fmt.Printf("chaos: seed %d, %d stories of %d rounds; one alone: make chaos ROUNDS=%d SEED=, the seed of its name\n", seed, stories, chaosStory, chaosStory)
	var (
		all     = map[string]int{}
		writing sync.Mutex
	)
	t.Run("seed", func(t *testing.T) {
		for i := range stories {
			t.Run(strconv.FormatUint(seed+uint64(i), 10), func(t *testing.T) {
				if stories > fewStories && !*chaosDocker { // an engine has one container of a name
					t.Parallel()
				}
				c := newChaos(t, seed+uint64(i))
				defer func() {
					writing.Lock()
					defer writing.Unlock()
					for what, n := range c.tally {
						all[what] += n
					}
				}()
				c.run()
			})
		}
	})
	fmt.Printf("chaos: %v\n", all)
}

// chaos is one story: a simulated host, two projects in one folder, and an admin
// who changes anything at random.
type chaos struct {
	project
	random *rand.Rand
	gpus   int
	before []byte
	start  public.Simulated

	reboots bool               // they forget a baseline that is not the driver's own
	foreign map[string]foreign // slices of the admin's, by UUID
	forged  []string           // containers with the labels of one of the project's
	log     []string
	tally   map[string]int
}

// foreign is where a slice of the admin's is.
type foreign struct {
	gpu, instance, start int
	stays                bool // it was there before all
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{project: newProject(t, ""), random: rand.New(rand.NewPCG(seed, 1)), foreign: map[string]foreign{}, tally: map[string]int{}}
	c.gpus = 1 + c.random.IntN(2)
	os.Remove(filepath.Join(c.dir, "fleet.hcl"))
	c.configure("a")
	c.configure("b")
	c.project.run("--file", "a.hcl", "--state", "a.json", "plan")
	switch c.random.IntN(3) {
	case 0:
		c.reboots = true
	case 1:
		c.sim("set", "0", "persistence", "on")
		c.sim("set", "0", "power-limit", "500")
	case 2:
		c.sim("set", "0", "power-limit", "500")
		c.sim("set", "0", "persistence", "on")
		c.sim("set", "0", "mig", "on")
		c.sim("create-slice", "0", "2g.35gb", "2")
		c.meet(0, 2, true)
	}
	c.start, c.before = c.shown(), c.hardware()
	return c
}

func (c *chaos) run() {
	defer func() {
		for _, id := range c.forged {
			_ = bounded(c.t, "docker", "rm", "-f", id).Run()
		}
		if c.t.Failed() {
			for _, project := range []string{"a", "b"} {
				removeContainersOf(c.t, filepath.Join(c.dir, project+".json"))
			}
			c.t.Logf("the story:\n%s", strings.Join(c.log, "\n"))
		}
	}()
	for round := range chaosStory {
		c.round()
		c.tally["rounds"]++
		c.note("-- end of round %d, %d GPUs in hand", round+1, len(c.held()))
		for _, wrong := range c.wrong() {
			c.t.Errorf("round %d: %s", round+1, wrong)
		}
		if c.t.Failed() {
			return
		}
	}
	c.end()
}

// round does one thing to the world.
func (c *chaos) round() {
	who := []string{"a", "b"}[c.random.IntN(2)]
	if *chaosDocker && c.random.IntN(4) == 0 {
		c.forge()
	}
	switch n := c.random.IntN(100); {
	case n < 15:
		c.configure(who)
		c.apply(who)
	case n < 25:
		c.apply(who)
	case n < 32:
		c.destroy(who)
	case n < 52:
		c.killed(who)
	case n < 70:
		c.faulty(who)
	default:
		c.admin()
	}
}

// configure writes a new configuration of a project.
func (c *chaos) configure(who string) {
	targets := []string{"2060", "3060", "rtx-3070", "rtx-2080-ti"}
	runtime, more := "process", ""
	if *chaosDocker {
		runtime, more = "docker", "  image = \"cosplay-test/scratch\"\n  pull = \"never\"\n  command = [\"/busybox\", \"sleep\", \"3600\"]\n  ssh {\n    enabled = false\n  }\n"
	}
	if c.random.IntN(3) == 0 {
		more += fmt.Sprintf("  gpu = %d\n", c.random.IntN(c.gpus))
	}
	count, target := []int{0, 1, 2, 3, 4, 5, 3, 4}[c.random.IntN(8)], targets[c.random.IntN(len(targets))]
	text := fmt.Sprintf("host \"lab\" {\n  simulate = \"%d x h200\"\n  runtime = %q\n}\nsession \"chaos%s\" {\n  count = %d\n  target = %q\n  env = { N = %d }\n%s}\n",
		c.gpus, runtime, who, count, target, c.random.IntN(3), more)
	if err := os.WriteFile(filepath.Join(c.dir, who+".hcl"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.note("%s wants %d x %s%s", who, count, target, strings.Join(strings.Fields(more), " "))
}

func (c *chaos) note(format string, args ...any) { c.log = append(c.log, fmt.Sprintf(format, args...)) }

// try runs a command of a project; the variables are for the moments.
func (c *chaos) try(who string, variables []string, args ...string) (string, error) {
	args = append([]string{"--file", who + ".hcl", "--state", who + ".json"}, args...)
	if slices.Contains([]string{"apply", "destroy"}, args[4]) {
		args = append(args, "--auto-approve", "--parallelism", "1", "--lock-timeout", "1m")
	}
	command := c.command(args...)
	command.Env = append(os.Environ(), variables...)
	out, err := command.CombinedOutput()
	c.note("%s: %s %v: %v", who, strings.Join(args[4:], " "), variables, err)
	c.quiet()
	return string(out), err
}

func (c *chaos) apply(who string) {
	out, err := c.try(who, nil, "apply")
	if err != nil {
		c.tally["apply refused"]++
		c.note("%s", lastLines(out))
		return
	}
	c.tally["applied"]++
	if c.anyLost() {
		return
	}
	if out, err := c.try(who, nil, "plan", "--detailed-exitcode"); err != nil {
		c.t.Errorf("after apply there is still something to do for %s: %v\n%s", who, err, out)
	}
}

func (c *chaos) destroy(who string) {
	c.tally["destroyed"]++
	out, err := c.try(who, nil, "destroy")
	kept := len(c.foreign) > 0 && strings.Contains(oneLine(out), "Not all restored: ") // MIG mode, until they are removed
	if err != nil && !kept && !c.anyLost() {
		c.t.Errorf("%s cannot be destroyed: %v\n%s", who, err, out)
	}
}

// something is a command that has something to do, most of the time.
func (c *chaos) something(who string) string {
	if c.random.IntN(4) == 0 {
		return "destroy"
	}
	if c.random.IntN(4) > 0 {
		c.configure(who)
	}
	return "apply"
}

// killed has a command die at some moment, or its agent.
func (c *chaos) killed(who string) {
	what, variable, n := c.something(who), diesAt, 1+c.random.IntN(60)
	if c.random.IntN(3) == 0 {
		variable, n = agentDiesAt, 1+c.random.IntN(15)
	}
	_, err := c.try(who, []string{fmt.Sprintf("%s=%d", variable, n)}, what)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		c.tally["killed"]++
	} else if err != nil {
		c.tally["agent killed or refused"]++
	}
}

// faulty lets NVML calls of a command fail, lie or hang.
func (c *chaos) faulty(who string) {
	functions := []string{"nvmlDeviceSetMigMode", "nvmlDeviceSetPersistenceMode", "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks",
		"nvmlDeviceResetGpuLockedClocks", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceDestroy",
		"nvmlGpuInstanceDestroy", "nvmlDeviceGetGpuInstances", "nvmlDeviceGetMigMode", "nvmlDeviceGetPersistenceMode", "nvmlDeviceGetGpuInstanceById",
		"nvmlGpuInstanceGetInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex", "nvmlInit", "nvmlDeviceGetMigDeviceHandleByIndex"}
	what, hangs := c.something(who), 0
	for range 1 + c.random.IntN(3) {
		f := sim.Fault{Function: functions[c.random.IntN(len(functions))], Nth: c.random.IntN(6), Action: sim.Answer, Code: []int{999, 19, 4, 15}[c.random.IntN(4)]}
		if strings.Contains(f.Function, "Get") {
			f.Nth *= 8
		} else if c.random.IntN(3) == 0 {
			f.Action, f.Code = sim.Ignore, 0
		}
		if c.random.IntN(8) == 0 {
			f.Action, f.Code = sim.Hang, 0
			hangs++
		}
		c.note("fault %s", f)
		c.fault(f)
	}
	var variables []string
	if hangs > 0 { // or it would wait for as long as people have to
		variables = []string{patience + "=2s"}
		c.tally["calls made to hang"] += hangs
	}
	if out, err := c.try(who, variables, what); err != nil {
		c.note("%s", lastLines(out))
		c.tally["faults struck"]++
		if hangs > 0 && strings.Contains(oneLine(out), "2s") {
			c.tally["hung calls struck"]++
		}
	}
	c.sim("fault", "--clear")
}

func (c *chaos) anyLost() bool {
	return slices.ContainsFunc(c.shown().GPUs, func(g public.SimulatedGPU) bool { return g.Lost })
}

// ledger is the host's, by GPU.
func (c *chaos) held() map[string]resource.Page {
	book, err := ledger.Book{Dir: filepath.Join(c.dir, ".cosplay/sim/lab")}.Read()
	if err != nil {
		c.t.Errorf("the ledger cannot be read: %v", err)
	}
	held := map[string]resource.Page{}
	for _, g := range book {
		held[g.UUID] = g
	}
	return held
}

// wrong lists what must not be, after any round.
func (c *chaos) wrong() (wrong []string) {
	shown, books := c.shown(), c.held()
	seen := map[string]bool{}
	for i, g := range shown.GPUs {
		held, inHand := books[g.UUID]
		was := c.start.GPUs[i]
		for _, s := range g.Slices {
			if len(s.Compute) > 0 && c.knows(s.Compute[0].UUID) {
				seen[s.Compute[0].UUID] = true
			} else if !notedIn(held, s) {
				wrong = append(wrong, fmt.Sprintf("GPU %d: a slice of no project: %+v", i, s))
			}
		}
		if !inHand && (g.MIG != was.MIG || g.Persistence != was.Persistence || g.PowerMW != was.PowerMW || g.ClockLockMHz != was.ClockLockMHz) {
			wrong = append(wrong, fmt.Sprintf("GPU %d belongs to no project and was not restored: %+v, not %+v", i, g, was))
		}
		if b := held.Baseline; inHand && (!b.Is(resource.MIGMode, resource.Bit(was.MIG)) || !b.Is(resource.PersistenceMode, resource.Bit(was.Persistence)) || !b.Is(resource.PowerLimit, was.PowerMW)) {
			wrong = append(wrong, fmt.Sprintf("GPU %d: the baseline is %v, but it was %+v", i, b, was))
		}
	}
	for uuid, f := range c.foreign {
		if !seen[uuid] {
			wrong = append(wrong, fmt.Sprintf("the foreign slice %s %+v was destroyed", uuid, f))
		}
	}
	for _, who := range []string{"a", "b"} {
		if _, err := (state.Store{Path: filepath.Join(c.dir, who+".json")}).Load(); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, id := range c.forged {
		if bounded(c.t, "docker", "inspect", id).Run() != nil {
			wrong = append(wrong, "the forged container "+id+" was removed")
		}
	}
	return wrong
}

func notedIn(held resource.Page, s public.SimulatedSlice) bool {
	return slices.ContainsFunc(held.Holders, func(h resource.Holder) bool {
		return slices.ContainsFunc(h.Slices, func(o resource.LiveSlice) bool { return o.Profile == s.Profile && o.Start == s.Start })
	})
}

// end destroys both projects and looks for what is left.
func (c *chaos) end() {
	for gpu := range c.gpus {
		c.sim("set", strconv.Itoa(gpu), "lost", "off")
	}
	c.removeForeign()
	c.destroy("a")
	c.destroy("b")
	now := bytes.Replace(c.hardware(), []byte(c.shown().BootID), []byte(c.start.BootID), 1)
	left := c.traces(c.hardware()) // all but the hardware
	if c.tally["faults struck"] > 0 {
		// A fault makes cosplay record, until the next boot, that the driver lacks a call.
		left = slices.DeleteFunc(left, func(path string) bool { return strings.HasSuffix(path, ".lacks") })
	}
	if !bytes.Equal(now, c.before) {
		left = append(left, fmt.Sprintf("the host is not as it was: %+v, not %+v", c.shown(), c.start))
	}
	left = append(left, c.containers()...)
	if len(left) > 0 {
		c.t.Errorf("in the end there is left:\n%s", strings.Join(left, "\n"))
	}
}

// lastLines are where a command says what went wrong.
func lastLines(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
