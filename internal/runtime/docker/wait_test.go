package docker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"

	"cosplay/internal/inside"
	"cosplay/internal/resource"
)

// TestReady: a session without a command is up when cosplay-init reports it, however long a command would be watched.
func TestReady(t *testing.T) {
	w := newWorld(t)
	defer func(before time.Duration) { settleTime = before }(settleTime)
	settleTime = readyTime
	w.s.Spec.SSH.Enabled = false
	begun := time.Now()
	made := w.prepare(t)
	if took := time.Since(begun); took >= readyTime {
		t.Errorf("it waited for %v", took)
	}
	said := ""
	for try := 0; try < 50 && !strings.Contains(said, "the session stays up"); try++ { // the engine's log lags behind
		time.Sleep(10 * time.Millisecond)
		said = w.lastWords(context.Background(), made.ID)
	}
	if !strings.Contains(said, "the session stays up") {
		t.Errorf("cosplay-init does not report it: %q", said)
	}

	pipe := filepath.Join(w.Inside(w.s.ID), inside.ReadyFile)
	if present(pipe) {
		t.Error("the pipe stays, and programs that read all files wait at it")
	}

	// An interrupted run leaves the pipe.
	check(t, w.Engine.client.ContainerKill(context.Background(), made.ID, "KILL"))
	check(t, unix.Mkfifo(pipe, 0o600))
	if again := w.prepare(t); again.ID != made.ID {
		t.Errorf("started again as %+v, was %+v", again, made)
	}

	// The engine starts it again without cosplay, so that there is no pipe.
	seconds := 1
	check(t, w.Engine.client.ContainerRestart(context.Background(), made.ID, container.StopOptions{Timeout: &seconds}))
	if again := w.prepare(t); again.ID != made.ID {
		t.Errorf("after a restart it is %+v, was %+v", again, made)
	}
}

// TestNotReady: a container whose cosplay-init reports nothing is no session.
func TestNotReady(t *testing.T) {
	w := newWorld(t)
	w.s.Spec.SSH.Enabled = false
	ctx, cancel := context.WithCancel(context.Background())
	w.through(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/start") {
			check(t, os.Remove(filepath.Join(w.Inside(w.s.ID), inside.ReadyFile)))
		}
		if strings.HasSuffix(r.URL.Path, "/wait") {
			time.AfterFunc(time.Second, cancel)
		}
		return false
	})
	if _, err := w.Prepare(ctx, w.s, w.given); err == nil || !strings.Contains(err.Error(), "does not report that the session runs") {
		t.Errorf("prepared with %v", err)
	}
	if all := w.labelled(t); len(all) != 0 {
		t.Errorf("left %v", all[0].Names)
	}
}

// TestYoungRestart: a container that ended again and again, and that the engine has started a moment ago, is not started.
func TestYoungRestart(t *testing.T) {
	for started, want := range map[time.Duration]string{time.Second: "again and again (7 times so far)", 2 * steady: ""} {
		e := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"Id": "1", "RestartCount": 7, "State": {"Status": "running", "Running": true, "StartedAt": %q}, "Config": {}, "HostConfig": {}, "NetworkSettings": {}}`,
				time.Now().Add(-started).Format(time.RFC3339Nano))
		})
		_, err := Runtime{Engine: e}.made(t.Context(), resource.Session{}, "", launched{id: "1", loops: true})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("started %s ago: %v", started, err)
		}
	}
}
