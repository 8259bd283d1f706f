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

// restPatience limits how long remaining processes may take to end.
const restPatience = 2 * time.Second

// first is pid 1: it starts the child that does everything else, passes signals to it and reaps orphans. It has no
// other children, so that reaping cannot take an exit status from another waiter.
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
			_ = syscall.Kill(child, s.(syscall.Signal)) // an error means that the child has ended, which ends this process, too
		}
	}()
	code := reapUntil(child)
	if os.Getpid() == 1 {
		endRest()
	}
	return code
}

// reapUntil reaps every dead child, and returns the exit code of one when it ends.
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

// endRest asks all other processes in the container to end. When this process exits, the kernel kills those that
// remain.
func endRest() {
	_ = syscall.Kill(-1, syscall.SIGTERM) // fails if no process remains
	for deadline := time.Now().Add(restPatience); time.Now().Before(deadline); {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
		if pid == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
