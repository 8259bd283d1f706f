package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"cosplay/internal/inside"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// TestFind: the engine is found as the docker command finds it.
func TestFind(t *testing.T) {
	folder := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(folder, path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
	}
	meta := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:])
	}
	t.Setenv("DOCKER_CONFIG", folder)
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	expect := func(what string, want endpoint, words string) {
		t.Helper()
		got, err := find()
		if got != want || (err == nil) != (words == "") || (err != nil && !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	fallback := endpoint{host: client.DefaultDockerHost}
	expect("nothing", fallback, "")
	write("config.json", `{"auths": {}}`)
	expect("a configuration without a context", fallback, "")
	write("config.json", `{"currentContext": "lab"}`)
	expect("a context that is not there", endpoint{}, `there is no docker context "lab"`)
	write("contexts/meta/"+meta("lab")+"/meta.json", `{"Name": "lab", "Endpoints": {"docker": {"Host": "unix:///lab.sock"}}}`)
	expect("a context", endpoint{host: "unix:///lab.sock", from: "the docker context lab"}, "")
	write("contexts/tls/"+meta("lab")+"/docker/cert.pem", "")
	expect("a context with keys", endpoint{host: "unix:///lab.sock", from: "the docker context lab", tls: filepath.Join(folder, "contexts/tls", meta("lab"), "docker")}, "")
	write("contexts/meta/"+meta("bare")+"/meta.json", `{"Name": "bare", "Endpoints": {}}`)
	t.Setenv("DOCKER_CONTEXT", "bare")
	expect("a context without an engine", endpoint{}, "names no Docker engine")
	t.Setenv("DOCKER_CONTEXT", "default")
	expect("the default context", fallback, "")
	t.Setenv("DOCKER_HOST", "unix:///mine.sock")
	expect("DOCKER_HOST", endpoint{host: "unix:///mine.sock", from: "DOCKER_HOST"}, "")
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	write("config.json", `{`)
	expect("a damaged configuration", endpoint{}, "is damaged")
}

func TestElsewhere(t *testing.T) {
	t.Setenv("DOCKER_HOST", "ssh://lab")
	if _, err := Connect(context.Background()); err == nil || !strings.Contains(err.Error(), "DOCKER_HOST names the engine ssh://lab") {
		t.Errorf("over ssh: %v", err)
	}
}

// TestTooOld: an engine with an older API is refused, with the advice to update it.
func TestTooOld(t *testing.T) {
	serve := func(api string) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Api-Version", api)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"ServerVersion": "19.03.15+dfsg1"}`)
		}))
		path := filepath.Join(t.TempDir(), "engine.sock")
		l, err := net.Listen("unix", path)
		check(t, err)
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		return "unix://" + path
	}
	t.Setenv("DOCKER_HOST", serve("1.40"))
	if _, err := Connect(context.Background()); err == nil || !strings.Contains(err.Error(), "19.03.15+dfsg1 with API 1.40; cosplay needs API 1.41: install Docker 20.10") {
		t.Errorf("an old one: %v", err)
	}
	t.Setenv("DOCKER_HOST", serve("1.41"))
	e, err := Connect(context.Background())
	check(t, err)
	defer e.Close()
	if e.Name() != "Docker 19.03.15" {
		t.Errorf("it is called %s", e.Name())
	}
}

// TestSilentEngine: an engine that takes connections and says nothing, or falls
// silent later, blocks no command forever.
func TestSilentEngine(t *testing.T) {
	before := [3]time.Duration{readTime, createTime, bannerTime}
	t.Cleanup(func() { readTime, createTime, bannerTime = before[0], before[1], before[2] })
	readTime, createTime, bannerTime = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	ctx := context.Background()
	late := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not answer within 50ms. Fix: check it") || strings.Contains(err.Error(), "deadline") {
			t.Errorf("%s: %v", what, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	_, err = connect(ctx, endpoint{host: "tcp://" + l.Addr().String()})
	late("connecting", err)

	e := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		<-r.Context().Done()
	})
	r := Runtime{Engine: e, Sessions: inside.On(runtime.Host{Folders: t.TempDir(), Name: hostName, SimDir: t.TempDir()})}
	_, err = r.List(ctx)
	late("asking whether it is there", err)
	r.Owner = resource.Owner{Lineage: "l", Key: "key"}
	_, err = r.List(ctx)
	late("listing", err)
	_, err = r.Inspect(ctx)
	late("looking at the images", err)
	_, err = r.inspect(ctx, "x")
	late("looking at a container", err)
	w := world{Runtime: r}
	_, err = r.create(ctx, w.session(t, "one"), "MIG-1", grant{}, 0)
	late("creating", err)
	if got := r.holder(ctx, 1); got != "" {
		t.Errorf("a port is held by %q", got)
	}

	// cosplay-init that does not report, and an ssh server that sends nothing.
	ready, err := openReadiness(filepath.Join(t.TempDir(), "ready"))
	check(t, err)
	defer ready.close()
	soon, cancel := within(ctx, 50*time.Millisecond)
	defer cancel()
	if err := ready.wait(soon); err == nil || !strings.Contains(err.Error(), "does not report that the session runs: no answer within 50ms") {
		t.Errorf("cosplay-init: %v", err)
	}
	if err := greets(ctx, l.Addr().String()); err == nil || !strings.Contains(err.Error(), "sends nothing for 50ms") {
		t.Errorf("ssh: %v", err)
	}
}

// answering is an engine that answers what a connection needs, and then what the test wants.
func answering(t *testing.T, answer http.HandlerFunc) *Engine {
	t.Helper()
	var connected atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case connected.Load():
			answer(w, r)
		case strings.HasSuffix(r.URL.Path, "/info"):
			fmt.Fprint(w, `{"ServerVersion": "20.10.24"}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	before := readTime
	readTime = time.Minute
	defer func() { readTime = before }()
	e, err := connect(context.Background(), endpoint{host: "tcp://" + server.Listener.Addr().String()})
	check(t, err)
	t.Cleanup(func() { e.Close() })
	connected.Store(true)
	return e
}
