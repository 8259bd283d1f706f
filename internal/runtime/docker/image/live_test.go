package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"cosplay/internal/need"
)

// liveEngine is the machine's own. Without one the test is skipped, unless
// COSPLAY_DOCKER=1 says that there must be one.
func liveEngine(t *testing.T) *client.Client {
	t.Helper()
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err == nil {
		_, err = engine.Ping(t.Context())
	}
	if err != nil {
		need.Lacking(t, "there is not a Docker engine: %v", err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// notPodman skips a test of what podman does not have.
func notPodman(t *testing.T, engine *client.Client, why string) {
	t.Helper()
	version, err := engine.ServerVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range version.Components {
		if c.Name == "Podman Engine" {
			t.Skip("podman: " + why)
		}
	}
}

// What apt-get does on a base of a test.
const (
	aptWorks = `#!/bin/sh
echo "$DEBIAN_FRONTEND: apt-get $*" >> /apt.log
mkdir -p /etc/ssh /var/lib/apt/lists && echo key > /etc/ssh/ssh_host_ed25519_key && echo list > /var/lib/apt/lists/main
`
	aptFails = "#!/bin/sh\n{ echo Reading package lists...; echo E: Unable to locate package tini; } >&2\nexit 100\n"
	aptHangs = "#!/bin/sh\nexec sleep 60\n"
)

// base puts an image of busybox and the given apt-get in the engine; without one for "", and without even a shell for
// "-". All images that are built upon it are removed after the test.
func base(t *testing.T, engine *client.Client, aptGet string) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		need.Lacking(t, "there is not busybox (of busybox-static)")
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	add := func(name string, content []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add("bin/busybox", program)
	if aptGet != "-" {
		for _, applet := range []string{"sh", "rm", "mkdir", "sleep"} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}); err != nil {
				t.Fatal(err)
			}
		}
		if aptGet != "" {
			add("bin/apt-get", []byte(aptGet))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	name := "cosplay-imagetest:base-" + id
	t.Cleanup(func() { removeAll(t, engine, "cosplay.imagetest="+id) })
	// Its own content, so that no builder takes an earlier test's layers.
	answer, err := engine.ImageImport(t.Context(), image.ImportSource{Source: &files, SourceName: "-"}, name,
		image.ImportOptions{Changes: []string{"LABEL cosplay.imagetest=" + id, "ENV IMAGETEST=" + id, "ENV PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	if _, err := io.Copy(io.Discard, answer); err != nil {
		t.Fatal(err)
	}
	return name
}

// removeAll removes the images with a label, what is built upon others first.
func removeAll(t *testing.T, engine *client.Client, label string) {
	ctx := context.WithoutCancel(t.Context())
	for range 50 {
		left, err := engine.ImageList(ctx, image.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
		if err != nil {
			t.Error(err)
		}
		if len(left) == 0 {
			return
		}
		for _, i := range left {
			_, _ = engine.ImageRemove(ctx, i.ID, image.RemoveOptions{Force: true})
		}
		time.Sleep(20 * time.Millisecond) // a build that was stopped may still hold one
	}
	t.Errorf("images with label %s are left", label)
}

// builders runs a test with each.
func builders(t *testing.T, test func(t *testing.T)) {
	t.Run("classic", func(t *testing.T) {
		t.Setenv("DOCKER_BUILDKIT", "0")
		test(t)
	})
	t.Run("BuildKit", func(t *testing.T) {
		notPodman(t, liveEngine(t), "it has no BuildKit")
		t.Setenv("DOCKER_BUILDKIT", "1")
		useBuildKit(t)
		test(t)
	})
}

// useBuildKit puts a docker command first that has BuildKit: the first on the path need not be one.
func useBuildKit(t *testing.T) {
	path := os.Getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		if _, err := os.Stat(filepath.Join(dir, "docker")); err != nil {
			continue
		}
		first := t.TempDir()
		if err := os.Symlink(filepath.Join(dir, "docker"), filepath.Join(first, "docker")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", first+":"+path)
		if commandHasBuildKit(t.Context()) {
			return
		}
	}
	t.Setenv("PATH", path)
	need.Lacking(t, "there is not a docker command with BuildKit (of docker.io before 23, or with docker-buildx)")
}

func TestBuild(t *testing.T) {
	engine := liveEngine(t)
	builders(t, func(t *testing.T) {
		on := base(t, engine, aptWorks)
		tag := strings.Replace(on, "base", "built", 1)
		var said lines
		if err := Build(t.Context(), engine, BuildOptions{Base: on, Tag: tag, Version: "1.2-test"}, said.say); err != nil {
			t.Fatal(err)
		}
		for _, start := range []string{tag + ": building upon " + on, "Step ", tag + ": built"} {
			if !said.has(start) {
				t.Errorf("%q is not said in %q", start, said)
			}
		}
		tags, err := Tags(t.Context(), engine)
		if err != nil {
			t.Fatal(err)
		}
		built, err := engine.ImageInspect(t.Context(), tag)
		if err != nil || tags[tag] != built.ID {
			t.Fatalf("%s has ID %s, but %s is listed; %v", tag, built.ID, tags[tag], err)
		}
		if built.Config.Labels["cosplay.image.version"] != "1.2-test" || built.Config.Labels["cosplay.image.base"] != on {
			t.Errorf("labels %v", built.Config.Labels)
		}
		if built.Config.WorkingDir != "/workspace" {
			t.Errorf("working directory %q", built.Config.WorkingDir)
		}
		environment := strings.Join(built.Config.Env, "\n") + "\n"
		for _, want := range []string{"LANG=C.UTF-8\n", "LC_ALL=C.UTF-8\n", "PIP_BREAK_SYSTEM_PACKAGES=1\n"} {
			if !strings.Contains(environment, want) {
				t.Errorf("the environment lacks %s", want)
			}
		}
		if strings.Contains(environment, "DEBIAN_FRONTEND") {
			t.Error("DEBIAN_FRONTEND is kept in the image")
		}
		files := inside(t, engine, tag)
		log, _ := files("/apt.log")
		if !strings.HasPrefix(log, "noninteractive: apt-get update\nnoninteractive: apt-get install --yes --no-install-recommends build-essential ") || strings.Count(log, "\n") != 2 {
			t.Errorf("apt-get was run so:\n%s", log)
		}
		for _, removed := range []string{"/etc/ssh/ssh_host_ed25519_key", "/var/lib/apt/lists/main"} {
			if _, there := files(removed); there {
				t.Errorf("%s is in the image", removed)
			}
		}
	})
}

// inside reads files of an image, by a container that is never started.
func inside(t *testing.T, engine *client.Client, ref string) func(path string) (content string, there bool) {
	t.Helper()
	made, err := engine.ContainerCreate(t.Context(), &container.Config{Image: ref, Cmd: []string{"sh"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = engine.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
	})
	return func(path string) (string, bool) {
		archive, _, err := engine.CopyFromContainer(t.Context(), made.ID, path)
		if errdefs.IsNotFound(err) {
			return "", false
		}
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		r := tar.NewReader(archive)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(content), true
	}
}

func TestBuildFails(t *testing.T) {
	engine := liveEngine(t)
	builders(t, func(t *testing.T) {
		on := base(t, engine, aptFails)
		err := Build(t.Context(), engine, BuildOptions{Base: on, Tag: "cosplay-imagetest:never"}, func(string) {})
		check(t, err, "building cosplay-imagetest:never upon "+on+" failed in step ", "RUN apt-get update", ": exit code 100\n  Reading package lists...\n  E: Unable to locate package tini\nSee")
	})
}

func TestBuildWantsAptGet(t *testing.T) {
	engine := liveEngine(t)
	for name, aptGet := range map[string]string{"no apt-get": "", "not even a shell": "-"} {
		t.Run(name, func(t *testing.T) {
			builders(t, func(t *testing.T) {
				on := base(t, engine, aptGet)
				err := Build(t.Context(), engine, BuildOptions{Base: on, Tag: "cosplay-imagetest:never"}, func(string) {})
				check(t, err, on+" cannot be built upon: it has no apt-get", "cosplay build --base IMAGE", "image = \""+on+"\"")
			})
		})
	}
}

func TestBuildStops(t *testing.T) {
	engine := liveEngine(t)
	builders(t, func(t *testing.T) {
		on := base(t, engine, aptHangs)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := Build(ctx, engine, BuildOptions{Base: on, Tag: "cosplay-imagetest:never"}, func(line string) {
			if strings.Contains(line, "RUN apt-get update") {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
