package boot

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cosplay/internal/initd"
)

// forwarded are the signals that pid 1 passes on.
var forwarded = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
}

// strayPatience is how long the processes that are left at the end may take.
const strayPatience = 2 * time.Second

// first is pid 1: it starts the child that does everything else, passes signals
// to it and reaps whatever was orphaned. It has no other children, so that it
// cannot take an exit status from anybody who waits for it.
func first(config string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say("orphans are not reaped unless this is pid 1: %v", err)
	}
	if err := initd.ForgetUse(initd.UsagePath); err != nil {
		say("the use of the GPU cannot be counted: %v", err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	child, err := syscall.ForkExec("/proc/self/exe", []string{"cosplay-init", "--config", config, "serve"},
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return fail(codeFailed, fmt.Errorf("cannot start itself: %w; is /proc mounted?", err))
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(child, s.(syscall.Signal)) // a child that is gone ends this process
		}
	}()
	code := reapUntil(child)
	if os.Getpid() == 1 {
		endStrays()
	}
	return code
}

// reapUntil takes every dead child, and returns with the exit code of one.
func reapUntil(child int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fail(codeFailed, fmt.Errorf("cannot wait for the session: %w", err))
		case pid == child && status.Signaled():
			say("the session was ended by signal %d (%v)", status.Signal(), status.Signal())
			return 128 + int(status.Signal())
		case pid == child && status.Exited():
			return status.ExitStatus()
		}
	}
}

// endStrays asks the rest of the container to end. Who has not when this
// process exits is killed by the kernel.
func endStrays() {
	_ = syscall.Kill(-1, syscall.SIGTERM) // nobody left is fine
	for deadline := time.Now().Add(strayPatience); time.Now().Before(deadline); {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
		if pid == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
