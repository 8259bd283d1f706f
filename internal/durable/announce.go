package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Announce tells every process that reads a folder that something is being
// changed, until done is called or this process ends.
//
// An announcement is a fresh file, PID-START, with a lock on it. Its mode is 0600:
// a process of another user cannot open it, and so cannot keep a lock on it that
// outlives the change. Such a process compares PID and START with /proc instead.
func Announce(dir string) (done func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	sweep(dir)
	start, err := startOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, ".*") // mode 0600
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fmt.Sprintf("%d-%s", os.Getpid(), start))
	// The lock comes before the name: a process that sees the file sees it locked.
	err = errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Rename(file.Name(), path))
	if err != nil {
		_ = os.Remove(file.Name())
		file.Close()
		return nil, fmt.Errorf("announcing a change in %s: %w", dir, err)
	}
	return func() {
		_ = os.Remove(path) // a file that stays is swept: its lock is released
		file.Close()
	}, nil
}

// announcement is one file in the folder, as it was found.
type announcement struct {
	path string
	info fs.FileInfo
	file *os.File // nil where only its owner may open it
}

// announcements are those in a folder now. The caller closes them.
func announcements(dir string) []announcement {
	entries, _ := os.ReadDir(dir) // without a folder there is none
	var all []announcement
	for _, e := range entries {
		if unnamed(e) {
			continue
		}
		a := announcement{path: filepath.Join(dir, e.Name())}
		var err error
		if a.info, err = os.Lstat(a.path); err != nil || !a.info.Mode().IsRegular() {
			continue
		}
		if a.file, err = os.Open(a.path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		all = append(all, a)
	}
	return all
}

func (a announcement) close() {
	if a.file != nil {
		a.file.Close()
	}
}

// process is who announced: PID, and START where the name has it.
func (a announcement) process() (pid, start string) {
	pid, start, _ = strings.Cut(filepath.Base(a.path), "-")
	return pid, start
}

// live reports whether the change is still going on.
func (a announcement) live() bool {
	now, err := os.Lstat(a.path)
	if err != nil || !os.SameFile(now, a.info) || !now.ModTime().Equal(a.info.ModTime()) {
		return false // a later change has the same name
	}
	pid, start := a.process()
	switch {
	case a.file == nil:
		return running(pid, start, a.info.ModTime())
	case a.info.Mode().Perm()&0o077 != 0: // of an earlier version: any user can hold a lock on it
		return locked(a.file) && running(pid, start, a.info.ModTime())
	}
	return locked(a.file)
}

// sweep removes announcements of processes that ended.
func sweep(dir string) {
	for _, a := range announcements(dir) {
		if a.file != nil && !a.live() {
			_ = os.Remove(a.path)
		}
		a.close()
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); unnamed(e) && err == nil && time.Since(info.ModTime()) > nameless {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// nameless is how long an announcement may be without its name, while it is being
// made.
const nameless = time.Minute

func unnamed(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

// MovingError is the error of Quiet when the context ends first.
type MovingError struct{ PIDs []string }

func (e *MovingError) Error() string {
	pids := strings.Join(e.PIDs, ", ")
	return fmt.Sprintf("process %s is still changing the hardware; wait for it to finish: one NVML call takes a minute at most (ps -p %s)", pids, strings.Join(e.PIDs, ","))
}

// Quiet waits for what is announced in a folder now; what begins meanwhile is not
// waited for. When the context ends first, the error is a *MovingError.
func Quiet(ctx context.Context, dir string) error {
	all := announcements(dir)
	defer func(opened []announcement) {
		for _, a := range opened {
			a.close()
		}
	}(slices.Clone(all))
	for {
		all = slices.DeleteFunc(all, func(a announcement) bool { return !a.live() })
		if len(all) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			var moving []string
			for _, a := range all {
				pid, _ := a.process()
				moving = append(moving, pid)
			}
			return &MovingError{PIDs: moving}
		case <-time.After(pollInterval / 5):
		}
	}
}

// locked asks for a shared lock, which is granted unless the process that
// announced has its own.
func locked(file *os.File) bool {
	err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}

// longest is more than any change takes: an agent ends itself after a minute.
const longest = 2 * time.Minute

// running reports whether the process that announced still runs. With "hidepid"
// a user sees only that some process has the number: then the age of the
// announcement decides as well.
func running(pid, start string, since time.Time) bool {
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return false
	}
	now, err := startOf(number)
	if errors.Is(err, fs.ErrNotExist) {
		return !errors.Is(unix.Kill(number, 0), unix.ESRCH) && time.Since(since) < longest
	}
	return err == nil && (start == "" || now == start)
}

// startOf is when a process started, in ticks since the boot; one that has ended
// and is not yet reaped does not exist.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	// The name, in brackets, may contain anything; the state follows it, and start
	// is the 22nd field.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	if fields[0][0] == 'Z' {
		return "", errEnded
	}
	return string(fields[19]), nil
}

var errEnded = errors.New("the process has ended")
