package docker

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// checked is what a survey says of a session, by attribute and summary.
func (w *world) checked(t *testing.T, s resource.Session, removed ...string) string {
	t.Helper()
	survey, err := w.Survey(context.Background())
	check(t, err)
	out := map[string]bool{}
	for _, id := range removed {
		out[id] = true
	}
	return problemWords(survey.Check(context.Background(), s, out))
}

func problemWords(problems []preflight.Problem) string {
	var all []string
	for _, p := range problems {
		word := ""
		if p.Warning {
			word = "warning: "
		}
		all = append(all, word+p.Attribute+": "+p.Summary+". "+prose.Sentence(p.Error()))
	}
	return strings.Join(all, "\n")
}

// TestCheck: each thing that the engine would refuse after the old container is
// removed is found before; the session's own container is no obstacle.
func TestCheck(t *testing.T) {
	w := newWorld(t)
	if got := w.checked(t, w.s); got != "" {
		t.Errorf("without an obstacle: %s", got)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	taken := listener.Addr().(*net.TCPAddr).Port
	free, err := freePort("127.0.0.1", 0)
	check(t, err)
	id := w.foreign(t, "cosplay-test-"+random(), container.Config{ExposedPorts: nat.PortSet{sshNAT: {}}},
		&container.HostConfig{PortBindings: nat.PortMap{sshNAT: {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(free)}}}})
	check(t, w.Engine.client.ContainerStart(context.Background(), id, container.StartOptions{}))
	for _, c := range []struct {
		name, want string
		before     func(*resource.Session)
		removed    []string
	}{
		{"no such volume", "volume[1].source: there is no /not/there to mount", func(s *resource.Session) {
			s.Spec.Volumes = []resource.Volume{{Source: "data", Target: "/a"}, {Source: "/not/there", Target: "/b"}}
		}, nil},
		{"a volume that the workspace brings", "", func(s *resource.Session) {
			s.Spec.Volumes = []resource.Volume{{Source: filepath.Dir(s.Workspace), Target: "/a"}}
		}, nil},
		{"a workspace behind a file", "workspace: the workspace /etc/passwd/x cannot be created. /etc/passwd is a file", func(s *resource.Session) { s.Workspace = "/etc/passwd/x" }, nil},
		{"too many CPUs", "limits.cpus: the machine has ", func(s *resource.Session) { s.Spec.Limits.CPUs = 9999 }, nil},
		{"more memory than there is", "warning: limits.memory: the machine has ", func(s *resource.Session) { s.Spec.Limits.MemoryMiB = 1 << 30 }, nil},
		{"no address of this machine", "ssh.bind: ssh cannot listen on 192.0.2.1. 192.0.2.1 is not an address of this machine", func(s *resource.Session) { s.Spec.SSH.Bind = "192.0.2.1" }, nil},
		{"a port of a program", "ssh.port: port " + strconv.Itoa(taken) + " on 127.0.0.1 is taken. A program that is no container's", func(s *resource.Session) { s.Spec.SSH.Port = taken }, nil},
		{"a port of a container", "is taken. The container cosplay-test-", func(s *resource.Session) { s.Spec.SSH.Port = free }, nil},
		{"on all addresses", "is taken. The container cosplay-test-", func(s *resource.Session) { s.Spec.SSH.Bind, s.Spec.SSH.Port = "0.0.0.0", free }, nil},
		{"a port of a container that is removed", "", func(s *resource.Session) { s.Spec.SSH.Port = free }, []string{id}},
		{"a port that it had", "warning: ssh: session.one gets another port for ssh. Port " + strconv.Itoa(free), func(s *resource.Session) { s.Spec.SSH.Kept = free }, nil},
		{"a port without ssh", "", func(s *resource.Session) { s.Spec.SSH.Enabled, s.Spec.SSH.Port = false, free }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, spec := w.s, w.s.Spec
			s.Spec = spec
			c.before(&s)
			if got := w.checked(t, s, c.removed...); !strings.Contains(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestCheckNames: a container of the project is no obstacle, whatever its name is, and a foreign one with the name is.
func TestCheckNames(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	w.s.Spec.SSH.Kept = made.SSHPort
	if got := w.checked(t, w.s, made.ID); got != "" {
		t.Errorf("its own: %s", got)
	}
	check(t, w.Engine.client.ContainerRename(ctx, made.ID, "cosplay-test-"+random()))
	w.foreign(t, w.s.BodyName(), container.Config{}, nil)
	if got := w.checked(t, w.s, made.ID); !strings.Contains(got, "cannot have the container "+w.s.BodyName()) || !strings.Contains(got, "which cosplay did not make. Fix: remove it") {
		t.Errorf("foreign: %s", got)
	}
}

// TestOneListForMany: many sessions cost one question.
func TestOneListForMany(t *testing.T) {
	w := newWorld(t)
	var asked atomic.Int32
	defer w.through(t, func(_ http.ResponseWriter, _ *http.Request) bool { asked.Add(1); return false })()
	before := asked.Load()
	survey, err := w.Survey(context.Background())
	check(t, err)
	other := w.s
	other.Spec.Image = "cosplay-test/missing:1"
	for i := range 100 {
		if problems := survey.Check(context.Background(), []resource.Session{w.s, other}[i%2], nil); len(problems) > 0 {
			t.Fatal(problemWords(problems))
		}
	}
	want := int32(3)
	if w.Engine.podman { // which also knows an image by the name that it gave it
		want = 6
	}
	if n := asked.Load() - before; n > want {
		t.Errorf("%d requests, want %d: the containers, and each image once", n, want)
	}
}
