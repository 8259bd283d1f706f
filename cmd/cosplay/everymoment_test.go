package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/need"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// every is set to try every moment and every call, however long that takes.
var every = os.Getenv("COSPLAY_EVERY") == "1"

// chosen are the moments of a command that are tried: all of them, or as many as there
// are parts, evenly spread, and the last. The same moments are chosen in every run:
// luck does not judge a change.
func chosen(n, parts int) []int {
	stride := 1
	if !every {
		stride = max(1, n/parts)
	}
	var all []int
	for i := 1; i < n; i += stride {
		all = append(all, i)
	}
	return append(all, n)
}

// TestEveryMoment: a cosplay that is killed with SIGKILL right before or right
// after any write to disk or effect leaves nothing that apply does not bring to
// its end, without a slice too many, and nothing that destroy does not remove.
func TestEveryMoment(t *testing.T) {
	t.Parallel()
	for _, o := range [][]string{{"apply", "--parallelism=1"}, {"apply"}, {"destroy", "--parallelism=1"}, {"destroy"}} {
		t.Run(strings.Join(o, " "), func(t *testing.T) {
			t.Parallel()
			newProject(t, fleet).everyMoment(7, append(o, "--auto-approve")...)
		})
	}
}

// sharedSlice has two sessions in one slice.
const sharedSlice = `
host "lab" { simulate = "1 x h200" }
session "w" {
  count   = 2
  target  = "1060"
  sharing = "time-slice"
}
`

// TestEveryMomentShared: the same with sessions that share a slice.
func TestEveryMomentShared(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"apply", "destroy"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			newProject(t, sharedSlice).everyMoment(1, command, "--auto-approve")
		})
	}
}

// severalGPUs has sessions of two devices, on whole GPUs and on GPUs that they share.
const severalGPUs = `
host "lab" { simulate = "4 x l40s" }
session "pair" {
  target = "3090"
  gpus   = 2
}
session "part" {
  count    = 2
  fraction = 0.25
  gpus     = 2
}
`

// TestEveryMomentSeveralGPUs: the same with sessions of several GPUs.
func TestEveryMomentSeveralGPUs(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"apply", "destroy"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			newProject(t, severalGPUs).everyMoment(0, command, "--auto-approve")
		})
	}
}

// parts has two sessions with compute instances in one GPU instance.
const parts = `
host "lab" { simulate = "1 x h200" }
session "w" {
  count   = 2
  target  = "1060"
  slice   = "1c.2g.35gb"
  sharing = "compute-instance"
}
`

// TestEveryMomentParts: the same with compute instances, whose GPU instance counts as one slice.
func TestEveryMomentParts(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"apply", "destroy"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			newProject(t, parts).everyMoment(1, command, "--auto-approve", "--parallelism=1")
		})
	}
}

// everyMoment kills a command of a project with so many slices at its moments.
func (p project) everyMoment(slices int, args ...string) {
	t := p.t
	p.run("plan")
	before := p.hardware()
	fresh := p.copyOf()
	if args[0] == "destroy" {
		p.run("apply", "--auto-approve")
		fresh = p.copyOf()
	}
	listed := p.moments(args...)
	tried, failed := 0, 0
	for _, n := range chosen(len(listed), 9) {
		fresh()
		if !p.dies(n, args...) {
			t.Errorf("%v has no moment %d", args, n)
			continue
		}
		tried++
		killed := p.copyOf()
		wrong := p.converges(slices)
		wrong = append(wrong, p.destroysAll(before)...)
		killed()
		wrong = append(wrong, p.destroysAll(before)...)
		if len(wrong) > 0 {
			failed++
			t.Errorf("killed at moment %d, %s:\n%s", n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
		}
	}
	t.Logf("%v: %s; killed at %d of them, %d failures", args, count(listed), tried, failed)
}

// converges applies, and reports what differs from the configuration.
func (p project) converges(slices int) (wrong []string) {
	for _, args := range [][]string{{"apply", "--auto-approve"}, {"plan", "--detailed-exitcode"}} {
		if out, err := p.command(args...).CombinedOutput(); err != nil {
			wrong = append(wrong, fmt.Sprintf("%v: %v\n%s", args, err, out))
		}
	}
	if n := p.slices(); n != slices {
		wrong = append(wrong, fmt.Sprintf("there are %d slices, not %d", n, slices))
	}
	return wrong
}

// destroysAll destroys, and reports what remains.
func (p project) destroysAll(before []byte) (wrong []string) {
	if out, err := p.command("destroy", "--auto-approve").CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Sprintf("destroy: %v\n%s", err, out))
	}
	return append(wrong, p.traces(before)...)
}

var line = regexp.MustCompile(`^(\w+ journal) .*?"event":"(\w+)".*?(?:"step":"([^"]*)"|$)`)

// inShort names a moment.
func inShort(moment string) string {
	if m := line.FindStringSubmatch(moment); m != nil {
		return strings.TrimSpace(m[1] + ": " + m[2] + " " + m[3])
	}
	return moment
}

// count lists the moments.
func count(listed []string) string {
	journal, effects := 0, 0
	for _, m := range listed {
		switch {
		case strings.Contains(m, " effect "):
			effects++
		case strings.Contains(m, " journal "):
			journal++
		}
	}
	return fmt.Sprintf("%d moments, of them 2 x %d around journal writes and 2 x %d around effects", len(listed), journal/2, effects/2)
}

// inDocker are sessions in containers that come up at once.
const inDocker = `
host "lab" {
  simulate = "1 x h200"
  runtime  = "docker"
  manage   = ["%s", "slices", "clocks", "power", "persistence"]
}
session "%s" {
  count   = %d
  target  = "%s"
  image   = "cosplay-test/scratch"
  pull    = "never"
  command = ["/busybox", "sleep", "3600"]
  ssh {
    enabled = false
  }
}
`

// TestEveryMomentDocker: the same with containers, each moment twice, since an
// engine cannot be copied. Of the seven sessions all are there only where no
// moment is left out: an engine takes its time.
func TestEveryMomentDocker(t *testing.T) {
	t.Parallel()
	sessions := 3
	if every {
		sessions = 7
	}
	for _, command := range []string{"apply", "destroy"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			everyMomentDocker(t, fmt.Sprintf(inDocker, "mig-mode", "moment"+command, sessions, "2060"), command, sessions)
		})
	}
}

// TestEveryMomentWhole: the same with a whole GPU, where no slice shows the session.
func TestEveryMomentWhole(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"apply", "destroy"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			everyMomentDocker(t, fmt.Sprintf(inDocker, "clocks", "whole"+command, 1, "a100"), command, 0)
		})
	}
}

func everyMomentDocker(t *testing.T, text, command string, slices int) {
	needEngine(t)
	p := newProject(t, text)
	defer removeContainers(t, p.dir)
	p.everyMomentTwice(command, slices, func() []string { return p.containers() })
}

// withMPS has sessions that use a GPU through NVIDIA's own MPS daemon.
const withMPS = `
host "lab" { simulate = "1 x l40s" }
session "w" {
  count   = 2
  target  = "2060"
  sharing = "mps"
}
`

// withSliceMPS has sessions that use a MIG slice through such a daemon.
const withSliceMPS = `
host "lab" { simulate = "1 x h200" }
session "w" {
  count   = 2
  target  = "1060"
  slice   = "1g.18gb"
  sharing = "mps"
}
`

// TestEveryMomentMPS: the same with an MPS daemon, which a copy of the project does not have. No process and no folder
// of it is left.
func TestEveryMomentMPS(t *testing.T) {
	t.Parallel()
	daemon, there := need.MPS(t)
	if !there {
		t.Skip("there is no MPS daemon")
	}
	for name, c := range map[string]struct {
		command, config string
		slices          int
	}{
		"apply": {"apply", withMPS, 0}, "destroy": {"destroy", withMPS, 0},
		"apply-slice": {"apply", withSliceMPS, 1}, "destroy-slice": {"destroy", withSliceMPS, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			short, err := os.MkdirTemp("", "s")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(short) }()
			p := newProject(t, c.config)
			p.env = []string{"XDG_STATE_HOME=" + short, "PATH=" + daemon + ":" + os.Getenv("PATH")}
			p.everyMomentTwice(c.command, c.slices, func() (wrong []string) {
				if left, err := os.ReadDir(filepath.Join(short, "cosplay", "mps")); err == nil {
					wrong = append(wrong, fmt.Sprintf("folders of daemons are left: %v", left))
				}
				return append(wrong, daemonsIn(short)...)
			})
		})
	}
}

// daemonsIn are the processes whose MPS pipes are in a folder.
func daemonsIn(dir string) (all []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, _ := os.ReadFile(path) // it may have ended
		if strings.Contains(string(environ), resource.PipeVariable+"="+dir+"/") {
			all = append(all, "a process of MPS is left: "+path)
		}
	}
	return all
}

// everyMomentTwice kills a command at its moments, and then applies and destroys, or destroys at once. Each time
// nothing may be left.
func (p project) everyMomentTwice(command string, slices int, left func() []string) {
	t := p.t
	p.run("plan")
	before := p.hardware()
	args := []string{command, "--auto-approve", "--parallelism", "1"}
	ready := func() {
		if command == "destroy" {
			p.run("apply", "--auto-approve")
		}
	}
	ready()
	listed := p.moments(args...)
	tried, failed := 0, 0
	for _, n := range chosen(len(listed), 4) {
		var wrong []string
		for _, finish := range []bool{true, false} {
			wrong = append(wrong, p.destroysAll(before)...)
			ready()
			p.dies(n, args...)
			if finish {
				wrong = append(wrong, p.converges(slices)...)
			}
			wrong = append(wrong, p.destroysAll(before)...)
			wrong = append(wrong, left()...)
		}
		tried++
		if len(wrong) > 0 {
			failed++
			t.Errorf("killed at moment %d, %s:\n%s", n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
		}
	}
	t.Logf("%v: %s; killed at %d of them, %d failures", args, count(listed), tried, failed)
	p.destroysAll(before)
}

// TestEveryMomentStop: a stop or start that is killed right before or right after any write to disk or effect is
// completed by the same command. An apply in between stops and starts nothing, and changes no slice.
func TestEveryMomentStop(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const sessions = 2
	p := newProject(t, fmt.Sprintf(inDocker, "mig-mode", "momentstop", sessions, "2060"))
	defer removeContainers(t, p.dir)
	p.run("apply", "--auto-approve")
	for _, c := range []struct {
		command, opposite string
		running           int
	}{{"stop", "start", 0}, {"start", "stop", sessions}} {
		args := []string{c.command, "--all", "--parallelism", "1"}
		p.run(c.opposite, "--all")
		listed := p.moments(args...)
		few := chosen(len(listed), 4)
		for i, moment := range listed {
			n := i + 1
			if !slices.Contains(few, n) && !strings.Contains(moment, " effect ") {
				continue
			}
			var wrong []string
			for _, between := range []bool{false, true} {
				p.run(c.opposite, "--all")
				if !p.dies(n, args...) {
					wrong = append(wrong, "it was not killed")
				}
				if between {
					before := p.running()
					wrong = append(wrong, p.converges(sessions)...)
					if now := p.running(); now != before {
						wrong = append(wrong, fmt.Sprintf("%d containers ran, and after apply %d", before, now))
					}
				}
				for _, then := range [][]string{args, {"plan", "--detailed-exitcode"}, {"drift"}} {
					if out, err := p.command(then...).CombinedOutput(); err != nil {
						wrong = append(wrong, fmt.Sprintf("%v: %v\n%s", then, err, out))
					}
				}
				if n := p.running(); n != c.running {
					wrong = append(wrong, fmt.Sprintf("%d containers run, not %d", n, c.running))
				}
			}
			if len(wrong) > 0 {
				t.Errorf("%s killed at moment %d, %s:\n%s", c.command, n, inShort(listed[n-1]), strings.Join(wrong, "\n"))
			}
		}
		t.Logf("%s: %s", c.command, count(listed))
	}
	p.run("destroy", "--auto-approve")
}

// running counts the containers of the project that run.
func (p project) running() int { return len(p.containers("--filter", "status=running")) }

// containers lists those of the project that there are, or those of them that filters select.
func (p project) containers(filters ...string) []string {
	p.t.Helper()
	prior, err := state.Store{Path: filepath.Join(p.dir, state.FileName)}.Load()
	if err != nil || prior.Lineage == "" {
		return nil
	}
	args := []string{"ps", "-a", "--filter", "label=cosplay.lineage=" + prior.Lineage, "--format", "container:{{.Names}}"}
	out, err := bounded(p.t, "docker", append(args, filters...)...).Output()
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// TestEveryMomentExpire: the same with a session that has expired. Whether the user then runs expire or apply first, the
// session stays down, and the other stays up.
func TestEveryMomentExpire(t *testing.T) {
	t.Parallel()
	p := newProject(t, `
host "lab" {
  simulate = "1 x h200"
}
session "short" {
  target = "2060"
  ttl    = "1s"
}
session "long" {
  target = "2060"
  ttl    = "8h"
}
`)
	p.run("apply", "--auto-approve")
	time.Sleep(2 * time.Second)
	fresh := p.copyOf()
	listed := p.moments("expire")
	for _, n := range chosen(len(listed), 9) {
		for _, first := range []string{"expire", "apply"} {
			fresh()
			if !p.dies(n, "expire") {
				t.Errorf("expire has no moment %d", n)
				continue
			}
			if first == "apply" {
				p.run("apply", "--auto-approve")
			}
			p.run("expire")
			if wrong := p.converges(1); len(wrong) > 0 {
				t.Errorf("killed at moment %d, %s, then %s:\n%s", n, inShort(listed[n-1]), first, strings.Join(wrong, "\n"))
			}
		}
	}
	t.Logf("expire: %s", count(listed))
}
