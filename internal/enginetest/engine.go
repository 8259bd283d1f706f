// Package enginetest starts a separate Docker engine for a test: another dockerd in its own namespaces, with the
// options of the test. It leaves nothing behind; only if the test is killed, a folder and empty control groups
// remain. The package also provides the NVIDIA components that an engine calls: a simulated hook, and NVIDIA's own
// container runtime.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"cosplay/internal/durable"
	"cosplay/internal/need"
)

// Options configure the engine of a test.
type Options struct {
	Path     []string          // folders to search first for programs
	Env      []string          // added to this process's environment
	Runtimes map[string]string // programs by the name under which to register them
	SpecDirs []string          // folders of CDI specifications; engines before version 25 do not support them
}

// Engine is a running engine without a network: containers can use only "none", and "host", which is the engine's own
// network namespace.
type Engine struct {
	Host   string // unix:///...
	Client *client.Client
	name   string
	dir    string
	env    []string
	ended  chan struct{}
	cmd    *exec.Cmd
}

// Limits on how long an engine takes to start and to stop.
const (
	upTime   = 2 * time.Minute
	downTime = 20 * time.Second
)

// inside is the first process in the namespaces: when it dies, all processes that it started die, and the mounts
// disappear. It has its own /run, so that dockerd does not find the machine's containerd and starts its own.
const inside = `set -e
mount --make-rslave /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
dockerd --config-file "$1" &
trap 'kill -TERM $!' TERM
while kill -0 $! 2>/dev/null; do wait $! || true; done
`

// Start starts an engine that runs until the test ends. If the machine cannot run one, it skips the test, or fails it
// if COSPLAY_DOCKER is 1.
func Start(t testing.TB, o Options) *Engine {
	t.Helper()
	need.Root(t, "dockerd", "containerd", "runc", "mount")
	dir, err := os.MkdirTemp("", "cosplay-engine-") // a short path, because that of a socket is limited to 107 bytes
	check(t, err)
	e := &Engine{Host: "unix://" + dir + "/engine.sock", name: filepath.Base(dir), dir: dir}
	t.Cleanup(func() { e.remove(t) })
	check(t, e.configure(o))
	e.env = append(os.Environ(), o.Env...)
	e.env = append(e.env, "PATH="+strings.Join(append(slices.Clone(o.Path), os.Getenv("PATH")), ":"))
	e.Client, err = client.NewClientWithOpts(client.WithHost(e.Host), client.WithAPIVersionNegotiation())
	check(t, err)
	t.Cleanup(func() { e.stop(t) })
	e.Up(t)
	return e
}

// Up starts the engine, again after Down.
func (e *Engine) Up(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(e.path("log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	check(t, err)
	defer log.Close()
	e.cmd = exec.Command("/bin/sh", "-c", inside, "sh", e.path("config.json"))
	e.cmd.Env = e.env
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true,
	}
	check(t, e.cmd.Start())
	cmd, ended := e.cmd, make(chan struct{})
	e.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
	e.await(t)
}

// Down ends the engine, and with it its containers, until Up.
func (e *Engine) Down(t testing.TB) {
	t.Helper()
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.ended:
	case <-time.After(downTime):
		t.Errorf("the engine did not end by itself:\n%s", e.log())
		_ = e.cmd.Process.Kill()
		<-e.ended
	}
}

func (e *Engine) path(name string) string { return filepath.Join(e.dir, name) }

func (e *Engine) configure(o Options) error {
	runtimes := map[string]any{}
	for name, path := range o.Runtimes {
		runtimes[name] = map[string]string{"path": path}
	}
	config := map[string]any{
		"hosts":         []string{e.Host},
		"data-root":     e.path("data"),
		"exec-root":     e.path("exec"),
		"pidfile":       e.path("pid"),
		"bridge":        "none",
		"iptables":      false,
		"ip-forward":    false,
		"cgroup-parent": "/" + e.name,
		"exec-opts":     []string{"native.cgroupdriver=cgroupfs"},
		"runtimes":      runtimes,
	}
	if len(o.SpecDirs) > 0 && takesCDI() {
		config["cdi-spec-dirs"], config["features"] = o.SpecDirs, map[string]bool{"cdi": true}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return durable.WriteFile(e.path("config.json"), data, 0o600)
}

// takesCDI reports whether the engine supports CDI: older ones reject the option.
func takesCDI() bool {
	help, err := exec.Command("dockerd", "--help").CombinedOutput()
	return err == nil && strings.Contains(string(help), "--cdi-spec-dir ")
}

func (e *Engine) await(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), upTime)
	defer cancel()
	for {
		if _, err := e.Client.Ping(ctx); err == nil {
			return
		}
		select {
		case <-e.ended:
			t.Fatalf("the engine ended at once:\n%s", e.log())
		case <-ctx.Done():
			t.Fatalf("the engine did not answer in %v:\n%s", upTime, e.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *Engine) log() string {
	data, err := os.ReadFile(e.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

// stop removes the containers, asks the engine to end and, if it does not, kills it with all its processes.
func (e *Engine) stop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), downTime)
	defer cancel()
	left, err := e.Client.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		t.Errorf("listing what is to be removed: %v\n%s", err, e.log())
	}
	for _, c := range left {
		if err := e.Client.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Errorf("removing a container of the test: %v", err)
		}
	}
	_ = e.Client.Close()
	e.Down(t)
}

func (e *Engine) remove(t testing.TB) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + e.name)
		if err != nil {
			t.Error(err)
		}
		for _, group := range groups {
			removeGroup(t, group)
		}
	}
	if err := os.RemoveAll(e.dir); err != nil {
		t.Errorf("removing the engine's folder: %v", err)
	}
}

// removeGroup removes a control group and its children, innermost first. The kernel may keep one for a moment after
// its last process has ended.
func removeGroup(t testing.TB, group string) {
	var all []string
	err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil // the group has just disappeared
	})
	if err != nil {
		t.Error(err)
	}
	for _, dir := range slices.Backward(all) {
		for range 100 {
			if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("removing a control group: %v", err)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("a test's own engine: %w", err))
	}
}
