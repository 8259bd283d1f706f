package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cosplay/internal/disguise"
	"cosplay/internal/proc"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Entered finds the sessions in which a program runs that cosplay exec started, or one that such a program started.
func (r Runtime) Entered(_ context.Context, sessions []string) (map[string]bool, error) {
	running, err := r.running()
	all := map[string]bool{}
	for _, session := range sessions {
		all[session] = len(running[session]) > 0
	}
	return all, err
}

// programs are the pids of the programs of a session.
func (r Runtime) programs(session string) ([]int, error) {
	if err := runtime.CheckSession(session); err != nil {
		return nil, err
	}
	running, err := r.running()
	return running[session], err
}

// running are the pids of the programs of all sessions: those whose loader looks into a session's folder first.
func (r Runtime) running() (map[string][]int, error) {
	all := map[string][]int{}
	err := proc.Each(func(pid int) {
		if session := r.sessionOf(pid); session != "" {
			all[session] = append(all[session], pid)
		}
	})
	return all, err
}

// sessionOf is the session to which a process belongs, or "". The environment of another user's process is not
// readable, and it belongs to none; nor does one that has ended and is not reaped yet.
func (r Runtime) sessionOf(pid int) string {
	environment, _ := proc.Environment(proc.Root, pid)
	mark := resource.LoaderVariable + "=" + filepath.Clean(r.Folders) + "/"
	for _, variable := range environment {
		if rest, marked := strings.CutPrefix(variable, mark); marked {
			first, _, _ := strings.Cut(rest, ":")
			if session, is := strings.CutSuffix(first, "/"+disguise.LibraryDir); is {
				return session
			}
		}
	}
	return ""
}

// End ends the programs of a session: a message on their terminals, SIGTERM, and after the grace period SIGKILL.
func (r Runtime) End(ctx context.Context, session, message string, grace time.Duration) error {
	programs, err := r.programs(session)
	if err != nil || len(programs) == 0 {
		return err
	}
	tell(programs, message)
	r.signal(programs, session, syscall.SIGTERM)
	for deadline := time.Now().Add(grace); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if programs, err = r.programs(session); err != nil || len(programs) == 0 {
			return err
		}
	}
	if programs, err = r.programs(session); err != nil {
		return err
	}
	r.signal(programs, session, syscall.SIGKILL)
	return nil
}

// signal sends a signal to the processes of a list that are still those of the session.
func (r Runtime) signal(pids []int, session string, signal syscall.Signal) {
	for _, pid := range pids {
		one, err := os.FindProcess(pid) // refers to this process, also if its pid is used again
		if err == nil && r.sessionOf(pid) == session {
			_ = one.Signal(signal) // it may have ended
		}
	}
}

// tell writes a message to each terminal that the processes use, as far as it accepts it now.
func tell(pids []int, message string) {
	warned := map[string]bool{}
	for _, pid := range pids {
		for fd := range 3 {
			name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
			if err != nil || warned[name] || !strings.HasPrefix(name, "/dev/pts/") {
				continue
			}
			warned[name] = true
			if tty, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
				_, _ = tty.WriteString("\r\n" + message + "\r\n")
				_ = tty.Close()
			}
		}
	}
}
