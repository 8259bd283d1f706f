package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const fleet = `
host "lab" { simulate = "1 x h200" }
session "worker" {
  count  = 7
  target = "2060"
}
`

// project is a folder with a configuration, and the cosplay to run in it.
type project struct {
	t   *testing.T
	dir string
	env []string // besides that of the tests
}

func newProject(t *testing.T, text string) project {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return project{t: t, dir: dir}
}

func (p project) command(args ...string) *exec.Cmd {
	c := bounded(p.t, "cosplay", args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), p.env...)
	return c
}

// run must succeed.
func (p project) run(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("cosplay %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// hardware is the state of the simulated host, without the programs that use its library.
func (p project) hardware() []byte {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, ".cosplay/sim/lab/host"))
	if err != nil {
		p.t.Fatal(err)
	}
	if !bootIDForm.Match(data[bootIDAt:clientsAt]) {
		p.t.Fatalf("the file of the host has no boot ID at %d: struct sim_host of driver/sim/state.h has changed", bootIDAt)
	}
	clear(data[clientsAt : clientsAt+clientsSize]) // a killed command's agent may be reading still
	return data
}

// Where the file of a simulated host has its boot ID and the programs that use its library, bytes.
const (
	bootIDAt    = 364
	clientsAt   = bootIDAt + 44
	clientsSize = 1024 * 16
)

var bootIDForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\x00+$`)

// killer kills commands with SIGKILL after a random time within a window. The window
// follows the machine's load: it shrinks when a command ended first, and grows when one
// had not begun.
type killer struct {
	project
	random      *rand.Rand
	window      time.Duration
	interrupted int // commands that were killed in the middle of a run
}

func (k *killer) kill(args ...string) {
	k.t.Helper()
	c := k.command(args...)
	if err := c.Start(); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(time.Duration(k.random.Int64N(int64(k.window))))
	_ = c.Process.Kill()
	_ = c.Wait()
	cut := journals(k.t, k.dir)
	k.interrupted += cut
	switch {
	case c.ProcessState.Exited():
		k.window -= k.window / 8
	case cut == 0:
		k.window += k.window / 16
	}
	k.window = max(k.window, 20*time.Millisecond)
}

// TestKill: whenever apply or destroy is killed, the next apply converges, and
// the next destroy leaves the host as it was.
func TestKill(t *testing.T) {
	t.Parallel()
	moments := 8
	if every {
		moments = 20
	}
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	begun := time.Now()
	p.run("apply", "--auto-approve")
	whole := time.Since(begun)
	p.run("destroy", "--auto-approve")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := killer{project: p, random: rand.New(rand.NewPCG(seed, 1)), window: whole}

	// A kill before the first step or after the last proves little: go on until
	// enough have hit the middle.
	rounds := 0
	for ; k.interrupted < 2*moments && rounds < 10*moments; rounds++ {
		k.kill("apply", "--auto-approve")
		p.run("apply", "--auto-approve")
		p.run("plan", "--detailed-exitcode")

		k.kill("destroy", "--auto-approve")
		p.run("destroy", "--auto-approve")
		if !bytes.Equal(p.hardware(), before) {
			t.Fatalf("the host is not as it was:\n%s", p.run("sim", "show"))
		}

		k.kill("apply", "--auto-approve")
		p.run("destroy", "--auto-approve")
		if !bytes.Equal(p.hardware(), before) {
			t.Fatalf("the host is not as it was:\n%s", p.run("sim", "show"))
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, ".cosplay/sessions/*/*/*")); len(left) > 0 {
			t.Fatalf("session folders are left: %v", left)
		}
	}
	t.Logf("%d commands killed within %s, %d of them in the middle of a run", 3*rounds, k.window, k.interrupted)
	if k.interrupted < moments {
		t.Errorf("only %d of %d kills hit a run: the test proves too little", k.interrupted, 3*rounds)
	}
}

// journals counts the journals that interrupted runs have left.
func journals(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestLastRemovalKilled: a destroy that is killed after it has removed the last session's folder, and before it removes
// what the sessions shared, leaves that for the next command.
func TestLastRemovalKilled(t *testing.T) {
	t.Parallel()
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	p.run("apply", "--auto-approve")
	args := []string{"destroy", "--auto-approve", "--parallelism", "1"}
	fresh := p.copyOf()
	listed := p.moments(args...)
	fresh()
	last := 0
	for i, moment := range listed {
		if moment == "after effect plan.Unprepare" {
			last = i + 1
		}
	}
	if last == 0 || !p.dies(last, args...) {
		t.Fatalf("no folder was removed in %d moments", len(listed))
	}
	if err := os.MkdirAll(filepath.Join(p.dir, ".cosplay/sessions/default/lab/.shared/python"), 0o755); err != nil {
		t.Fatal(err)
	}
	if wrong := p.destroysAll(before); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}
