package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"

	"cosplay/internal/need"
)

// Load builds an image with a shell, ls, cat and similar tools from this machine's static busybox. changes are
// Dockerfile lines.
func (e *Engine) Load(t testing.TB, name string, changes ...string) {
	t.Helper()
	need.Root(t, "busybox")
	source := image.ImportSource{Source: bytes.NewReader(busybox(t)), SourceName: "-"}
	answer, err := e.Client.ImageImport(context.Background(), source, name, image.ImportOptions{Changes: append([]string{"ENV PATH=/bin"}, changes...)})
	check(t, err)
	defer answer.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(answer); err != nil || strings.Contains(said.String(), "errorDetail") {
		t.Fatalf("importing an image: %v %s", err, said.String())
	}
}

var applets = []string{"sh", "ls", "cat", "cmp", "env", "find", "sleep", "stat", "true"}

func busybox(t testing.TB) []byte {
	t.Helper()
	path, err := exec.LookPath("busybox")
	check(t, err)
	program, err := os.ReadFile(path)
	check(t, err)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	add := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		check(t, w.WriteHeader(&h))
		_, err := w.Write(content)
		check(t, err)
	}
	add(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, program)
	for _, name := range applets {
		add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
	}
	check(t, w.Close())
	return buffer.Bytes()
}

// Run creates a container without a network, starts it, waits until it ends and returns its output. The error is that
// of the start; if the container cannot be created, the test fails.
func (e *Engine) Run(t testing.TB, config container.Config, host container.HostConfig) (string, error) {
	t.Helper()
	host.NetworkMode = "none"
	created, err := e.Client.ContainerCreate(context.Background(), &config, &host, nil, nil, "")
	check(t, err)
	return e.Restart(t, created.ID)
}

// Restart starts a container again, waits until it ends and returns its new output.
func (e *Engine) Restart(t testing.TB, id string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), upTime)
	defer cancel()
	before := len(e.printed(t, id))
	ended, failed := e.Client.ContainerWait(ctx, id, container.WaitConditionNextExit)
	if err := e.Client.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return "", err
	}
	select {
	case <-ended:
	case err := <-failed:
		t.Fatalf("waiting for a container: %v", err)
	}
	return e.printed(t, id)[before:], nil
}

func (e *Engine) printed(t testing.TB, id string) string {
	t.Helper()
	logs, err := e.Client.ContainerLogs(context.Background(), id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	check(t, err)
	defer logs.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, logs)
	check(t, err)
	return out.String()
}
