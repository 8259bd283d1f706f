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

// unlock runs force-unlock on a state and returns its output.
func unlock(statePath string) (string, int) {
	var out bytes.Buffer
	code := Main([]string{"force-unlock", "--auto-approve", "--state", statePath}, Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	return strings.Join(strings.Fields(out.String()), " "), code
}

// TestForceUnlock: while a live process has the lock, force-unlock refuses and prints the
// process and its command; it removes the note of an ended process.
func TestForceUnlock(t *testing.T) {
	t.Chdir(t.TempDir())
	path := filepath.Join(t.TempDir(), "state")
	refused := func(want ...string) {
		t.Helper()
		said, code := unlock(path)
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

	// A process that is not cosplay.
	note, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+".lock", 0); err != nil {
		t.Fatal(err)
	}
	refused(fmt.Sprintf("is locked by process %d", agent.Process.Pid))

	// All processes have ended.
	if err := os.WriteFile(path+".lock", note, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	for _, want := range []string{"Removed the note of", "nothing to unlock"} {
		if said, code := unlock(path); code != exitFine || !strings.Contains(said, want) {
			t.Errorf("code %d, said %q, want %q", code, said, want)
		}
	}
	if left, err := os.ReadFile(path + ".lock"); err != nil || len(left) != 0 {
		t.Errorf("left in the lock: %q, %v", left, err)
	}
}
