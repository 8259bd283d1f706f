package durable

import (
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

// Announce states to every process that reads a folder that a change is in progress, until the caller calls done or
// this process ends.
//
// An announcement is a new file, PID-START, with a lock on it. Its mode is 0600: a process of another user cannot
// open it, and so cannot lock it, which would make the change look unfinished for ever. A process that may not open
// it cannot test the lock, and checks by /proc whether a process PID with the start time START exists.
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
	// The lock precedes the name, so that a process that sees the file sees it locked.
	err = errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Rename(file.Name(), path))
	if err != nil {
		_ = os.Remove(file.Name())
		file.Close()
		return nil, fmt.Errorf("announcing a change in %s: %w", dir, err)
	}
	return func() {
		_ = os.Remove(path) // if this fails, sweep removes the file later, because its lock is released
		file.Close()
	}, nil
}

// announcement is one file in the folder, as it was found.
type announcement struct {
	path string
	info fs.FileInfo
	file *os.File // nil if only its owner may open it
}

// announcements returns those that are in a folder now. The caller closes them.
func announcements(dir string) []announcement {
	entries, _ := os.ReadDir(dir) // a missing folder has none
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

// live reports whether the change is still in progress.
func (a announcement) live() bool {
	now, err := os.Lstat(a.path)
	if err != nil || !os.SameFile(now, a.info) || !now.ModTime().Equal(a.info.ModTime()) {
		return false // a later change has the same name
	}
	pid, start, _ := strings.Cut(filepath.Base(a.path), "-")
	switch {
	case a.file == nil:
		return running(pid, start, a.info.ModTime())
	case a.info.Mode().Perm()&0o077 != 0: // of an earlier version: any user can hold a lock on it
		return locked(a.file) && running(pid, start, a.info.ModTime())
	}
	return locked(a.file)
}

func sweep(dir string) {
	for _, a := range announcements(dir) {
		if a.file != nil && !a.live() {
			_ = os.Remove(a.path)
		}
		a.close()
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); unnamed(e) && err == nil && time.Since(info.ModTime()).Abs() > nameless {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// nameless limits how long an announcement may lack its name, which it does while it is being created.
const nameless = time.Minute

func unnamed(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

// MovingError is the error of Quiet if the context ends during a change.
type MovingError struct{ PIDs []string }

func (e *MovingError) Error() string {
	pids := strings.Join(e.PIDs, ", ")
	return fmt.Sprintf("process %s is still changing the hardware; wait for it to finish: one NVML call takes a minute at most (ps -p %s)", pids, strings.Join(e.PIDs, ","))
}

// Quiet waits for the changes that are announced in a folder when it is called, not for later ones. If the context
// ends first, the error is a *MovingError.
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
				pid, _, _ := strings.Cut(filepath.Base(a.path), "-")
				moving = append(moving, pid)
			}
			return &MovingError{PIDs: moving}
		case <-time.After(pollInterval / 5):
		}
	}
}

// locked requests a shared lock, which fails while the announcing process holds its own.
func locked(file *os.File) bool {
	err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}

// longest exceeds the duration of any change: an agent ends itself after a minute.
const longest = 2 * time.Minute

// running reports whether the announcing process still runs. With the mount option "hidepid", a user can only see
// that some process has the number; then the age of the announcement decides as well. A time far in the future, by a clock
// that was ahead, is no sign of life.
func running(pid, start string, since time.Time) bool {
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return false
	}
	now, err := startOf(number)
	if errors.Is(err, fs.ErrNotExist) {
		return !errors.Is(unix.Kill(number, 0), unix.ESRCH) && time.Since(since).Abs() < longest
	}
	return err == nil && (start == "" || now == start)
}

// Self identifies this process for Runs.
func Self() string {
	start, _ := startOf(os.Getpid()) // without it, the number alone counts
	return fmt.Sprintf("%d-%s", os.Getpid(), start)
}

// Runs reports whether a process, as Self names it, still runs. since is when it was last known to.
func Runs(process string, since time.Time) bool {
	pid, start, _ := strings.Cut(process, "-")
	return running(pid, start, since)
}

var errEnded = errors.New("the process has ended")
