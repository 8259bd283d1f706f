package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/client"
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

// TestTooOld: an engine that speaks only an older API is told to be updated.
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
