package disguise_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cosplay/driver"
	"cosplay/internal/need"
)

// holder is a program that allocates on command.
type holder struct {
	t      *testing.T
	cmd    *exec.Cmd
	input  io.Writer
	output *bufio.Reader
}

func (s cudaSession) hold(t *testing.T, program string) *holder {
	t.Helper()
	return holdOn(t, s.command(program, s.facade()))
}

func holdOn(t *testing.T, c *exec.Cmd) *holder {
	t.Helper()
	input, err := c.StdinPipe()
	check(t, err)
	output, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	h := &holder{t, c, input, bufio.NewReader(output)}
	t.Cleanup(h.kill)
	h.expect("ready")
	return h
}

func (h *holder) expect(want string) {
	h.t.Helper()
	got, err := h.output.ReadString('\n')
	if got = strings.TrimSpace(got); got != want {
		h.t.Fatalf("it says %q (%v), want %q", got, err, want)
	}
}

func (h *holder) ask(question string) string {
	h.t.Helper()
	_, err := io.WriteString(h.input, question+"\n")
	check(h.t, err)
	answer, err := h.output.ReadString('\n')
	check(h.t, err)
	return strings.TrimSpace(answer)
}

func (h *holder) tell(order, want string) {
	h.t.Helper()
	_, err := io.WriteString(h.input, order+"\n")
	check(h.t, err)
	h.expect(want)
}

func (h *holder) kill() {
	_ = h.cmd.Process.Kill() // it may have ended by itself
	_ = h.cmd.Wait()
}

const outOfMemory = "2"

// newSession is an RTX 2060 on the smallest slice of an H200.
func newSession(t *testing.T) cudaSession {
	t.Helper()
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	return m.installCUDA(t, "rtx-2060", slice)
}

func (s cudaSession) wantUsage(t *testing.T, want string) {
	t.Helper()
	u := s.usage()
	got := fmt.Sprintf("total %d overhead %d peak %d refused %d processes %d", u.Total/mib, u.Overhead/mib, u.Peak/mib, u.Refused, len(u.Processes))
	if got != want {
		t.Errorf("the usage in MiB is %s, want %s", got, want)
	}
}

// Two programs share the limit. The memory of a killed program is available to the other at once, and its queries
// show that.
func TestProcessesShareTheCap(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 4000", "0")
	second.tell("info", "2144 of 6144")
	second.tell("take 2145", outOfMemory)
	second.tell("take 2144", "0")
	second.tell("bytes 1", outOfMemory)
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 2 processes 2")
	first.kill()
	second.tell("info", "4000 of 6144")
	s.wantUsage(t, "total 2144 overhead 0 peak 6144 refused 2 processes 1")
	third := s.hold(t, program)
	third.tell("take 4000", "0")
	second.kill()
	third.tell("take 2144", "0")
	third.kill()
	s.hold(t, program).tell("take 6144", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 2 processes 1")
}

// A context takes as much of the target's memory as of the slice.
func TestOverheadCounts(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t)
	first := s.hold(t, program)
	first.tell("take 5845", outOfMemory)
	first.tell("info", "5844 of 6144")
	second := s.hold(t, program)
	first.tell("info", "5544 of 6144")
	second.tell("take 5545", outOfMemory)
	second.tell("take 5544", "0")
	first.kill()
	second.tell("take 300", "0")
	second.tell("bytes 1", outOfMemory)
	s.wantUsage(t, "total 5844 overhead 300 peak 6144 refused 3 processes 1")
}

// If there is no room for a context or for code, creation fails with CUDA's own error and is undone.
func TestContextsBeyondTheCap(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t)
	h := s.hold(t, program)
	h.tell("take 5545", "0")
	h.tell("grow", "2220000") // there is room for code, but not for a context
	h.tell("free", "0")
	h.tell("take 5544", "0")
	if u := s.usage(); u.Refused == 0 || u.Overcome != 0 {
		t.Errorf("of %d refusals %d are overcome, though the size that a context wanted is unknown", u.Refused, u.Overcome)
	}
	h.tell("grow", "0000000")
	h.tell("take 300", "0")
	h.tell("grow", "2222222")
	if got := s.trueUse(t); got != 6144 {
		t.Errorf("%d MiB are in use, want 6144", got)
	}
	for range 3 {
		out, err := s.command(program, s.facade()).CombinedOutput()
		if err == nil || string(out) != "CU(cuDevicePrimaryCtxRetain)(&context, 0) answers 2\n" {
			t.Fatalf("who starts at the cap says %q, %v", out, err)
		}
	}
	h.tell("free", "0")
	second := s.hold(t, program)
	second.tell("bytes 1", outOfMemory)
	h.tell("grow", "2222222")
}

// A program that has a context can use it again, however much memory is in use by then.
func TestContextAgainBeyondTheCap(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t)
	h := s.hold(t, program)
	stranger := holdOn(t, s.command(program, mustRead(t, filepath.Join(s.dir, "real", driver.CUDA))))
	stranger.tell("take 8000", "0")
	h.tell("visit", "0")
	h.tell("bytes 1", outOfMemory)
	stranger.kill()
	h.tell("bytes 1", "0")
}

// A fork's child owns and frees nothing; after exec the count starts at zero; a destroyed context leaves nothing;
// host memory does not count as GPU memory.
func TestWhatEnds(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	h := s.hold(t, program)
	h.tell("take 1000", "0")
	h.tell("fork", "3") // not initialised
	s.wantUsage(t, "total 1000 overhead 0 peak 1000 refused 0 processes 1")
	h.tell("stray", "201")
	s.wantUsage(t, "total 1000 overhead 0 peak 1000 refused 0 processes 1")
	h.tell("visit", "0")
	s.wantUsage(t, "total 1000 overhead 0 peak 1000 refused 0 processes 1")
	h.tell("reset", "0")
	s.wantUsage(t, "total 0 overhead 0 peak 1000 refused 0 processes 0")
	h.tell("context 1500", "0")
	h.tell("context 7000", outOfMemory)
	h.tell("host 7000", "0")
	s.wantUsage(t, "total 0 overhead 0 peak 1500 refused 1 processes 0")
	h.tell("take 2000", "0")
	h.tell("free-async", "0")
	s.wantUsage(t, "total 0 overhead 0 peak 2000 refused 1 processes 0")
	h.tell("take 2000", "0")
	h.tell("exec", "ready")
	h.tell("take 3000", "0")
	s.wantUsage(t, "total 3000 overhead 0 peak 3000 refused 1 processes 1")
	h.tell("free", "0")
	h.tell("free", "1") // as the driver says
	s.wantUsage(t, "total 0 overhead 0 peak 3000 refused 1 processes 0")
}

// Eight programs compete for the limit, and half of them are killed, repeatedly.
func TestRace(t *testing.T) {
	program, holders := compiled(t, "racer"), compiled(t, "holder")
	s := newSession(t).shared()
	highest := make(chan int64)
	stop := make(chan struct{})
	go func() { highest <- s.watch(stop) }()
	for round := range 3 {
		var racers sync.WaitGroup
		for i := range 8 {
			racers.Go(func() { s.race(t, program, 8*round+i) })
		}
		racers.Wait()
	}
	close(stop)
	if most := <-highest; most > 6144*mib || most < 4096*mib {
		t.Errorf("the highest total is %d MiB, want it at the cap of 6144", most/mib)
	}
	u := s.usage()
	var sum int64
	for _, p := range u.Processes {
		sum += p.Bytes
	}
	if sum != u.Total {
		t.Errorf("the slots add up to %d, and the total says %d", sum, u.Total)
	}
	if u.Peak > 6144*mib || u.Refused == 0 {
		t.Errorf("the peak is %d bytes with %d refusals, want a race at the cap of %d", u.Peak, u.Refused, 6144*mib)
	}
	s.hold(t, holders).tell("take 6144", "0")
	s.wantUsage(t, fmt.Sprintf("total 6144 overhead 0 peak 6144 refused %d processes 1", u.Refused))
	if p := s.usage().Processes[0]; p.Bytes != 6144*mib {
		t.Errorf("process %d has %d bytes, and the total says %d", p.PID, p.Bytes, 6144*mib)
	}
}

// watch returns the highest total in the file.
func (s cudaSession) watch(stop chan struct{}) int64 {
	var most int64
	for {
		select {
		case <-stop:
			return most
		default:
			most = max(most, s.usage().Total)
		}
	}
}

// race runs a program for a moment and kills every second one at a random point.
func (s cudaSession) race(t *testing.T, program string, seed int) {
	c := s.command(program, s.facade(), strconv.Itoa(seed))
	enough, err := c.StdinPipe()
	if err != nil || c.Start() != nil {
		t.Error("a racer does not start")
		return
	}
	time.Sleep(time.Duration(200+rand.IntN(200)) * time.Millisecond)
	if seed%2 == 0 {
		_ = c.Process.Kill()
		_ = c.Wait()
		return
	}
	enough.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("racer %d: %v", seed, err)
	}
}

// NVML reports the same memory as CUDA, and the same processes.
func TestNVMLAgrees(t *testing.T) {
	program := compiled(t, "holder")
	whole := newMachine(t, "l40s")
	for name, c := range map[string]struct {
		session cudaSession
		context int // MiB that each context is configured to take
	}{
		"own slice": {newSession(t), 300}, "shared": {newSession(t).shared(), 0},
		"whole GPU": {whole.installCUDA(t, "rtx-2060", whole.gpu(t, 0).UUID), 300}, // of which the driver reserves a part
	} {
		t.Run(name, func(t *testing.T) {
			first, second := c.session.hold(t, program), c.session.hold(t, program)
			first.tell("take 1000", "0")
			second.tell("take 2000", "0")
			used := 3000 + 2*c.context
			first.tell("info", fmt.Sprintf("%d of 6144", 6144-used))
			process := func(pid, size int) string {
				return fmt.Sprintf("map[ComputeInstanceId:4294967295 GpuInstanceId:4294967295 Pid:%d UsedGpuMemory:%d]", pid, (size+c.context)*mib)
			}
			nvml := filepath.Join(lib(c.session.dir), driver.NVML)
			ask(t, nvml).expect(t, answers{
				"memory":    memory("Free", 6144-used, "Total", 6144, "Used", used),
				"memory v2": fmt.Sprintf("map[Free:%d Reserved:0 Total:%d Used:%d Version:33554472]", (6144-used)*mib, 6144*mib, used*mib),
				"processes": "[" + process(first.cmd.Process.Pid, 1000) + " " + process(second.cmd.Process.Pid, 2000) + "]",
			})
			if path, ok := need.Judge(t); ok {
				out, code := smi(t, path, lib(c.session.dir), "--query-compute-apps=pid,used_memory", "--format=csv,noheader")
				want := fmt.Sprintf("%d, %d MiB\n%d, %d MiB\n", first.cmd.Process.Pid, 1000+c.context, second.cmd.Process.Pid, 2000+c.context)
				if code != 0 || out != want {
					t.Errorf("nvidia-smi lists %q (%d), want %q", out, code, want)
				}
			}
			first.kill()
			used -= 1000 + c.context
			ask(t, nvml).expect(t, answers{"memory": memory("Free", 6144-used, "Total", 6144, "Used", used)})
			second.tell("info", fmt.Sprintf("%d of 6144", 6144-used))
			ask(t, nvml).expect(t, answers{"processes": "[" + process(second.cmd.Process.Pid, 2000) + "]"})
		})
	}
}
