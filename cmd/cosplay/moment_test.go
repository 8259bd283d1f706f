package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"cosplay/internal/agent"
	"cosplay/internal/durable"
	"cosplay/internal/public"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// At the moment of a number, counted from 1, the tests' cosplay dies by SIGKILL,
// gets signals, waits until its terminal hangs up, or finds its disk full; so does its
// agent, which counts its own, but it only dies. Or the moments are listed in a file.
const (
	diesAt      = "COSPLAY_TEST_DIES_AT"
	agentDiesAt = "COSPLAY_TEST_AGENT_DIES_AT"
	signalsAt   = "COSPLAY_TEST_SIGNALS_AT" // "20 INT" or, for one after the other, "20 INT TERM"
	hangsUpAt   = "COSPLAY_TEST_HANGS_UP_AT"
	fullAt      = "COSPLAY_TEST_FULL_AT"
	listsIn     = "COSPLAY_TEST_MOMENTS"

	patience  = "COSPLAY_TEST_PATIENCE"    // how long it waits for a call of NVML
	inUseWait = "COSPLAY_TEST_IN_USE_WAIT" // how long it repeats a call that answers IN_USE
)

// followMoments makes this process do what the variables above say.
func followMoments() {
	if d, err := time.ParseDuration(os.Getenv(patience)); err == nil {
		agent.Patience = d
	}
	if d, err := time.ParseDuration(os.Getenv(inUseWait)); err == nil {
		agent.InUseWait = d
	}
	happens := map[string]func(words []string){
		diesAt:    func([]string) { die() },
		signalsAt: signalled,
		hangsUpAt: func([]string) { awaitHangUp() },
		fullAt:    func([]string) { fillDisk() },
	}
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		happens = map[string]func([]string){agentDiesAt: happens[diesAt]}
	} else if list := os.Getenv(listsIn); list != "" {
		durable.OnMoment = func(what string) { note(list, what) }
	}
	for variable, do := range happens {
		number, rest, _ := strings.Cut(os.Getenv(variable), " ")
		last, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		var count atomic.Int64
		durable.OnMoment = func(string) {
			if count.Add(1) == last {
				do(strings.Fields(rest))
			}
		}
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// signalled sends signals to this process, each after the one before was delivered,
// and leaves time to handle them; it does not return after the second, which ends the process if it is not SIGHUP.
func signalled(names []string) {
	delivered := make(chan os.Signal, 2)
	for _, name := range names {
		number := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[name]
		signal.Notify(delivered, number)
		_ = syscall.Kill(os.Getpid(), number)
		<-delivered
	}
	time.Sleep(200 * time.Millisecond)
	if len(names) > 1 && names[1] != "HUP" {
		select {}
	}
}

// awaitHangUp waits until the terminal of this process hangs up, and leaves time to handle the signal.
func awaitHangUp() {
	for term.IsTerminal(0) {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
}

// fillDisk leaves no room on the disk of the project's folder.
func fillDisk() {
	file, err := os.Create("filler")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

func note(path, line string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintln(file, line)
}

// with runs a command with one variable more.
func (p project) with(variable string, value any, args ...string) (string, error) {
	c := p.command(args...)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%v", variable, value))
	out, err := c.CombinedOutput()
	return string(out), err
}

// moments runs a command and lists the moments at which it can be killed.
func (p project) moments(args ...string) []string {
	p.t.Helper()
	list := filepath.Join(p.t.TempDir(), "moments")
	if out, err := p.with(listsIn, list, args...); err != nil {
		p.t.Fatalf("cosplay %v: %v\n%s", args, err, out)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// dies runs a command that is killed at its nth moment, and waits until its agent
// has released everything. It reports whether there was such a moment.
func (p project) dies(n int, args ...string) bool {
	p.t.Helper()
	out, err := p.with(diesAt, n, args...)
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		p.t.Fatalf("cosplay %v, to be killed at moment %d: %v\n%s", args, n, err, out)
	}
	p.quiet()
	return killed
}

// quiet waits until no process of cosplay's has the state's lock.
func (p project) quiet() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	locks, _ := filepath.Glob(filepath.Join(p.dir, "*.lock"))
	for _, path := range locks {
		lock, err := durable.Acquire(ctx, path, "test", nil)
		if err != nil {
			p.t.Fatal(err)
		}
		_ = lock.Release()
	}
}

// copyOf keeps a folder as it is now; restore brings it back.
func (p project) copyOf() (restore func()) {
	p.t.Helper()
	kept := filepath.Join(p.t.TempDir(), "kept")
	copyTree := func(from, to string) {
		p.t.Helper()
		if out, err := bounded(p.t, "cp", "-a", from, to).CombinedOutput(); err != nil {
			p.t.Fatalf("%v\n%s", err, out)
		}
	}
	copyTree(p.dir, kept)
	return func() {
		p.t.Helper()
		if err := os.RemoveAll(p.dir); err != nil {
			p.t.Fatal(err)
		}
		copyTree(kept, p.dir)
	}
}

// shown is the simulated host as its hardware is.
func (p project) shown() public.Simulated {
	p.t.Helper()
	host, err := sim.Open(filepath.Join(p.dir, ".cosplay/sim/lab"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer host.Close()
	shown, err := host.Show()
	if err != nil {
		p.t.Fatal(err)
	}
	return shown
}

// slices counts those of all GPUs.
func (p project) slices() int {
	n := 0
	for _, g := range p.shown().GPUs {
		n += len(g.Slices)
	}
	return n
}

// traces lists what is left on a host that was given back: before is what it was.
func (p project) traces(before []byte) []string {
	p.t.Helper()
	var left []string
	if !bytes.Equal(p.hardware(), before) {
		left = append(left, fmt.Sprintf("hardware that is not as it was: %+v", p.shown().GPUs))
	}
	for _, pattern := range []string{".cosplay/sessions/*/*/*", ".cosplay/sim/lab/ledger/*", "*.journal"} {
		found, err := filepath.Glob(filepath.Join(p.dir, pattern))
		if err != nil {
			p.t.Fatal(err)
		}
		left = append(left, found...)
	}
	states, _ := filepath.Glob(filepath.Join(p.dir, "*.json"))
	for _, path := range states {
		prior, err := state.Store{Path: path}.Load()
		if err != nil || len(prior.Sessions)+len(prior.GPUs) > 0 {
			left = append(left, fmt.Sprintf("in the state: %+v %+v %v", prior.Sessions, prior.GPUs, err))
		}
	}
	return left
}
