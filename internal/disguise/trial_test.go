package disguise_test

import (
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/disguise"
)

// holdOnTrial is a holder that marks its use as a trial.
func (s cudaSession) holdOnTrial(t *testing.T, program string) *holder {
	t.Helper()
	c := s.command(program, s.facade())
	c.Env = append(c.Env, "COSPLAY_TRIAL=1")
	return holdOn(t, c)
}

// A program's trial leaves no trace, even if it is killed during it: neither its memory, nor its context's, nor its
// refusals. The limit applies to it, and other programs beside it record their own peak and refusals as usual.
func TestOnTrial(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t)
	earnest := s.hold(t, program)
	earnest.tell("take 1000", "0")
	first, second := s.holdOnTrial(t, program), s.holdOnTrial(t, program)
	first.tell("take 9000", outOfMemory)
	first.tell("take 4000", "0")
	second.tell("take 245", outOfMemory) // three contexts
	second.tell("take 244", "0")
	s.wantUsage(t, "total 5244 overhead 300 peak 1300 refused 0 processes 3")
	earnest.tell("take 4000", outOfMemory) // would fit without the trial
	earnest.tell("take 5000", outOfMemory) // would not fit without it either
	earnest.tell("take 200", "0")
	s.wantUsage(t, "total 5444 overhead 300 peak 1500 refused 1 processes 3")
	late := s.hold(t, program)
	late.tell("take 10", "0")
	s.wantUsage(t, "total 5454 overhead 300 peak 1510 refused 1 processes 4")
	first.kill()
	second.kill()
	s.wantUsage(t, "total 5454 overhead 300 peak 1510 refused 1 processes 4")
	late.tell("take 10", "0") // now the size of its context is known
	s.wantUsage(t, "total 1220 overhead 600 peak 1820 refused 1 processes 2")
	earnest.tell("take 4324", "0")
	earnest.tell("bytes 1", outOfMemory)
	s.wantUsage(t, "total 5544 overhead 600 peak 6144 refused 2 processes 2")
}

// A refusal by the driver itself counts as well, but not beside a trial.
func TestDriverWithoutMemory(t *testing.T) {
	program := compiled(t, "holder")
	m := newMachine(t, "h200")
	slice, _ := m.slice(t, 0, "1g.18gb", 0)
	s := m.installCUDA(t, "rtx-2060", slice).shared()
	stranger, own := holdOn(t, s.command(program, m.cuda())), s.hold(t, program)
	stranger.tell("take 14000", "0")
	own.tell("info", "1784 of 6144") // of 16384, with two contexts
	own.tell("take 5000", outOfMemory)
	s.wantUsage(t, "total 0 overhead 0 peak 0 refused 1 processes 0")
	s.holdOnTrial(t, program).tell("take 100", "0")
	own.tell("take 5000", outOfMemory)
	s.wantUsage(t, "total 100 overhead 0 peak 0 refused 1 processes 1")
}

// The probe does not change the session's peak.
func TestProbeLeavesNoTrace(t *testing.T) {
	program := compiled(t, "holder")
	s := newSession(t)
	h := s.hold(t, program)
	h.tell("take 1000", "0")
	h.tell("take 9000", outOfMemory)
	h.kill()
	probe := s.command("../../driver/lib/cosplay-probe")
	probe.Env = append(probe.Env, "LD_LIBRARY_PATH="+lib(s.dir))
	out, err := probe.CombinedOutput()
	if !strings.Contains(string(out), "one.above 6129975296 2") || !strings.Contains(string(out), "two.above ") || err != nil {
		t.Errorf("the probe ends with %v and prints %q", err, out)
	}
	u := s.usage()
	if u.Peak != 1300*mib || u.Refused != 1 {
		t.Errorf("it left %+v, want a peak of 1300 MiB and one refusal", u)
	}
	check(t, disguise.ForgetPeak(filepath.Join(s.dir, "usage")))
	if u = s.usage(); u.Peak != 0 || u.Refused != 0 {
		t.Errorf("it is %+v and should be forgotten", u)
	}
}
