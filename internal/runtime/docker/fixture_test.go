package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"cosplay/catalog"
	"cosplay/driver"
	"cosplay/internal/apply"
	"cosplay/internal/initd/inittest"
	"cosplay/internal/inside"
	"cosplay/internal/need"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/sim"
)

var (
	_ apply.Runtime        = Runtime{}
	_ apply.Images         = Runtime{}
	_ observe.BodyLister   = Runtime{}
	_ observe.EngineReader = Runtime{}
)

// engine is the machine's own. Where there is none, the test is skipped, and fails if COSPLAY_DOCKER is 1.
func engine(t *testing.T) *Engine {
	t.Helper()
	e, err := Connect(context.Background())
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// world is a simulated host with one slice, and a runtime with a session on it.
// Everything that it creates is removed after the test.
type world struct {
	Runtime
	s     resource.Session
	given resource.Handle
	key   string // private key file of the session's user
	keys  []string
}

const hostName = "lab"

// Files that a container sees below /run/cosplay.
const (
	facadeFile     = "lib/" + driver.NVML
	cudaFacadeFile = "lib/" + driver.CUDA
	driverFile     = "driver/" + driver.NVML
)

// newWorld makes one; nil where there is no engine.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	w := &world{Runtime: Runtime{Engine: engine(t), Sessions: inside.On(runtime.Host{
		Folders: filepath.Join(dir, "sessions"),
		Name:    hostName,
		Owner:   resource.Owner{Lineage: random(), Key: "key"},
		SimDir:  filepath.Join(dir, "sim"),
	})}}
	w.Library = sim.LibraryPath(w.SimDir)
	t.Cleanup(func() { w.sweep(t) })
	busybox(t, w.Engine)
	w.simulate(t)
	_, _, line := inittest.Key(t, dir, "id")
	w.key, w.keys = filepath.Join(dir, "id"), []string{strings.TrimSpace(line)}
	w.s = w.session(t, "one")
	w.s.Workspace = filepath.Join(dir, "deep", "work")
	return w
}

func (w *world) simulate(t *testing.T) {
	t.Helper()
	model, err := catalog.HostModel("h200")
	check(t, err)
	check(t, sim.Create(w.SimDir, []resource.Model{model}, sim.Options{Simulates: "h200", Seed: "test"}))
	h, err := sim.Open(w.SimDir)
	check(t, err)
	defer h.Close()
	check(t, h.Set(0, "mig", "on"))
	id, err := h.CreateSlice(0, "1g.18gb", 0)
	check(t, err)
	shown, err := h.Show()
	check(t, err)
	w.given = resource.Handle{GPUInstance: id, UUID: shown.GPUs[0].Slices[0].Compute[0].UUID}
}

// session has a unique id, and jane as its user.
func (w *world) session(t *testing.T, name string) resource.Session {
	t.Helper()
	target, err := catalog.Target("rtx-2060")
	check(t, err)
	return resource.Session{
		Address: resource.One(name), ID: name + "-" + random(), Target: target, Runtime: "docker",
		Slice:   resource.Slice{Host: hostName, GPU: "GPU-0", Profile: "1g.18gb", Size: 1},
		Program: resource.Program{Workspace: t.TempDir(), Env: map[string]string{"SEED": "14"}},
		Spec: resource.ContainerSpec{
			Image: tiny, Restart: "unless-stopped", Sudo: true,
			SSH:        resource.SSH{Enabled: true, Bind: "127.0.0.1", AuthorizedKeys: w.keys},
			Entrypoint: []string{}, Limits: resource.Limits{ShmMiB: 32, PIDs: 512}, // the entrypoint of the image is not reported
			User: resource.User{Name: "jane", UID: 1234, GID: 1235, Group: "people"},
		},
	}
}

func random() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// prepare must succeed.
func (w *world) prepare(t *testing.T) resource.Body {
	t.Helper()
	c, err := w.Prepare(context.Background(), w.s, w.given)
	check(t, err)
	return c
}

// list is without the bounds and the use, which only a look shows. Nothing uses memory.
func (w *world) list(t *testing.T) []resource.Body {
	t.Helper()
	all, err := w.List(context.Background())
	check(t, err)
	for i := range all {
		if use := all[i].Use; use != nil && !use.IsZero() {
			t.Errorf("%s uses %+v", all[i].Session, use)
		}
		all[i].Bounds, all[i].Use = nil, nil
	}
	return all
}

// labelled are all containers with the lineage, of any owner.
func (w *world) labelled(t *testing.T) []container.Summary {
	t.Helper()
	all, err := w.Engine.client.ContainerList(context.Background(), container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelLineage+"="+w.Owner.Lineage))})
	check(t, err)
	return all
}

// sweep removes what the test has left, the way a user would.
func (w *world) sweep(t *testing.T) {
	for _, c := range w.list(t) {
		if err := unprepare(context.Background(), w.Runtime, c.Session); err != nil {
			t.Error(err)
		}
	}
	for _, c := range w.labelled(t) {
		t.Errorf("left: %v", c.Names)
		_ = w.Engine.client.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true})
	}
}

// foreign creates a foreign container, which is removed after the test.
func (w *world) foreign(t *testing.T, name string, config container.Config, host *container.HostConfig) string {
	t.Helper()
	config.Image, config.Entrypoint, config.Cmd = tiny, []string{"sleep"}, []string{"1000"}
	made, err := w.Engine.client.ContainerCreate(context.Background(), &config, host, nil, nil, name)
	check(t, err)
	t.Cleanup(func() {
		_ = w.Engine.client.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
	})
	return made.ID
}

// leave creates what an interrupted Prepare leaves, and returns the container's ID.
func (w *world) leave(t *testing.T) string {
	t.Helper()
	g, err := w.grant(context.Background(), w.access(), w.s, w.given, true)
	check(t, err)
	check(t, w.Furnish(w.s, w.given, g.Grant, nil))
	check(t, inside.MakeWorkspace(w.s.Workspace, w.s.Spec.User))
	port, err := freePort("127.0.0.1", 0)
	check(t, err)
	id, err := w.create(context.Background(), w.s, w.given.UUID, g, port)
	check(t, err)
	check(t, os.Remove(filepath.Join(w.Inside(w.s.ID), "init.json")))
	return id
}

// through puts a proxy before the engine, which answers some requests itself, and gives a way back.
func (w *world) through(t *testing.T, answers func(http.ResponseWriter, *http.Request) bool) (back func()) {
	t.Helper()
	target := w.Engine
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return target.client.Dialer()(ctx) }},
		FlushInterval: -1,
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !answers(out, r) {
			proxy.ServeHTTP(out, r)
		}
	}))
	e, err := connect(context.Background(), endpoint{host: "tcp://" + server.Listener.Addr().String()})
	check(t, err)
	w.Engine, back = e, func() { w.Engine = target }
	t.Cleanup(func() { back(); e.Close(); server.Close() })
	return back
}

func (w *world) kill(t *testing.T, id string) {
	t.Helper()
	check(t, w.Engine.client.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true}))
}

// exec runs a program in the session and gives what it printed and its code.
func (w *world) exec(t *testing.T, in io.Reader, argv ...string) (out, failed string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code, err := w.Exec(context.Background(), w.s.ID, runtime.Program{Argv: argv}, runtime.Streams{In: in, Out: &o, Err: &e})
	check(t, err)
	return o.String(), e.String(), code
}

// sshCommand is the real client, which must know the host.
func (w *world) sshCommand(port int, command ...string) *exec.Cmd {
	args := append([]string{"-F", "none", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + filepath.Join(w.Folder(w.s.ID), "known_hosts"),
		"-o", "IdentitiesOnly=yes", "-i", w.key, "-p", fmt.Sprint(port), "jane@127.0.0.1"}, command...)
	return exec.Command("ssh", args...)
}

// ssh logs in and gives what the command prints.
func (w *world) ssh(t *testing.T, port int, command ...string) string {
	t.Helper()
	out, err := w.sshCommand(port, command...).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// unprepare ends a session, whatever it used.
func unprepare(ctx context.Context, r Runtime, session string) error {
	_, err := r.Unprepare(ctx, session)
	return err
}

// tiny is the image of all tests: the static busybox of this machine. The number
// is its content's; it stays for the next run.
const tiny = "cosplay-test/busybox:2"

var applets = []string{"sh", "cat", "echo", "env", "false", "id", "ls", "sleep", "stat", "stty", "touch", "true", "sed", "head", "ps", "readlink"}

var importing sync.Mutex

func busybox(t *testing.T, e *Engine) {
	t.Helper()
	importing.Lock()
	defer importing.Unlock()
	ctx := context.Background()
	if _, err := e.client.ImageInspect(ctx, tiny); err == nil {
		return
	}
	path, err := exec.LookPath("busybox")
	if err != nil {
		need.Lacking(t, "there is no busybox to make an image of")
	}
	program, err := os.ReadFile(path)
	check(t, err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	check(t, w.WriteHeader(&tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}))
	_, err = w.Write(program)
	check(t, err)
	for _, name := range applets {
		check(t, w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}))
	}
	check(t, w.Close())
	answer, err := e.client.ImageImport(ctx, image.ImportSource{Source: &archive, SourceName: "-"}, tiny,
		image.ImportOptions{Changes: []string{"ENV PATH=/bin", "ENV FROM_IMAGE=yes", "ENV PYTHONPATH=/of/the/image", `ENTRYPOINT ["/bin/false"]`}})
	check(t, err)
	defer answer.Close()
	if said, err := io.ReadAll(answer); err != nil || strings.Contains(string(said), "errorDetail") {
		t.Fatalf("importing an image: %v %s", err, said)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
