package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"cosplay/internal/disguise"
	"cosplay/internal/runtime"
)

// TestEnd: only the programs of the session end: at once where they accept SIGTERM, else after the grace period.
func TestEnd(t *testing.T) {
	r := open(runtime.Host{Folders: t.TempDir()})
	start := func(session, script string) *exec.Cmd {
		command := exec.Command("sh", "-c", script)
		command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(r.Folders, session, disguise.LibraryDir)+":/x")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		return command
	}
	polite, stubborn := start("a", "exec sleep 600"), start("a", "trap '' TERM; touch "+r.Folders+"/ready; while :; do sleep 0.1; done")
	other, alike := start("b", "exec sleep 600"), start("ab", "exec sleep 600")
	for range 500 {
		if _, err := os.Stat(r.Folders + "/ready"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if in, err := r.Entered(context.Background(), []string{"a", "b", "c"}); !in["a"] || !in["b"] || in["c"] || err != nil {
		t.Fatalf("processes are in %v, %v", in, err)
	}
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		_ = polite.Wait()
		ended <- polite.ProcessState.Sys().(syscall.WaitStatus)
	}()
	killed := make(chan syscall.WaitStatus, 1)
	go func() {
		_ = stubborn.Wait()
		killed <- stubborn.ProcessState.Sys().(syscall.WaitStatus)
	}()
	if err := r.End(context.Background(), "a", "it has expired", 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if by := (<-ended).Signal(); by != syscall.SIGTERM {
		t.Errorf("the polite program was ended by %v", by)
	}
	if by := (<-killed).Signal(); by != syscall.SIGKILL {
		t.Errorf("the stubborn program was ended by %v", by)
	}
	for _, c := range []*exec.Cmd{other, alike} {
		if c.Process.Signal(syscall.Signal(0)) != nil {
			t.Error("a program of another session was ended")
		}
	}
	if left, _ := r.programs("a"); slices.Contains(left, polite.Process.Pid) {
		t.Error("an ended program still counts")
	}
	if _, err := r.programs("../a"); err == nil {
		t.Error("a path is accepted as a session")
	}
}
