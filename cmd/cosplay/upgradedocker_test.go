package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"cosplay/driver"
	"cosplay/internal/need"
	"cosplay/internal/state"
)

// inspected is what the engine reported of a container of an earlier version, as far as
// it can be asked for again.
type inspected struct {
	ID         string `json:"Id"`
	Name       string
	Image      string
	Config     *container.Config
	HostConfig struct {
		Mounts        json.RawMessage
		PortBindings  json.RawMessage
		RestartPolicy json.RawMessage
		NanoCpus      int64
		Memory        int64
		ShmSize       int64
	}
}

const emptyImage = "cosplay-test/empty"

// TestUpgradeDocker: this cosplay finds the containers that an earlier version created,
// neither replaces nor restarts them, starts one that is stopped, and removes them.
func TestUpgradeDocker(t *testing.T) {
	need.Root(t, "docker") // it is the user of the sessions
	if out, err := bounded(t, "docker", "version").CombinedOutput(); err != nil {
		need.Lacking(t, "there is no Docker engine: %v\n%s", err, out)
	}
	eachVersion(t, func(t *testing.T) {
		p := upgradeCase(t, "docker")
		p.recreate()
		running := func() string {
			return p.docker("ps", "--no-trunc", "--filter", "name=cosplay-upgraded", "--format", "{{.ID}} {{.Names}}")
		}
		started := func() string {
			return p.docker("inspect", "-f", "{{.Id}} {{.State.StartedAt}}", "cosplay-upgraded-0", "cosplay-upgraded-1", "cosplay-upgradedbig")
		}
		ids, times := running(), started()
		if strings.Count(ids, "\n") != 3 {
			t.Fatalf("they do not run: %s\n%s", ids, p.docker("ps", "-a"))
		}
		p.rebuilds()
		p.keepsAll()
		if d := cmp.Diff(times, started()); d != "" {
			t.Errorf("containers were replaced or restarted: %s", d)
		}
		p.docker("stop", "-t", "1", "cosplay-upgraded-0")
		p.run("apply", "--auto-approve")
		if d := cmp.Diff(ids, running()); d != "" {
			t.Errorf("a container was not started again: %s", d)
		}
		p.run("plan", "--detailed-exitcode")
		fresh := newProject(t, `host "lab" { simulate = "1 x h200" }`)
		fresh.run("plan")
		p.ends(fresh.shown())
		if left := p.containers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// docker must succeed.
func (p project) docker(args ...string) string {
	p.t.Helper()
	out, err := bounded(p.t, "docker", args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("docker %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// recreate creates and starts the containers of a case with the engine's own API, as the
// earlier version had them created. The engine chooses ids and digests, which the state
// then gets.
func (p project) recreate() {
	t := p.t
	t.Helper()
	var all []inspected
	path := filepath.Join(p.dir, "inspected.json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.tar")
	if err := os.WriteFile(empty, make([]byte, 1024), 0o600); err != nil {
		t.Fatal(err)
	}
	p.docker("import", "-c", "ENV FROM_IMAGE=yes", empty, emptyImage)
	t.Cleanup(func() {
		for _, c := range all {
			_ = bounded(t, "docker", "rm", "-f", strings.TrimPrefix(c.Name, "/")).Run()
		}
		_ = bounded(t, "docker", "rmi", emptyImage).Run()
	})
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	image := strings.TrimSpace(p.docker("inspect", "-f", "{{.Id}}", emptyImage))
	var replaced []string
	for _, c := range all {
		var host container.HostConfig
		text, err := json.Marshal(c.HostConfig)
		if err == nil {
			err = json.Unmarshal(text, &host)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = bounded(t, "docker", "rm", "-f", strings.TrimPrefix(c.Name, "/")).Run() // of a killed run
		made, err := engine.ContainerCreate(t.Context(), c.Config, &host, nil, nil, c.Name)
		if err != nil {
			t.Fatal(err)
		}
		replaced = append(replaced, c.ID, made.ID, c.Image, image)
		p.runnable(c.Name)
		p.docker("start", made.ID)
	}
	path = filepath.Join(p.dir, state.FileName)
	prior, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p.write(state.FileName, resealed([]byte(strings.NewReplacer(replaced...).Replace(string(prior)))))
}

// runnable puts this version's first program into a container's folder: the archive has
// none.
func (p project) runnable(name string) {
	p.t.Helper()
	program, err := driver.Library(driver.Init)
	if err != nil {
		p.t.Fatal(err)
	}
	folder := strings.TrimPrefix(name, "/cosplay-")
	found, _ := filepath.Glob(filepath.Join(p.dir, ".cosplay/sessions/*/*", folder, "inside", driver.Init))
	for _, path := range found {
		if err := os.WriteFile(path, program, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

var checksum = regexp.MustCompile(`"checksum": "sha256:(\w+)"`)

// resealed is a state with the checksum of its content: the hash of all bytes but it.
func resealed(data []byte) []byte {
	was := checksum.Find(data)
	sum := sha256.Sum256(bytes.Replace(data, was, []byte(`"checksum": ""`), 1))
	return bytes.Replace(data, was, fmt.Appendf(nil, `"checksum": "sha256:%x"`, sum), 1)
}
