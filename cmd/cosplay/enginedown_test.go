package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/enginetest"
)

// log collects what a command that runs prints.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) read(from *os.File) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		l.mu.Lock()
		l.text.WriteString(lines.Text() + "\n")
		l.mu.Unlock()
	}
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestEngineDown: while the container engine does not answer, watch and drift report that and still see the GPUs, whose
// settings watch repairs. When the engine answers again, the fleet comes back.
func TestEngineDown(t *testing.T) {
	engine := enginetest.Start(t, enginetest.Options{})
	engine.Load(t, "tiny")
	t.Setenv("DOCKER_HOST", engine.Host)
	p := newProject(t, `
host "lab" {
  simulate = "1 x h200"
  runtime  = "docker"
}
session "worker" {
  count   = 2
  target  = "2060"
  image   = "tiny"
  ssh { enabled = false }
}
`)
	p.run("apply", "--auto-approve")
	p.run("drift")
	running := func() int {
		all, err := engine.Client.ContainerList(context.Background(), container.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := running(); n != 2 {
		t.Fatalf("%d containers run", n)
	}
	watch, said := p.command("watch", "--interval", "1s"), &log{}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	watch.Stdout, watch.Stderr = w, w
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Process.Kill() }()
	w.Close()
	go said.read(r)
	until := func(what string, good func() bool) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Log(said)
			}
		}()
		wait(t, what, good)
	}
	says := func(text string) func() bool {
		return func() bool { return strings.Contains(oneLine(said.String()), text) }
	}

	engine.Down(t)
	until("the finding", says("(engine-silent)"))
	out, err := p.command("drift").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(oneLine(string(out)), "does not answer sessions were not read") || strings.Contains(string(out), "session.worker") {
		t.Errorf("drift: %v\n%s", err, out)
	}
	before := p.hardware()
	p.run("sim", "set", "0", "power-limit", "500")
	until("the repair of the GPU", func() bool {
		return strings.Contains(said.String(), "repaired") || string(p.hardware()) == string(before)
	})
	until("the end of the finding about the GPU", says("finding-ended GPU 0: power limit"))
	if strings.Contains(said.String(), "session.worker") {
		t.Errorf("it says of sessions that it did not read:\n%s", said)
	}

	engine.Up(t)
	until("the end of the finding", says("finding-ended host lab: container engine"))
	until("a fleet as it was", func() bool {
		return running() == 2 && p.command("plan", "--detailed-exitcode").Run() == nil
	})
	if err := watch.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("watch: %v\n%s", err, said)
	}
	p.run("destroy", "--auto-approve")
	if left, _ := filepath.Glob(filepath.Join(p.dir, "cosplay.state.json.journal*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
