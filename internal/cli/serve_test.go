package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cosplay/internal/render"
)

// TestSocket: the status is on the socket alone, which only its owner may use; what a killed program left is replaced.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.sock")
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()

	var status statusPage
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s, err := serve("", path, health, &status)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	get := func(page string) (int, string) {
		answer, err := client.Get("http://watch" + page)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if code, _ := get("/status"); code != http.StatusServiceUnavailable {
		t.Errorf("before the first cycle: %d", code)
	}
	status.show(render.StatusView{})
	if code, body := get("/status"); code != http.StatusOK || !strings.Contains(body, `"format_version"`) {
		t.Errorf("%d %s", code, body)
	}
	if _, body := get("/healthz"); body != "ok" {
		t.Errorf("health: %q", body)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "another program serves there") {
		t.Errorf("a second one: %v", err)
	}
	s.close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// TestNoSocket: nothing that is there already is removed.
func TestNoSocket(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                             "there is something else",
		pipe:                             "there is something else",
		filepath.Join(dir, "no", "such"): "no such file",
		filepath.Join(dir, strings.Repeat("x", 120)): "too long",
	} {
		if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("there are %v", left)
	}
}
