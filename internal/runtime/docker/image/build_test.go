package image

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettled(t *testing.T) {
	for name, c := range map[string]struct{ given, want BuildOptions }{
		"nothing given": {BuildOptions{}, BuildOptions{Base: DefaultBase, Tag: "cosplay:latest"}},
		"all given":     {BuildOptions{Base: "debian", Tag: "mine", Version: "1"}, BuildOptions{Base: "debian:latest", Tag: "mine:latest", Version: "1"}},
		"CUDA tag":      {BuildOptions{CUDATag: "12.6.3-devel-ubuntu24.04"}, BuildOptions{Base: "nvidia/cuda:12.6.3-devel-ubuntu24.04", CUDATag: "12.6.3-devel-ubuntu24.04", Tag: DefaultTag}},
	} {
		got, err := c.given.settled()
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	_, err := BuildOptions{Base: "debian:12", CUDATag: "12"}.settled()
	check(t, err, "base debian:12 and CUDA tag 12", "give one of them")
	for _, o := range []BuildOptions{{Base: "De bian"}, {CUDATag: "a b"}, {Tag: "Mine"}} {
		_, err := o.settled()
		check(t, err, "is not the name of an image")
	}
}

func dockerfile(t *testing.T) string {
	t.Helper()
	files, err := sessionFiles()
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(files)
	for {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "Dockerfile" {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
	}
}

// TestDockerfileIsForBothBuilders keeps out what the classic builder does not
// know and what BuildKit would fetch from a registry.
func TestDockerfileIsForBothBuilders(t *testing.T) {
	content := dockerfile(t)
	for _, only := range []string{"syntax=", "--mount", "<<", "COPY --link"} {
		if strings.Contains(content, only) {
			t.Errorf("the Dockerfile has %q", only)
		}
	}
	for _, tool := range strings.Fields("openssh-server openssh-client sudo ca-certificates curl wget git tini python3 python3-pip python3-venv build-essential pkg-config vim less tmux htop") {
		if !strings.Contains(content, "    "+tool+" \\\n") {
			t.Errorf("the Dockerfile does not install %s", tool)
		}
	}
}

func TestSameBinarySameFiles(t *testing.T) {
	read := func() []byte {
		files, err := sessionFiles()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if !bytes.Equal(read(), read()) {
		t.Error("two tars of the same files differ")
	}
}

// fakeCommand puts a docker command of a test in place of the machine's.
func fakeCommand(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestWhichBuilder(t *testing.T) {
	const (
		buildx = `[ "$1" = buildx ]`
		old    = `[ "$1" = --version ] && echo "Docker version 20.10.24+dfsg1, build 297e128"`
		bare   = `[ "$1" = --version ] && echo "Docker version 28.2.2, build e6534b4"`
		podman = `[ "$1" = --version ] && echo "podman version 4.9.3"`
		none   = ""
	)
	for name, c := range map[string]struct {
		asked, ping, command string
		want                 bool
		words                string // of the error
	}{
		"an old engine":                     {"", "", buildx, false, ""},
		"a new engine, buildx":              {"", "2", buildx, true, ""},
		"a new engine, an old command":      {"", "2", old, true, ""},
		"a new engine, no buildx":           {"", "2", bare, false, ""},
		"a new engine, Podman's command":    {"", "2", podman, false, ""},
		"a new engine, no command":          {"", "2", none, false, ""},
		"BuildKit asked for":                {"1", "", old, true, ""},
		"BuildKit asked for, but no buildx": {"1", "2", bare, false, "docker-buildx-plugin"},
		"BuildKit asked for, no command":    {"true", "2", none, false, "unset DOCKER_BUILDKIT"},
		"BuildKit not wanted":               {"0", "2", buildx, false, ""},
		"asked for something else":          {"maybe", "2", buildx, false, `DOCKER_BUILDKIT is "maybe"; set it to 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_BUILDKIT", c.asked)
			fakeCommand(t, c.command)
			engine := newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Builder-Version", c.ping) })
			got, err := buildsByCommand(t.Context(), engine)
			if c.words != "" {
				check(t, err, c.words)
			} else if err != nil || got != c.want {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestBuildPassesTheProxy: the engine's builder knows no proxy by itself.
func TestBuildPassesTheProxy(t *testing.T) {
	dockerConfig(t, `{"proxies":{"default":{"httpProxy":"http://proxy:3128","noProxy":"localhost"}}}`)
	t.Setenv("DOCKER_BUILDKIT", "0")
	engine := newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	if err := Build(t.Context(), engine, BuildOptions{Base: "debian:12", Version: "1.2", NoCache: true}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	asked := engine.requests[len(engine.requests)-1].URL.Query()
	want := `{"BASE_IMAGE":"debian:12","COSPLAY_VERSION":"1.2","http_proxy":"http://proxy:3128","no_proxy":"localhost"}`
	if got := asked.Get("buildargs"); got != want {
		t.Errorf("build arguments %s\nwant %s", got, want)
	}
	if asked.Get("t") != DefaultTag || asked.Get("nocache") != "1" || asked.Get("version") != "1" {
		t.Errorf("asked for %v", asked)
	}
}

// TestBuildPullsItsBase and reports why it cannot.
func TestBuildPullsItsBase(t *testing.T) {
	dockerConfig(t, "")
	t.Setenv("DOCKER_BUILDKIT", "0")
	engine := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/images/create") {
			_, _ = io.WriteString(w, `{"errorDetail":{"message":"toomanyrequests"}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"No such image"}`)
	})
	err := Build(t.Context(), engine, BuildOptions{Base: "debian:12"}, func(string) {})
	check(t, err, "pulling debian:12: docker.io lets anyone without a login pull no more for now")
}
