package docker

import (
	"context"
	"os/exec"
	"testing"

	"github.com/docker/docker/api/types/volume"

	"cosplay/internal/resource"
)

// TestNewVolume: a new named volume belongs to the session's user. One with content, or with another owner, stays as
// it is.
func TestNewVolume(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, before string // what the first session does to the volume, as root
		readOnly     bool
		owner        string
	}{
		{"new", "true", false, "1234:1235"},
		{"with content", "touch /data/there", false, "0:0"},
		{"of another user", "chown 7:8 /data", false, "7:8"},
		{"read-only", "true", true, "0:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w.Engine.podman && c.owner == "7:8" {
				t.Skip("podman itself gives the volume to the container's user")
			}
			s := w.session(t, "volume")
			s.Spec.SSH.Enabled = false
			name := "cosplay-test-" + random()
			made, err := w.Engine.client.VolumeCreate(context.Background(), volume.CreateOptions{Name: name})
			check(t, err)
			t.Cleanup(func() { _ = w.Engine.client.VolumeRemove(context.Background(), made.Name, true) })
			w.asRoot(t, name, c.before)
			s.Spec.Volumes = []resource.Volume{{Source: name, Target: "/data", ReadOnly: c.readOnly}}
			w.s = s
			w.prepare(t)
			if out, said, _ := w.exec(t, nil, "stat", "-c", "%u:%g", "/data"); out != c.owner+"\n" {
				t.Errorf("it belongs to %q, %s; want %s", out, said, c.owner)
			}
			if _, said, code := w.exec(t, nil, "touch", "/data/mine"); (code == 0) != (c.owner == "1234:1235") {
				t.Errorf("the user's file: code %d, %s", code, said)
			}
			check(t, unprepare(context.Background(), w.Runtime, s.ID))
		})
	}
}

// asRoot runs a line of shell in a new container that has a volume at /data.
func (w *world) asRoot(t *testing.T, volume, line string) {
	t.Helper()
	if out, err := exec.Command("docker", "run", "--rm", "-v", volume+":/data", "--entrypoint", "/bin/busybox", tiny, "sh", "-c", "busybox "+line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", line, err, out)
	}
}

// TestSharedMemory: without a limit a session has more than the engine's 64 MiB.
func TestSharedMemory(t *testing.T) {
	w := newWorld(t)
	for limit, want := range map[int]int64{0: 1 << 30, 32: 32 << 20} {
		w.s.Spec.Limits.ShmMiB = limit
		there, err := w.inspect(context.Background(), w.prepare(t).ID)
		check(t, err)
		if got := there.HostConfig.ShmSize; got != want {
			t.Errorf("shm_size of %d MiB is %d bytes, want %d", limit, got, want)
		}
	}
}
