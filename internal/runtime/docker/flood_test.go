package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cosplay/internal/initd/inittest"
)

// floodMemory is the memory of a session that has to survive a flood, MiB.
const floodMemory = 256

// A session with little memory survives 1,300 clients that do not log in, however far they go, and lets its user in
// meanwhile. Behind Docker's proxy all clients have one address.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.Limits.MemoryMiB = floodMemory
	made := w.prepare(t)
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(w.keys[0]))
	check(t, err)
	before := w.memory(t, made.ID)
	floods := inittest.Floods(t, w.s.Spec.User.Name, public)
	for _, name := range []string{"silent", "key exchange", "keys exchanged"} { // the server's own tests have the rest
		flood := floods[name]
		opened, stop := flood.Start(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(made.SSHPort)), inittest.HalfOpen)
		passed, began := 0, time.Now()
		for range 20 {
			if w.logsIn(t, made.SSHPort) {
				passed++
			}
		}
		each := time.Since(began) / 20
		stop()
		t.Logf("%s: %d of 20 logins, %v each, %d connections, %d MiB at most so far", name, passed, each, opened.Load(), w.memory(t, made.ID))
		if passed < 19 {
			t.Errorf("%s: %d of 20 logins succeed", name, passed)
		}
	}
	there, err := w.inspect(context.Background(), made.ID)
	check(t, err)
	if there.State.OOMKilled || there.RestartCount > 0 {
		t.Errorf("the session was killed: %+v", there.State)
	}
	t.Logf("the container: %d MiB before, %d MiB at most of %d", before, w.memory(t, made.ID), floodMemory)
}

func (w *world) logsIn(t *testing.T, port int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), inittest.LoginTime)
	defer cancel()
	args := w.sshCommand(port, "echo in").Args
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if string(out) != "in\n" {
		t.Logf("%v: %s", err, complaints.String())
	}
	return string(out) == "in\n"
}

// memory is the most that a container has ever had, MiB; where the kernel does not say, what it has now.
func (w *world) memory(t *testing.T, id string) uint64 {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/memory/docker/" + id + "/memory.max_usage_in_bytes", "/sys/fs/cgroup/system.slice/docker-" + id + ".scope/memory.peak", "/sys/fs/cgroup/docker/" + id + "/memory.peak"} {
		files, err := filepath.Glob(pattern)
		check(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			check(t, err)
			bytes, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
			check(t, err)
			return bytes >> 20
		}
	}
	stats, err := w.Engine.client.ContainerStatsOneShot(context.Background(), id)
	check(t, err)
	defer stats.Body.Close()
	var now struct {
		Memory struct {
			Usage uint64 `json:"usage"`
			Max   uint64 `json:"max_usage"`
		} `json:"memory_stats"`
	}
	check(t, json.NewDecoder(stats.Body).Decode(&now))
	return max(now.Memory.Usage, now.Memory.Max) >> 20
}
