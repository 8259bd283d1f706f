package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"

	"cosplay/internal/initd/inittest"
	"cosplay/internal/inside"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	if all := w.list(t); len(all) != 0 {
		t.Errorf("before anything there is %+v", all)
	}
	made := w.prepare(t)
	if made.Session != w.s.ID || made.Host != hostName || made.Runtime != "docker" || made.State != resource.Running ||
		made.Hash != w.s.Hash("key") || made.SliceID != w.given.UUID || !strings.HasPrefix(made.Image, "sha256:") || made.SSHPort == 0 {
		t.Errorf("made %+v", made)
	}
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("listed %+v, made %+v", all, made)
	}
	if all, err := w.List(ctx); err != nil || len(all) != 1 || all[0].Bounds == nil || *all[0].Bounds != w.s.Spec.Bounds() {
		t.Errorf("held to other bounds than %+v: %+v, %v", w.s.Spec.Bounds(), all, err)
	}
	if info, err := os.Stat(w.s.Workspace); err != nil || info.Sys().(*syscall.Stat_t).Uid != 1234 {
		t.Errorf("the workspace: %v, %v", info, err)
	}
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("preparing twice gives %+v, then %+v", made, again)
	}

	seconds := 1
	check(t, w.Engine.client.ContainerStop(ctx, made.ID, container.StopOptions{Timeout: &seconds}))
	stopped := made
	stopped.State = resource.Stopped
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], stopped) {
		t.Errorf("stopped: %+v", all)
	}
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("after a stop: %+v, was %+v", again, made)
	}
	check(t, w.Engine.client.ContainerPause(ctx, made.ID))
	if all := w.list(t); len(all) != 1 || all[0].State != resource.Paused {
		t.Errorf("paused: %+v", all)
	}
	if again := w.prepare(t); !cmp.Equal(again, made) {
		t.Errorf("after a pause: %+v, was %+v", again, made)
	}

	w.s.Env["SEED"] = "15"
	changed := w.prepare(t)
	if changed.ID == made.ID || changed.SSHPort != made.SSHPort || changed.Hash == made.Hash {
		t.Errorf("after a change: %+v, was %+v", changed, made)
	}
	w.s.Spec.SSH.Kept = changed.SSHPort
	w.kill(t, changed.ID)
	if all := w.list(t); len(all) != 0 {
		t.Errorf("after docker rm: %+v", all)
	}
	again := w.prepare(t)
	if again.ID == changed.ID || again.SSHPort != changed.SSHPort || again.Hash != changed.Hash {
		t.Errorf("after docker rm: %+v, was %+v", again, changed)
	}

	keep := filepath.Join(w.s.Workspace, "result")
	check(t, os.WriteFile(keep, nil, 0o644))
	for range 2 {
		check(t, unprepare(ctx, w.Runtime, w.s.ID))
	}
	if all := w.labelled(t); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
	if _, err := os.Stat(w.Folders); err == nil {
		t.Error("the folder of the sessions stays")
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error("the workspace was removed too")
	}
}

// TestListLags: the list of an engine may still show a container as running that has stopped.
func TestListLags(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	made := w.prepare(t)
	check(t, w.Engine.client.ContainerStop(context.Background(), made.ID, container.StopOptions{}))
	made.State = resource.Stopped
	found := w.labelled(t)
	for i := range found {
		found[i].State = container.StateRunning
	}
	w.through(t, func(out http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/containers/json") {
			return false
		}
		check(t, json.NewEncoder(out).Encode(found))
		return true
	})
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("a stopped container: %+v", all)
	}
}

// TestManyAtOnce prepares sessions side by side; each keeps its own port and they share the large files.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	const count = 3
	var (
		sessions [count]resource.Session
		made     [count]resource.Body
		errs     [count]error
		group    sync.WaitGroup
	)
	for i := range count {
		sessions[i] = w.session(t, "many")
		group.Go(func() { made[i], errs[i] = w.Prepare(context.Background(), sessions[i], w.given) })
	}
	group.Wait()
	ports, inodes := map[int]bool{}, map[uint64]bool{}
	for i := range count {
		check(t, errs[i])
		ports[made[i].SSHPort] = true
		for _, file := range []string{"cosplay-init", facadeFile} {
			info, err := os.Stat(filepath.Join(w.Inside(sessions[i].ID), file))
			check(t, err)
			inodes[info.Sys().(*syscall.Stat_t).Ino] = true
		}
	}
	if len(ports) != count || len(w.list(t)) != count {
		t.Errorf("%d ports, listed %+v", len(ports), w.list(t))
	}
	if len(inodes) != 2 {
		t.Errorf("%d files for two contents", len(inodes))
	}
	for i := range count {
		group.Go(func() { errs[i] = unprepare(context.Background(), w.Runtime, sessions[i].ID) })
	}
	group.Wait()
	for _, err := range errs {
		check(t, err)
	}
	if _, err := os.Stat(w.Folders); err == nil {
		t.Error("the folder of the sessions stays")
	}
}

// TestTurns: however many want to be prepared, the engine has few in work.
func TestTurns(t *testing.T) {
	limit := max(4, 2*stdruntime.NumCPU())
	var mu sync.Mutex
	var now, most int
	full, release := make(chan struct{}), make(chan struct{})
	reached := sync.OnceFunc(func() { close(full) }) // the limit is reached again after the release
	e := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		if now++; now == limit {
			reached()
		}
		most = max(most, now)
		mu.Unlock()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		http.Error(w, "{}", http.StatusInternalServerError)
	})
	w := world{Runtime: Runtime{Engine: e, Sessions: inside.On(runtime.Host{Folders: t.TempDir(), Name: hostName, SimDir: t.TempDir(), Owner: resource.Owner{Lineage: "l", Key: "key"}})}}
	var group sync.WaitGroup
	for range 3 * limit {
		s := w.session(t, "many")
		group.Go(func() {
			if _, err := w.Prepare(context.Background(), s, w.given); err == nil {
				t.Error("prepared by an engine that only fails")
			}
		})
	}
	<-full
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.atTurn(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
	time.Sleep(100 * time.Millisecond) // for those who do not wait for their turn
	close(release)
	group.Wait()
	if most != limit {
		t.Errorf("%d at once, not %d", most, limit)
	}
}

// TestGrace: a command is asked to end before its container is removed; a session that only stays up is removed at once.
func TestGrace(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	stops := 0
	w.through(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/stop") {
			stops++
		}
		return false
	})
	w.s.Spec.SSH.Enabled = false
	w.s.Command = []string{"sh", "-c", `trap 'echo saved >>result; exit' TERM; touch ready; while :; do sleep 0.05; done`}
	saved := func(times int) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(w.s.Workspace, "result"))
		if err != nil || strings.Count(string(data), "saved") != times || stops != times {
			t.Errorf("saved %q, %v; stopped %d times, not %d", data, err, stops, times)
		}
	}
	ready := filepath.Join(w.s.Workspace, "ready")
	began := func() bool { _, err := os.Stat(ready); return err == nil }
	w.prepare(t)
	inittest.Soon(t, "the command", began)
	check(t, os.Remove(ready))
	w.s.Env["SEED"] = "15"
	w.prepare(t)
	saved(1)
	inittest.Soon(t, "the command", began)
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	saved(2)
	w.s.Command = nil
	w.prepare(t)
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	saved(2)
}

// TestSame: the same content in another slice is another container.
func TestSame(t *testing.T) {
	w := world{Runtime: Runtime{Sessions: inside.On(runtime.Host{Owner: resource.Owner{Lineage: "l", Key: "key"}})}, given: resource.Handle{UUID: "MIG-1"}}
	s := w.session(t, "one")
	there := func(change func(*container.InspectResponse)) *container.InspectResponse {
		c := &container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{State: &container.State{Status: container.StateExited}}, Config: &container.Config{Labels: w.labels(s, "MIG-1")}}
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		change func(*container.InspectResponse)
		want   bool
	}{
		"nothing":       {func(*container.InspectResponse) {}, true},
		"another slice": {func(c *container.InspectResponse) { c.Config.Labels = w.labels(s, "MIG-2") }, false},
		"another hash":  {func(c *container.InspectResponse) { c.Config.Labels[labelHash] = "0123" }, false},
		"dead":          {func(c *container.InspectResponse) { c.State.Dead = true }, false},
		"being removed": {func(c *container.InspectResponse) { c.State.Status = container.StateRemoving }, false},
	} {
		if got := w.same(there(c.change), s, w.given); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestForeign: a foreign container is neither listed nor touched, whatever its labels are.
func TestForeign(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.prepare(t)
	there, err := w.inspect(ctx, w.s.BodyName())
	check(t, err)
	// The labels of the project under another name, and with another content under its name.
	copied := w.foreign(t, "cosplay-copy-"+random(), container.Config{Labels: there.Config.Labels}, nil)
	if all := w.list(t); len(all) != 1 || !cmp.Equal(all[0], made) {
		t.Errorf("with a copy of the labels: %+v", all)
	}
	w.kill(t, copied)
	w.kill(t, made.ID)
	forged := w.labels(w.s, w.given.UUID)
	forged[labelHash] = "0123"
	for name, labels := range map[string]map[string]string{"without labels": nil, "with another hash": forged} {
		whose := "which cosplay did not make"
		if labels != nil {
			whose = "in another cosplay project"
		}
		id := w.foreign(t, w.s.BodyName(), container.Config{Labels: labels}, nil)
		if all := w.list(t); len(all) != 0 {
			t.Errorf("%s: listed %+v", name, all)
		}
		_, err := w.Prepare(ctx, w.s, w.given)
		if err == nil || !strings.Contains(err.Error(), "the name "+w.s.BodyName()+" is taken by the container "+id[:12]) || !strings.Contains(err.Error(), whose) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Exec(ctx, w.s.ID, runtime.Program{}, runtime.Streams{}); err == nil || !strings.Contains(err.Error(), "is taken by") {
			t.Errorf("%s: %v", name, err)
		}
		check(t, unprepare(ctx, w.Runtime, w.s.ID))
		if there, err := w.inspect(ctx, w.s.BodyName()); err != nil || there == nil || there.ID != id {
			t.Errorf("%s: it was touched: %v, %v", name, there, err)
		}
		w.kill(t, id)
	}
	other := w.Runtime
	w.prepare(t)
	for name, owner := range map[string]resource.Owner{"another key": {Lineage: w.Owner.Lineage, Key: "other"}, "another lineage": {Lineage: "other", Key: "key"}, "no lineage": {Key: "key"}} {
		other.Owner = owner
		if all, err := other.List(ctx); err != nil || len(all) != 0 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	other = w.Runtime
	other.Host.Name = "elsewhere"
	if all, err := other.List(ctx); err != nil || len(all) != 0 {
		t.Errorf("another host: %+v, %v", all, err)
	}
}

func TestUnprepareKeepsToItsFolder(t *testing.T) {
	r := Runtime{Sessions: inside.On(runtime.Host{Folders: t.TempDir()})}
	for _, wrong := range []string{"", ".", "..", "../sessions/worker-3", "/", "a/b"} {
		if err := unprepare(context.Background(), r, wrong); err == nil {
			t.Errorf("%q was taken for the id of a session", wrong)
		}
	}
}

// TestInterrupted: leftovers of an interrupted Prepare are used, or removed.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	id := w.leave(t)
	if c := w.prepare(t); c.ID != id || c.State != resource.Running {
		t.Errorf("taken up as %+v, not %s", c, id)
	}
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	w.leave(t)
	check(t, unprepare(ctx, w.Runtime, w.s.ID))
	if all := w.labelled(t); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
}

func TestLook(t *testing.T) {
	w := newWorld(t)
	e, err := w.Inspect(context.Background())
	check(t, err)
	if !strings.HasPrefix(e.Name, map[bool]string{true: "Podman ", false: "Docker "}[w.Engine.podman]) || strings.Contains(e.Name, "+") || e.Access != "simulated library by mount" || e.Images[tiny] == "" {
		t.Errorf("got %+v", e)
	}
	if err := w.Ensure(context.Background(), "not a name", plan.PullImage, func(string) {}); err == nil {
		t.Error("an image without a name was pulled")
	}
}

func TestIsolate(t *testing.T) {
	for _, c := range []struct {
		options []string
		sudo    bool
		want    string
	}{
		{[]string{"name=seccomp,profile=default"}, true, " "},
		{[]string{"name=apparmor"}, false, "no-new-privileges "},
		{[]string{"name=selinux", "name=userns"}, false, "no-new-privileges label=disable host"},
	} {
		e := Engine{info: system.Info{SecurityOptions: c.options}}
		var host container.HostConfig
		e.isolate(&host, c.sudo)
		if got := strings.Join(host.SecurityOpt, " ") + " " + string(host.UsernsMode); got != c.want {
			t.Errorf("%v: %q, want %q", c.options, got, c.want)
		}
		said := strings.Join(e.lifted(), " ")
		for _, feature := range []string{"SELinux", "userns"} {
			if lifted := strings.Contains(c.want, map[string]string{"SELinux": "label=disable", "userns": " host"}[feature]); lifted != strings.Contains(said, feature) {
				t.Errorf("%v: it says %q", c.options, said)
			}
		}
	}
	if got := hostname(resource.One("Big_one-a-" + strings.Repeat("x", 80))); len(got) != longestHost || !strings.HasPrefix(got, "Big-one-a-x") {
		t.Errorf("the host's name is %q", got)
	}
}

// TestRuns: what runs in a container is known by the kernel's word.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	made := w.prepare(t)
	there, err := w.inspect(context.Background(), made.ID)
	if err != nil || there == nil {
		t.Fatal(there, err)
	}
	for pid, want := range map[int]bool{there.State.Pid: true, os.Getpid(): false, 1 << 30: false} {
		if runsHere(pid, made.ID) != want {
			t.Errorf("pid %d in the container: %v", pid, !want)
		}
	}
}

// TestNoLimits: a session without limits is listed without any, whatever the engine's own default is.
func TestNoLimits(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	w.s.Spec.Limits = resource.Limits{}
	var asked struct{ HostConfig struct{ PidsLimit *int64 } }
	w.through(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			body, err := io.ReadAll(r.Body)
			check(t, errors.Join(err, json.Unmarshal(body, &asked)))
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return false
	})
	w.prepare(t)
	if limit := asked.HostConfig.PidsLimit; limit == nil || *limit != unlimited {
		t.Errorf("the engine is asked for %v processes, which leaves it its default", limit)
	}
	if all, err := w.List(context.Background()); err != nil || len(all) != 1 || *all[0].Bounds != w.s.Spec.Bounds() {
		t.Errorf("%v, %v, want the bounds %+v", all, err, w.s.Spec.Bounds())
	}
}
