package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/internal/durable"
)

// unlock runs force-unlock on a state and gives what it said.
func unlock(t *testing.T, statePath string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	inv := &invocation{Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &out}, state: statePath}
	if err := inv.runForceUnlock(context.Background(), true); err != nil {
		return err.Error(), exitError
	}
	return strings.Join(strings.Fields(out.String()), " "), exitFine
}

// TestForceUnlock: while somebody lives who has the lock it is refused, with who
// that is and what he does; his note goes when he is dead.
func TestForceUnlock(t *testing.T) {
	t.Chdir(t.TempDir())
	path := filepath.Join(t.TempDir(), "state")
	refused := func(want ...string) {
		t.Helper()
		said, code := unlock(t, path)
		for _, one := range append(want, "it is alive, so nothing was unlocked", path) {
			if code != exitError || !strings.Contains(said, one) {
				t.Errorf("code %d, said %q, want %q", code, said, one)
			}
		}
	}
	lock, err := durable.Acquire(context.Background(), path+".lock", "destroy", nil)
	if err != nil {
		t.Fatal(err)
	}
	refused(fmt.Sprintf("(pid %d), running cosplay destroy since", os.Getpid()), fmt.Sprintf("kill -INT %d", os.Getpid()))

	// Its agent outlives a process that was killed.
	agent := exec.Command("sleep", "60")
	agent.ExtraFiles = []*os.File{lock.File()}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Process.Kill() }()
	lock.File().Close()
	refused("That process has ended", fmt.Sprintf("but process %d still carries out its last step", agent.Process.Pid))

	// Somebody who is no cosplay.
	note, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+".lock", 0); err != nil {
		t.Fatal(err)
	}
	refused(fmt.Sprintf("is locked by process %d", agent.Process.Pid))

	// All dead.
	if err := os.WriteFile(path+".lock", note, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	for _, want := range []string{"Removed the note of", "nothing to unlock"} {
		if said, code := unlock(t, path); code != exitFine || !strings.Contains(said, want) {
			t.Errorf("code %d, said %q, want %q", code, said, want)
		}
	}
	if left, err := os.ReadFile(path + ".lock"); err != nil || len(left) != 0 {
		t.Errorf("left in the lock: %q, %v", left, err)
	}
}
