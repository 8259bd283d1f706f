package main

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// hang is after how long a command of the tests counts as hung. On a loaded machine any
// command can take minutes.
const hang = 10 * time.Minute

// bounded is a command that does not outlast hang. If it hangs, a program in Go prints what
// each of its goroutines does, and the test fails at the command instead of with all others
// at the time limit of the whole run.
func bounded(t testing.TB, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, name, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGQUIT) }
	c.WaitDelay = time.Minute // also for a process that it left behind with its output
	return c
}
