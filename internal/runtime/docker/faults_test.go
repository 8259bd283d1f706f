package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// TestWords: what engines of several versions say, and what we make of it.
func TestWords(t *testing.T) {
	about := subject{name: "cosplay-worker-3", image: "debian:12", bind: "127.0.0.1", port: 2222}
	for _, c := range []struct{ says, words, next string }{
		{`permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.51/info": dial unix /var/run/docker.sock: connect: permission denied`,
			"you may not use the engine's socket", "sudo usermod -aG docker $USER"},
		{"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "the engine does not answer", "sudo systemctl start docker"},
		{`Error response from daemon: Conflict. The container name "/cosplay-worker-3" is already in use by container "0123456789abcdef". You have to remove (or rename) that container to be able to reuse that name.`,
			"cosplay-worker-3 is taken by the container 0123456789ab", "docker rename"},
		{"Error response from daemon: Invalid container name (cosplay-worker-3), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed", "cosplay-worker-3 cannot be the name of a container", "letters, digits"},
		{"Error response from daemon: No such image: nope:latest", "there is no image nope:latest", `pull = "missing"`},
		{"Error response from daemon: invalid mount config for type \"bind\": bind source path does not exist: /data/x", "there is no /data/x to mount", "mkdir -p"},
		{`failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error mounting "/usr/lib/libnvidia-ml.so.550" to rootfs at "/run/cosplay/driver/libnvidia-ml.so.1": mount /usr/lib/libnvidia-ml.so.550: no such file or directory: unknown`,
			"/usr/lib/libnvidia-ml.so.550 cannot be mounted", "correct the path"},
		{"invalid mount config for type \"bind\": invalid mount path: 'data' mount path must be absolute", "the path data of a volume is not absolute", "with a / at the front"},
		{"Duplicate mount point: /workspace", "two things would be mounted at /workspace", "another target"},
		{`create a$b: "a$b" includes invalid characters for a local volume name, only "[a-zA-Z0-9][a-zA-Z0-9_.-]" are allowed`, "a$b cannot be the name of a volume", "absolute path"},
		{"driver failed programming external connectivity on endpoint x: Bind for 127.0.0.1:2222 failed: port is already allocated", "port 2222 on 127.0.0.1 is taken", `port = "auto"`},
		{"driver failed programming external connectivity on endpoint x: Error starting userland proxy: listen tcp4 127.0.0.1:2222: bind: address already in use", "port 2222 on 127.0.0.1 is taken by another program", "ss -ltnp"},
		{"failed to set up container networking: driver failed programming external connectivity on endpoint x: failed to bind host port for 127.0.0.1:2222:172.17.0.2:22/tcp: address already in use", "port 2222 on 127.0.0.1 is taken", `port = "auto"`},
		{"Error starting userland proxy: listen tcp4 10.9.9.9:2222: bind: cannot assign requested address", "127.0.0.1 is not an address of this machine", "the address in the ssh block"},
		{"error while calling PortManager.AddPort(): cannot expose privileged port 22, you can add 'net.ipv4.ip_unprivileged_port_start=22'", "the engine may not open port 2222", "from 1024"},
		{`exec /run/cosplay/cosplay-init: exec format error`, "debian:12 is for another kind of processor", "--platform"},
		{`OCI runtime create failed: runc create failed: unable to start container process: exec: "/run/cosplay/cosplay-init": stat /run/cosplay/cosplay-init: no such file or directory: unknown`, "/run/cosplay/cosplay-init cannot be started", "cosplay apply"},
		{`could not select device driver "nvidia" with capabilities: [[gpu]]`, "no way to give a container a GPU", "nvidia-ctk runtime configure"},
		{"Unknown runtime specified nvidia", "does not know the runtime nvidia", "nvidia-ctk runtime configure"},
		{"unknown or invalid runtime name: nvidia", "does not know the runtime nvidia", `runtime = "process"`},
		{"OCI runtime create failed: failed to inject CDI devices: unresolvable CDI devices cosplay/session=cosplay-worker-3: unknown", "device cosplay/session=cosplay-worker-3 does not exist", "cosplay apply"},
		{"error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: device error: MIG-x: unknown device: unknown", "refuses the slice (device error: MIG-x: unknown device", "nvidia-smi -L"},
		{"error running prestart hook #0: exit status 1", "a hook of the engine failed", "journalctl -u docker"},
		{"write /var/lib/docker/x: no space left on device", "disk of the engine or of the session folder is full", "docker system df"},
		{"Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", "cannot keep the limits", "limits block"},
		{"Container 0123 is not running", "the container does not run", "cosplay apply"},
		{`Error response from daemon: container create: creating container storage: the container name "cosplay-worker-3" is already in use by 0123456789abcdef. You have to remove that container to be able to reuse that name: that name is already in use`,
			"cosplay-worker-3 is taken by the container 0123456789ab", "docker rename"},
		{"Error response from daemon: no such image: docker.io/library/nope:latest: image not known", "there is no image nope:latest (", `pull = "missing"`},
		{"Error response from daemon: container create: running container create option: names must match [a-zA-Z0-9][a-zA-Z0-9_.-]*: invalid argument", "cosplay-worker-3 cannot be the name of a container", "letters, digits"},
		{"Error response from daemon: fill out specgen: /workspace: duplicate mount destination", "two things would be mounted at /workspace", "another target"},
		{`Error response from daemon: container create: creating named volume "a$b": running volume create option: names must match`, "a$b cannot be the name of a volume", "absolute path"},
		{"Error response from daemon: Not Found", "the engine does not have this function", "--replace"},
		{"No such container: cosplay-worker-3", "the container was removed", "cosplay apply"},
	} {
		cause := errors.New(c.says)
		err := (&Engine{}).explain("creating the container", cause, about)
		if !strings.HasPrefix(err.Error(), "creating the container: ") || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), c.next) ||
			!strings.Contains(err.Error(), "(the engine says: ") || !errors.Is(err, cause) {
			t.Errorf("of %q is made\n%v\nwithout %q or %q", c.says, err, c.words, c.next)
		}
		var advice prose.Advice
		if !errors.As(err, &advice) {
			t.Fatalf("of %q is made %v", c.says, err)
		}
		for _, left := range []string{"NAME", "IMAGE", "BIND", "PORT", "HOLDER", "WHERE", "$1", "$$"} {
			if strings.Contains(advice.Error(), left) {
				t.Errorf("of %q is made %v, with %s in it", c.says, err, left)
			}
		}
	}
	long := (&Engine{}).explain("x", errors.New("no space left on device: "+strings.Repeat("and so on ", 200)+"at last"), about).Error()
	if len(long) > 600 || !strings.Contains(long, "at last)") {
		t.Errorf("%d bytes: %s", len(long), long)
	}
	if err := (&Engine{}).explain("starting", fmt.Errorf("post: %w", context.DeadlineExceeded), about); !strings.Contains(err.Error(), "systemctl restart docker") || strings.Contains(err.Error(), "--parallelism") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
	if err := (&Engine{}).explain("starting", context.Canceled, about); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestFaults provokes what can be: each has its message, and nothing is left.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer busy.Close()
	taken := busy.Addr().(*net.TCPAddr).Port
	heldPort, err := freePort("127.0.0.1", 0)
	check(t, err)
	binding := nat.PortMap{"80/tcp": {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(heldPort)}}}
	name := "cosplay-test-" + random()
	held := w.foreign(t, name, container.Config{ExposedPorts: nat.PortSet{"80/tcp": {}}}, &container.HostConfig{PortBindings: binding})
	check(t, w.Engine.client.ContainerStart(context.Background(), held, container.StartOptions{}))

	// Whatever the load: a session that ends must be seen to end.
	settle := settleTime
	settleTime = readyTime
	whole := w.s
	for _, c := range []struct {
		name   string
		change func(*resource.Session, *Runtime)
		words  string
	}{
		{"image missing", func(s *resource.Session, _ *Runtime) { s.Spec.Image = "cosplay-test/nope:1" }, "there is no image cosplay-test/nope:1"},
		{"volume source missing", func(s *resource.Session, _ *Runtime) {
			s.Spec.Volumes = []resource.Volume{{Source: "/nowhere/at/all", Target: "/data"}}
		}, "there is no /nowhere/at/all to mount"},
		{"volume over the workspace", func(s *resource.Session, _ *Runtime) {
			s.Spec.Volumes = []resource.Volume{{Source: "/tmp", Target: "/workspace"}}
		}, "two things would be mounted at /workspace"},
		{"volume without a name", func(s *resource.Session, _ *Runtime) {
			s.Spec.Volumes = []resource.Volume{{Source: "a$b", Target: "/data"}}
		}, "a$b cannot be the name of a volume"},
		{"port taken by a program", func(s *resource.Session, _ *Runtime) { s.Spec.SSH.Port = taken }, fmt.Sprintf("port %d on 127.0.0.1 is taken by another program", taken)},
		{"port taken by a container", func(s *resource.Session, _ *Runtime) { s.Spec.SSH.Port = heldPort }, fmt.Sprintf("port %d on 127.0.0.1 is taken by the container %s", heldPort, name)},
		{"bind elsewhere", func(s *resource.Session, _ *Runtime) { s.Spec.SSH.Bind, s.Spec.SSH.Port = "192.0.2.1", 2222 }, "192.0.2.1 is not an address of this machine"},
		{"bind elsewhere, any port", func(s *resource.Session, _ *Runtime) { s.Spec.SSH.Bind = "192.0.2.1" }, "correct bind in the ssh block"},
		{"command not there", func(s *resource.Session, _ *Runtime) { s.Command = []string{"nowhere"} }, "it ended at once, with code 127"},
		{"command that ends", func(s *resource.Session, _ *Runtime) {
			s.Spec.SSH.Enabled, s.Command = false, []string{"sh", "-c", "echo my last words; exit 3"}
		}, "my last words"},
		{"command that ends, with ssh", func(s *resource.Session, _ *Runtime) { s.Command = []string{"sh", "-c", "sleep 1; false"} }, "it ended at once, with code 1"},
		{"too many processors", func(s *resource.Session, _ *Runtime) { s.Spec.Limits.CPUs = 1e4 }, "cannot keep the limits"},
		{"a bad name", func(s *resource.Session, _ *Runtime) { s.ID = "a b" }, "cosplay-a b cannot be the name of a container"},
		{"no library", func(_ *resource.Session, r *Runtime) { r.Library = "/nowhere/libnvidia-ml.so.1" }, "the host's libnvidia-ml.so.1: stat /nowhere/libnvidia-ml.so.1"},
		{"no state", func(_ *resource.Session, r *Runtime) { r.SimDir = "/nowhere" }, "there is no /nowhere to mount"},
		{"workspace is a file", func(s *resource.Session, r *Runtime) { s.Workspace = r.Library }, "making the workspace"},
	} {
		if w.Engine.podman && c.name == "too many processors" {
			continue // podman does not compare; the checks before a plan do
		}
		s, r, spec := whole, w.Runtime, whole.Spec
		s.Spec = spec
		c.change(&s, &r)
		_, err := r.Prepare(context.Background(), s, w.given)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.name, err)
		}
		if all := w.labelled(t); len(all) != 0 {
			t.Errorf("%s: left %v after %v", c.name, all[0].Names, err)
		}
		if left, err := filepath.Glob(filepath.Join(r.Folders, "*")); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", c.name, left, err)
		}
	}
	settleTime = settle
	// A replacement that fails leaves nothing that runs with the old content.
	w.prepare(t)
	w.s.Spec.Image = "cosplay-test/nope:1"
	_, err = w.Prepare(context.Background(), w.s, w.given)
	if _, left := os.Stat(w.Folders); !errdefs.IsNotFound(err) || len(w.labelled(t)) != 0 || left == nil {
		t.Errorf("a replacement without an image: %v, left %v", err, w.labelled(t))
	}
}

// TestExitCode: the engine may report 0 for a container that it restarts, and is asked once more.
func TestExitCode(t *testing.T) {
	codes := []int{0, 127, 1}
	e := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"StatusCode": %d}`, codes[0])
		codes = codes[1:]
	})
	for _, c := range []struct {
		restart    string
		code, want int64
	}{{"no", 0, 0}, {"on-failure", 0, 0}, {"always", 3, 3}, {"unless-stopped", 0, 127}} {
		if got := (Runtime{Engine: e}).exitCode(context.Background(), "1", c.restart, c.code); got != c.want {
			t.Errorf("%s: %d, want %d", c.restart, got, c.want)
		}
	}
	if len(codes) != 1 {
		t.Errorf("asked %d times, not 2", 3-len(codes))
	}
}

// TestSaysPortTaken: a program that speaks of ports is not the engine; its container stays.
func TestSaysPortTaken(t *testing.T) {
	w := newWorld(t)
	defer func(before time.Duration) { settleTime = before }(settleTime)
	w.s.Command = []string{"sh", "-c", "[ ! -e fails ] || { echo address already in use; exit 1; }; exec sleep 1000"}
	made := w.prepare(t)
	check(t, w.Engine.client.ContainerKill(context.Background(), made.ID, "KILL"))
	check(t, os.WriteFile(filepath.Join(w.s.Workspace, "fails"), nil, 0o644))
	settleTime = readyTime
	_, err := w.Prepare(context.Background(), w.s, w.given)
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("it says %v", err)
	}
	if all := w.labelled(t); len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("there is %+v, was %+v", all, made)
	}
}

// TestPortTakenMeanwhile: a stopped session whose port is lost gets another one, if any will do.
func TestPortTakenMeanwhile(t *testing.T) {
	w := newWorld(t)
	made := w.prepare(t)
	check(t, w.Engine.client.ContainerKill(context.Background(), made.ID, "KILL"))
	busy, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", made.SSHPort))
	check(t, err)
	defer busy.Close()
	again := w.prepare(t)
	if again.ID == made.ID || again.SSHPort == made.SSHPort || again.State != resource.Running {
		t.Errorf("made %+v, then %+v", made, again)
	}
	w.ssh(t, again.SSHPort, "true")
	if len(w.labelled(t)) != 1 {
		t.Errorf("there are %v", w.labelled(t))
	}
}

func TestNoDaemon(t *testing.T) {
	for name, host := range map[string]string{
		"no socket": "unix://" + filepath.Join(t.TempDir(), "none.sock"),
		"no server": "tcp://127.0.0.1:1",
	} {
		t.Setenv("DOCKER_HOST", host)
		if _, err := Connect(context.Background()); err == nil || !strings.Contains(err.Error(), "the engine does not answer") || !strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Geteuid() == 0 {
		return // root may use any socket
	}
	path := filepath.Join(t.TempDir(), "closed.sock")
	l, err := net.Listen("unix", path)
	check(t, err)
	defer l.Close()
	check(t, os.Chmod(path, 0))
	t.Setenv("DOCKER_HOST", "unix://"+path)
	if _, err := Connect(context.Background()); err == nil || !strings.Contains(err.Error(), "usermod -aG docker") {
		t.Errorf("a closed socket: %v", err)
	}
}

// TestAboutPort: an error names the port of ssh or one that is published, whichever the engine could not open.
func TestAboutPort(t *testing.T) {
	w := newWorld(t)
	s := w.s
	s.Spec.Ports = []resource.Port{{Bind: "127.0.0.1", Host: 8080, Container: 80}}
	for says, want := range map[string]string{
		"Bind for 127.0.0.1:8080 failed: port is already allocated":                             "port 8080 on 127.0.0.1 is taken.*choose another in ports",
		"listen tcp4 127.0.0.1:2222: bind: address already in use":                              "port 2222 on 127.0.0.1 is taken.*choose another in the ssh block",
		"failed to bind host port 127.0.0.1:8080/tcp: address already in use":                   "port 8080 .*in ports",
		"failed to bind host port for 127.0.0.1:2222:172.17.0.2:22/tcp: address already in use": "port 2222 .*ssh block",
	} {
		cause := errors.New(says)
		what, ofSSH := w.aboutPort(context.Background(), s, 2222, cause)
		err := w.Engine.explain("starting", cause, what)
		if got := err.Error(); !regexp.MustCompile(want).MatchString(got) || ofSSH != strings.Contains(want, "ssh") {
			t.Errorf("%s: %s, of ssh: %v", says, got, ofSSH)
		}
	}
}
