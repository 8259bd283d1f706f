package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"cosplay/internal/need"
	"cosplay/internal/prose"
	"cosplay/internal/state"
)

// needEngine skips a test where there is no Docker engine with the test images;
// in CI that fails it. Test runs that share an engine take turns, test by test: the
// names and ports of their containers are the same.
func needEngine(t *testing.T) {
	t.Helper()
	out, err := bounded(t, "docker", "image", "inspect", "cosplay-test/debian", "cosplay-test/scratch", "cosplay-test/uid", "cosplay-test/sshd").CombinedOutput()
	if err != nil {
		need.Lacking(t, "there is no Docker engine with the test images; run scripts/test-images: %v\n%s", err, out)
	}
	engineTurn.take(t)
	sweepOnce.Do(func() { sweep(t) })
}

var (
	sweepOnce  sync.Once
	engineTurn turn
)

// turn is a run's turn at the engine, for as long as one of its tests uses the engine.
type turn struct {
	mu    sync.Mutex
	tests int
	lock  *os.File
}

func (u *turn) take(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tests == 0 {
		lock, err := os.OpenFile("/tmp/cosplay-test-engine.lock", os.O_CREATE|os.O_RDONLY, 0o644)
		if err == nil {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		u.lock = lock
	}
	u.tests++
	t.Cleanup(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.tests--; u.tests == 0 {
			u.lock.Close()
		}
	})
}

// sweep removes the containers of test runs that were killed: they have the names
// that this run wants. A container belongs to the run in whose folder its mounts are.
func sweep(t *testing.T) {
	out, err := bounded(t, "docker", "ps", "-a", "--no-trunc", "--filter", "label=cosplay.lineage", "--format", "{{.ID}} {{.Mounts}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		id, mounts, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.ContainsFunc(strings.Split(mounts, ","), need.Abandoned) {
			continue
		}
		if out, err := bounded(t, "docker", "rm", "-f", id).CombinedOutput(); err != nil {
			t.Fatalf("the container %s of an earlier test run: %v\n%s", id, err, out)
		}
	}
}

// TestDocker runs the user stories with containers, in testdata/docker.
func TestDocker(t *testing.T) {
	files, err := filepath.Glob("testdata/docker/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	runDocker(t, files, nil)
}

// containersElsewhere are the stories with containers that always run as if their hosts were on another machine.
var containersElsewhere = []string{"cp", "stopped"}

// containersHere are those that cannot run so: of two versions of cosplay, of which a machine has one; and of containers that
// cosplay did not create, which it describes on the machine where it runs.
var containersHere = []string{"updated", "fromgpucosplay"}

// TestDockerElsewhere runs stories with containers as if their hosts were on another machine, as TestScriptsElsewhere does.
func TestDockerElsewhere(t *testing.T) {
	files := prose.Each(containersElsewhere, func(name string) string { return "testdata/docker/" + name + ".txtar" })
	if os.Getenv("COSPLAY_LONG") != "" {
		files, _ = filepath.Glob("testdata/docker/*.txtar")
		files = slices.DeleteFunc(files, func(file string) bool {
			return slices.Contains(containersHere, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		})
	}
	runDocker(t, files, placeElsewhere(t))
}

func runDocker(t *testing.T, files []string, more func(*testscript.Env)) {
	needEngine(t)
	daemon, daemons := need.MPS(t)
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			cosplay, err := exec.LookPath("cosplay")
			if err != nil {
				return err
			}
			// Stories of other users go through folders that are made for one.
			for _, path := range []string{env.WorkDir, filepath.Dir(cosplay)} {
				open(path)
			}
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("COSPLAY", cosplay)
			env.Setenv("GONVML", filepath.Join(filepath.Dir(cosplay), "gonvml"))
			env.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
			env.Setenv("NETWORK", map[bool]string{true: "podman", false: "bridge"}[podman()]) // the engine's own
			if more != nil {
				more(env)
			}
			env.Defer(func() { removeContainers(t, env.WorkDir) })
			return errors.Join(setMPS(env, daemon), setFakes(env))
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "podman":
				return podman(), nil
			case "cdi":
				return takesDevices(), nil
			case "mps":
				return daemons, nil
			}
			if name != "account" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			u, err := user.Lookup("cosplay-test")
			if need.Everything() && (err != nil || u.Uid != "1234") {
				return false, fmt.Errorf("there is no account cosplay-test of uid 1234: useradd -u 1234 -G docker cosplay-test")
			}
			return err == nil && u.Uid == "1234" && os.Geteuid() == 0, nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// podman reports whether the engine is podman, which lacks some of what stories use.
func podman() bool {
	out, err := exec.Command("docker", "version", "--format", "{{range .Server.Components}}{{.Name}} {{end}}").Output()
	return err == nil && strings.Contains(string(out), "Podman")
}

// takesDevices reports whether the engine gives devices of CDI to containers, and docker run asks it: podman does, and Docker
// since version 25.
func takesDevices() bool {
	var major int
	out, err := exec.Command("docker", "version", "--format", "{{.Client.Version}}").Output()
	if _, unread := fmt.Sscanf(string(out), "%d.", &major); err != nil || unread != nil || major < 25 {
		return false
	}
	out, err = exec.Command("docker", "info", "--format", "{{.CDISpecDirs}}").Output()
	return podman() || err == nil && strings.Contains(string(out), "/")
}

// open gives all users access to the folders above a file of the tests, as far as
// they are the run's.
func open(path string) {
	for dir := path; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) // what is not ours to open is open
	}
}

// removeContainers removes the containers that a failed story has left.
func removeContainers(t *testing.T, dir string) {
	removeContainersOf(t, filepath.Join(dir, state.FileName))
}

func removeContainersOf(t *testing.T, path string) {
	prior, err := state.Store{Path: path}.Load()
	if err != nil || prior.Lineage == "" {
		return
	}
	out, err := bounded(t, "docker", "ps", "-aq", "--filter", "label=cosplay.lineage="+prior.Lineage).Output()
	if ids := strings.Fields(string(out)); err == nil && len(ids) > 0 {
		out, err := bounded(t, "docker", append([]string{"rm", "-f"}, ids...)...).CombinedOutput()
		t.Logf("removed %d containers that a story left: %s %v", len(ids), out, err)
	}
}
