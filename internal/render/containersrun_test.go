package render

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// run is a plan of which every step but those that are named was done.
func run(w *world, failed, notTried func(plan.Step) bool) AppliedView {
	v := AppliedView{Plan: w.plan(), Live: w.live, Took: 12_300 * time.Millisecond, NvidiaSMI: true}
	for _, s := range v.Plan.Steps {
		switch {
		case failed(s):
			v.Result.Failures = append(v.Result.Failures, apply.Failure{Step: s, Undone: true})
		case notTried(s):
			v.Result.NotTried = append(v.Result.NotTried, s)
		default:
			v.Result.Done = append(v.Result.Done, s.ID)
		}
	}
	v.Result.Prior = w.applied().prior
	done := func(group string) bool {
		return !slices.ContainsFunc(slices.Concat(v.Result.NotTried, failures(v)), func(s plan.Step) bool { return s.Group == group })
	}
	for i := range v.Result.Prior.Sessions {
		if s := &v.Result.Prior.Sessions[i]; !done(s.Address.String()) {
			s.Body = nil
		}
	}
	return v
}

func failures(v AppliedView) []plan.Step {
	var all []plan.Step
	for _, f := range v.Result.Failures {
		all = append(all, f.Step)
	}
	return all
}

func no(plan.Step) bool { return false }

func id(names ...string) func(plan.Step) bool {
	return func(s plan.Step) bool { return slices.Contains(names, s.ID) }
}

func prepares(s plan.Step) bool { return strings.HasSuffix(s.ID, "/prepare") }

func containerRunScreens() []screen {
	good := run(fresh(), no, no)
	silent := run(fresh().containers("worker", func(_ int, b *resource.ContainerSpec) { b.SSH.Enabled = false }), no, no)
	image := run(fresh(), id("image.lab.cosplay:latest"), prepares)
	image.Result.Failures[0].Err = errors.New("building cosplay:latest upon debian:12 failed in step 3/7: RUN apt-get update: exit code 100\n" +
		"  Err:1 http://mirror.example/debian bookworm InRelease\n    Temporary failure resolving 'mirror.example'\n" +
		"The build cannot reach the mirror of the base's packages: check the network and DNS of the engine's machine; a proxy belongs under proxies in ~/.docker/config.json.")
	pull := run(blocks(), id("image.lab.registry.example.com/team/train:1.2"), id("session.train/prepare"))
	pull.Result.Failures[0].Err = errors.New("pulling registry.example.com/team/train:1.2: registry.example.com refuses anyone without a login; log in as a user who may pull it: docker login registry.example.com (the engine says: unauthorized)")
	port := run(fresh(), id("session.worker[5]/prepare"), id("session.worker[6]/slice", "session.worker[6]/prepare"))
	port.Result.Failures[0].Err = errors.New("port 2205 of 127.0.0.1 is taken by another program, so ssh cannot be published there.\n" +
		"The engine says: driver failed programming external connectivity: listen tcp4 127.0.0.1:2205: bind: address already in use.\n" +
		"Find out who has it (ss -ltnp 'sport = :2205'), or choose another port: ssh { port = \"auto\" }.")
	applied := func(name string, v AppliedView) screen {
		return screen{name, func(o io.Writer, s Style) { Show(o, s, v) }}
	}
	return []screen{
		applied("docker-applied", good), applied("docker-applied-no-ssh", silent), applied("docker-failed-image", image),
		applied("docker-failed-pull", pull), applied("docker-failed-port", port),
		{"ssh-config", func(o io.Writer, _ Style) { SSHConfig(o, hostBlocks()) }},
		{"docker-progress", func(o io.Writer, s Style) { drive(NewProgress(o, s), func() {}) }},
	}
}

// hostBlocks are two sessions as ssh has them.
func hostBlocks() []public.SSHHost {
	var all []public.SSHHost
	for _, n := range []string{"0", "1"} {
		all = append(all, public.SSHHost{Name: "cosplay-worker-" + n, Session: "session.worker[" + n + "]",
			Options: []public.SSHOption{{Name: "HostName", Value: "127.0.0.1"}, {Name: "Port", Value: "3280" + n}, {Name: "User", Value: "ann"}, {Name: "StrictHostKeyChecking", Value: "yes"}}})
	}
	return all
}

// drive lets an image be built, four seconds a line, while a slice is made.
func drive(p *Progress, each func()) {
	clock := time.Unix(0, 0)
	p.now = func() time.Time { return clock }
	var image, slice plan.Step
	for _, s := range fresh().plan().Steps {
		switch s.Do.Op.(type) {
		case plan.EnsureImage:
			image = s
		case plan.CreateSlice:
			slice = s
		}
	}
	event := func(kind apply.EventKind, s plan.Step, n int, text string) {
		p.Event(apply.Event{Kind: kind, Step: s, Number: n, Total: 18, Text: text, Took: clock.Sub(time.Unix(0, 0))})
		each()
	}
	event(apply.StepStarted, image, 1, "")
	event(apply.StepSays, image, 1, "cosplay:latest: building upon debian:12")
	event(apply.StepStarted, slice, 2, "")
	for _, says := range []string{"Step 1/7: FROM debian:12", "Step 2/7: ENV DEBIAN_FRONTEND=noninteractive", "Step 3/7: RUN apt-get update && apt-get install -y --no-install-recommends ca-cer...",
		"  Get:50 http://mirror.example/debian bookworm/main amd64 \x1b[2Jlibc6", "  Get:100 http://mirror.example/debian bookworm/main amd64 python3", "  Setting up git (1:2.39.5-0+deb12u2) ...", "  Setting up git (1:2.39.5-0+deb12u2) ..."} {
		clock = clock.Add(4 * time.Second)
		event(apply.StepSays, image, 1, says)
		if says[0] == 'S' && says[5] == '3' {
			event(apply.StepDone, slice, 2, "")
		}
	}
	event(apply.StepDone, image, 2, "")
}

// TestAFailureNamesNoCauseOfItsOwn: the cause of a failure is what its error
// says, for slices as for all else.
func TestAFailureNamesNoCauseOfItsOwn(t *testing.T) {
	for _, s := range fresh().plan().Steps {
		if plan.Bookkeeping(s.Do.Op) {
			continue
		}
		v := AppliedView{Plan: fresh().plan(), Result: apply.Result{Failures: []apply.Failure{{Step: s, Err: errors.New("it failed"), Undone: true}}}}
		var b strings.Builder
		Show(&b, Style{}, v)
		if strings.Contains(strings.ToLower(b.String()), "another process") {
			t.Errorf("%s blames another process:\n%s", s.ID, &b)
		}
	}
}

// TestLogsAreNotFlooded counts the lines that a talkative step costs where lines
// stay: one at first, then one in ten seconds.
func TestLogsAreNotFlooded(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, Style{})
	clock := time.Unix(0, 0)
	p.now = func() time.Time { return clock }
	step := plan.Step{ID: "image.lab.debian:12", Do: plan.OpJSON{Op: plan.EnsureImage{Image: "debian:12"}}}
	p.Event(apply.Event{Kind: apply.StepStarted, Step: step, Number: 1, Total: 1})
	for i := range 600 {
		clock = clock.Add(100 * time.Millisecond)
		p.Event(apply.Event{Kind: apply.StepSays, Step: step, Number: 1, Total: 1, Text: strings.Repeat("x", i)})
	}
	if n := strings.Count(b.String(), "\n"); n != 6 {
		t.Errorf("a minute of talk took %d lines, want 6:\n%s", n, &b)
	}
}

// TestLiveLine follows the line that is overwritten: it shows the step that
// says how far it is, on one line, and is only written when it has changed.
func TestLiveLine(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, Style{Width: 60})
	p.live = true
	var lines []string
	drive(p, func() {
		if lines = append(lines, p.shown); columns(p.shown) >= 60 || strings.ContainsAny(p.shown, "\n\x1b") {
			t.Errorf("not one line: %q", p.shown)
		}
	})
	for i, want := range []string{
		"  [ 1/18] image cosplay:latest: build ...",
		"  [ 1/18] image cosplay:latest: build ... building upon debi",
		"  [ 1/18] image cosplay:latest: build ... buildi and 1 more",
		"  [ 1/18] image cosplay:latest: build ... Step 1 and 1 more",
	} {
		if i >= len(lines) || lines[i] != want && !strings.HasPrefix(want, lines[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	written := b.Len()
	p.running = []apply.Event{{Step: plan.Step{ID: "a step"}, Number: 1, Total: 1}}
	p.refresh()
	if b.Len() == written {
		t.Error("a new line was not written")
	}
	written = b.Len()
	if p.refresh(); b.Len() != written {
		t.Error("the same line was written again")
	}
}
