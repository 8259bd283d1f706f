package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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

	// A process that is not cosplay.
	note, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+".lock", 0); err != nil {
		t.Fatal(err)
	}
	refused("a process that left no note", "sudo fuser -v "+path+".lock")

	// It has ended, and left its note.
	if err := errors.Join(lock.Release(), os.WriteFile(path+".lock", note, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Removed the note of", "nothing to unlock"} {
		if said, code := unlock(path); code != exitFine || !strings.Contains(said, want) {
			t.Errorf("code %d, said %q, want %q", code, said, want)
		}
	}
	if left, err := os.ReadFile(path + ".lock"); err != nil || len(left) != 0 {
		t.Errorf("left in the lock: %q, %v", left, err)
	}
}
