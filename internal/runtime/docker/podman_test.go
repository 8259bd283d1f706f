package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/mount"

	"cosplay/internal/cdi"
	"cosplay/internal/inside"
	"cosplay/internal/prose"
	"cosplay/internal/runtime"
)

// fakePodman answers as podman does, which knows the images with these names.
func fakePodman(t *testing.T, images ...string) *Engine {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch _, path, _ := strings.Cut(r.URL.Path, "/v1.41"); path {
		case "": // a ping
		case "/info":
			fmt.Fprint(w, `{"ServerVersion": "5.4.2"}`)
		case "/version":
			fmt.Fprint(w, `{"Version": "5.4.2", "Components": [{"Name": "Podman Engine", "Version": "5.4.2"}, {"Name": "Conmon"}]}`)
		case "/containers/json":
			fmt.Fprint(w, "[]")
		case "/images/json":
			var all []string
			for i, name := range images {
				all = append(all, fmt.Sprintf(`{"Id": "sha256:%064d", "RepoTags": [%q]}`, i, name))
			}
			fmt.Fprintf(w, "[%s]", strings.Join(all, ","))
		default:
			name := strings.TrimSuffix(strings.TrimPrefix(path, "/images/"), "/json")
			for i, known := range images {
				if name == known {
					fmt.Fprintf(w, `{"Id": "sha256:%064d"}`, i)
					return
				}
			}
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message": "no such image"}`)
		}
	}))
	t.Cleanup(server.Close)
	e, err := connect(context.Background(), endpoint{host: "tcp://" + server.Listener.Addr().String()})
	check(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// TestPodman: podman is called by its name, and advice has its commands and files.
func TestPodman(t *testing.T) {
	e := fakePodman(t)
	if e.Name() != "Podman 5.4.2" {
		t.Errorf("it is called %s", e.Name())
	}
	var advice prose.Advice
	if err := e.explain("asking the Docker engine", errors.New("connection refused"), subject{}); !errors.As(err, &advice) ||
		!strings.Contains(advice.What, "asking podman") || !strings.Contains(advice.Fix, "sudo systemctl start podman.socket") {
		t.Errorf("it says %v", err)
	}
	cause := errors.New("REGISTRY speaks no TLS; name it in insecure-registries of /etc/docker/daemon.json, or docker login REGISTRY")
	if err := e.reword(cause); !strings.Contains(err.Error(), "/etc/containers/registries.conf") || !strings.Contains(err.Error(), "podman login") || !errors.Is(err, cause) {
		t.Errorf("it says %v", err)
	}
	if err := (&Engine{}).reword(cause); !errors.Is(err, cause) || err.Error() != cause.Error() {
		t.Errorf("Docker says %v", err)
	}
}

// TestPodmanImages: an image of this machine, which podman calls localhost/NAME, is found by its name.
func TestPodmanImages(t *testing.T) {
	e := fakePodman(t, "localhost/team/tool:1", "docker.io/library/both:1", "both:1", "localhost/both:1")
	ctx := context.Background()
	for name, want := range map[string]string{"team/tool:1": "localhost/team/tool:1", "both:1": "both:1", "nope:1": "nope:1"} {
		if got := e.imageName(ctx, name); got != want {
			t.Errorf("%s is created from %s, want %s", name, got, want)
		}
	}
	there, err := Runtime{Engine: e, Sessions: inside.On(runtime.Host{SimDir: t.TempDir()})}.Inspect(ctx)
	check(t, err)
	if there.Images["team/tool:1"] == "" || there.Images["team/tool:1"] != there.Images["localhost/team/tool:1"] || there.Images["both:1"] == there.Images["localhost/both:1"] {
		t.Errorf("images: %v", there.Images)
	}
}

// TestPodmanSources: podman would create a missing folder that is to be mounted.
func TestPodmanSources(t *testing.T) {
	dir := t.TempDir()
	mounts := []mount.Mount{bind(cdi.File{Host: dir, Container: "/a"}), {Type: mount.TypeVolume, Source: "named", Target: "/b"}}
	missing := append(mounts, bind(cdi.File{Host: filepath.Join(dir, "no"), Container: "/c", Writable: true}))
	e := &Engine{podman: true}
	if err := e.checkSources("one", mounts); err != nil {
		t.Error(err)
	}
	if err := e.checkSources("one", missing); err == nil || !strings.Contains(err.Error(), "there is no "+dir+"/no to mount") {
		t.Errorf("it says %v", err)
	}
	if err := (&Engine{}).checkSources("one", missing); err != nil {
		t.Errorf("Docker checks itself, and it says %v", err)
	}
}
