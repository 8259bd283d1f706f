package disguise_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/disguise"
	"cosplay/internal/initd"
	"cosplay/internal/need"
)

// Threads that start at the same time, while other programs use the file, share one slot, and the memory of each is
// counted.
func TestThreadsBeginTogether(t *testing.T) {
	program := compiled(t, "together")
	s := newSession(t).shared()
	for range 2 {
		holdOn(t, s.command(program, s.facade(), "hammer"))
	}
	for range 60 {
		h := s.hold(t, program)
		u := s.usage()
		at := slices.IndexFunc(u.Processes, func(p disguise.Process) bool { return p.PID == h.cmd.Process.Pid })
		if at < 0 || u.Processes[at].Bytes != 8*mib {
			t.Fatalf("eight threads of process %d have 1 MiB each, and the usage is %+v", h.cmd.Process.Pid, u)
		}
		h.kill()
	}
}

// A program that is killed while it counts leaves the lock held and a total that differs from the sum of the slots.
// The next program repairs both.
func TestDeathWithTheLock(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 1000", "0") // in the first slot
	second.tell("take 1", "0")
	first.kill()
	s.write(t, map[int64]uint64{atLock: 7<<16 | 1, atTotal: 0})
	second.tell("take 6144", outOfMemory)
	second.tell("take 6143", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 1 processes 1")
}

// A program that calls exec while one of its threads counts leaves the lock to itself.
func TestBecomingAnotherWithTheLock(t *testing.T) {
	s := newSession(t).shared()
	h := s.hold(t, compiled(t, "holder"))
	h.tell("take 1000", "0")
	s.write(t, map[int64]uint64{atLock: 7<<16 | 1})
	h.tell("exec", "ready")
	h.tell("take 6144", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 0 processes 1")
}

// A program that continues without the thread that counted, because it became a program without CUDA or was stopped,
// blocks the lock only for a limited time.
func TestLifeWithTheLock(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 1000", "0") // in the first slot
	second.tell("take 1", "0")
	s.write(t, map[int64]uint64{atLock: 7<<16 | 1})
	second.tell("take 5144", outOfMemory)
	second.tell("take 5143", "0")
	first.tell("take 1", outOfMemory)
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 2 processes 2")
}

// If dead processes have all slots and the lock, a new program still gets a slot and the lock.
func TestPlacesOfTheDead(t *testing.T) {
	s := newSession(t).shared()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	check(t, err)
	var pids uint64
	if _, err := fmt.Sscanf(namespace, "pid:[%d]", &pids); err != nil {
		t.Fatal(err)
	}
	dead := map[int64]uint64{atLock: 7<<16 | 1, atTotal: 512 * mib}
	for i := range int64(512) {
		at := atSlots + i*slotSize
		dead[at], dead[at+8], dead[at+16] = 1<<22|(1<<22-1), pids, mib // an impossible pid, with a start time
	}
	s.write(t, dead)
	h := s.hold(t, compiled(t, "holder"))
	h.tell("take 6144", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 0 processes 1")
}

// A program that cannot read /proc, because it has no free descriptor, considers no live process dead. It still
// recognizes dead ones.
func TestWithoutDescriptors(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 4000", "0")
	second.tell("take 1", "0")
	second.tell("no-files", "0")
	second.tell("info", "2143 of 6144")
	second.tell("take 3000", outOfMemory)
	s.wantUsage(t, "total 4001 overhead 0 peak 4001 refused 1 processes 2")
	first.kill()
	second.tell("info", "6143 of 6144")
	s.wantUsage(t, "total 1 overhead 0 peak 4001 refused 1 processes 1")
}

// Programs in sandboxes with separate pid namespaces, and a /proc of another namespace, count separately, and do not
// mistake a foreign process with the same pid for one of theirs.
func TestSandboxes(t *testing.T) {
	need.Root(t)
	program := compiled(t, "holder")
	s := newSession(t).shared()
	sandboxed := func() *holder {
		c := s.command(program, s.facade())
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		return holdOn(t, c)
	}
	first, second := sandboxed(), sandboxed() // both are pid 1, as another process in this /proc is
	first.tell("take 4000", "0")
	second.tell("take 2145", outOfMemory)
	second.tell("take 2144", "0")
	s.wantUsage(t, "total 6144 overhead 0 peak 6144 refused 1 processes 2")
	for _, p := range s.usage().Processes {
		if p.PID != 1 || p.Namespace != 0 {
			t.Errorf("process %d is known by the pids of %d, want pid 1 of an unknown namespace", p.PID, p.Namespace)
		}
	}
}

// If live processes have all slots, a new program cannot be counted and gets no memory, so the limit holds for any
// number of programs. Slots of programs that end become available.
func TestMoreProgramsThanPlaces(t *testing.T) {
	s := newSession(t).shared()
	s.over(instantDriver(t))
	c := s.command(compiled(t, "crowd"), s.facade(), "600", "11")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	t.Cleanup(func() {
		end.Close()
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // its own group
		_ = c.Wait()
	})
	if got, err := bufio.NewReader(out).ReadString('\n'); got != "512, then 100\n" {
		t.Fatalf("of 600 programs, and of 100 that came later, there got memory: %q, %v", got, err)
	}
	u := s.usage()
	if u.Total != 512*11*mib || u.Peak != u.Total || u.Refused != 88 || len(u.Processes) != 512 {
		t.Errorf("the usage is %d MiB, a peak of %d, %d refusals, %d processes", u.Total/mib, u.Peak/mib, u.Refused, len(u.Processes))
	}
	late := s.hold(t, compiled(t, "holder"))
	late.tell("info", "0 of 6144")
	late.tell("take 1", outOfMemory)
}

// Where things are in the file, as driver/facade/usage.h lays them out.
const atLock, atTotal, atSlots, slotSize = 16, 24, 56, 24

// write changes numbers in the file without the programs' knowledge.
func (s cudaSession) write(t *testing.T, numbers map[int64]uint64) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.dir, disguise.UsageFile), os.O_RDWR, 0)
	check(t, err)
	defer file.Close()
	for at, number := range numbers {
		_, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, number), at)
		check(t, err)
	}
}

// When a container restarts, its programs' counts are deleted, because the pids are of a namespace that no longer
// exists. The rest of the file stays.
func TestForgetUse(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	path := filepath.Join(s.dir, disguise.UsageFile)
	first := s.hold(t, program)
	first.tell("take 4000", "0")
	first.tell("take 4000", outOfMemory)
	first.kill()
	s.write(t, map[int64]uint64{atSlots + 8: 1}) // pids of an unknown namespace
	second := s.hold(t, program)
	second.tell("take 4000", outOfMemory) // the program cannot see that the other has ended
	second.kill()
	check(t, initd.ForgetUse(path))
	s.wantUsage(t, "total 0 overhead 0 peak 4000 refused 2 processes 0")
	s.hold(t, program).tell("take 6144", "0")
	check(t, initd.ForgetUse(filepath.Join(s.dir, "nothing")))
	check(t, os.WriteFile(path, []byte("nonsense, and no file of what is used"), 0o666))
	if err := initd.ForgetUse(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("of nonsense the error is %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(now), "nonsense") {
		t.Errorf("nonsense has become %q, %v", now, err)
	}
}

// A count that may be incomplete never falls below zero and never reduces the counts of other programs.
func TestNeverBelowZero(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t).shared()
	first, second := s.hold(t, program), s.hold(t, program)
	first.tell("take 1000", "0") // in the first slot
	second.tell("take 1000", "0")
	s.write(t, map[int64]uint64{atSlots + 16: 400 * mib, atTotal: 1400 * mib})
	first.tell("free", "0")
	s.wantUsage(t, "total 1000 overhead 0 peak 2000 refused 0 processes 1")
	s.write(t, map[int64]uint64{atTotal: 400 * mib})
	second.tell("free", "0")
	s.wantUsage(t, "total 0 overhead 0 peak 2000 refused 0 processes 0")
}

// An allocation for which the driver itself has no memory counts as refused, too.
func TestDriverRefuses(t *testing.T) {
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0) // has 16384 MiB
	s := m.installCUDA(t, "rtx-3090", slice)
	h := s.hold(t, compiled(t, "holder"))
	h.tell("take 16385", outOfMemory)
	h.tell("take 16084", "0")
	s.wantUsage(t, "total 16084 overhead 300 peak 16384 refused 1 processes 1")
}
