package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock on a file. The kernel releases it when the last process that has the file open ends, so a
// crash leaves no lock behind.
type Lock struct{ file *os.File }

// Holder describes the process that holds a lock.
type Holder struct {
	User    string    `json:"user"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// HeldError is the error of Acquire if the context ends first.
type HeldError struct {
	Path string  // path of the lock, which is named after the file that it protects: PATH.lock
	By   *Holder // nil if the holder left no note
}

func (e *HeldError) Error() string {
	what, who := strings.TrimSuffix(e.Path, ".lock"), "another process"
	if e.By != nil {
		who = e.By.String()
	}
	return fmt.Sprintf("%s is locked by %s; wait for it to finish", what, who)
}

// String describes the holder for users.
func (h *Holder) String() string {
	since := h.Since.Format(time.TimeOnly)
	if time.Since(h.Since) > 12*time.Hour {
		since = h.Since.Format(time.DateTime)
	}
	return fmt.Sprintf("%s (pid %d), running cosplay %s since %s", h.User, h.PID, h.Command, since)
}

// pollInterval is the interval at which a waiting Acquire tries again.
const pollInterval = 50 * time.Millisecond

// patience is how long Acquire waits before it reports that.
const patience = time.Second

// Acquire takes the lock at path. It waits until the context ends; then the error is a *HeldError. If that takes
// longer than a second, it calls waiting once with the holder, or nil if the holder left no note; waiting may be nil.
// The file remains when the lock is released.
func Acquire(ctx context.Context, path, command string, waiting func(*Holder)) (*Lock, error) {
	tell := time.After(patience)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			defer file.Close()
			return nil, &HeldError{Path: path, By: readHolder(file)}
		case <-tell:
			if waiting != nil {
				waiting(readHolder(file))
			}
		case <-time.After(pollInterval):
		}
	}
	lock := &Lock{file: file}
	_ = lock.sign(command) // the note is optional: without it, for example on a full disk, the lock is valid
	return lock, nil
}

// sign writes a note about the holder to the file, for processes that wait.
func (l *Lock) sign(command string) error {
	holder := Holder{PID: os.Getpid(), Command: command, Since: time.Now(), User: "uid " + fmt.Sprint(os.Getuid())}
	if u, err := user.Current(); err == nil {
		holder.User = u.Username
	}
	line, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(line, 0)
	return err
}

func readHolder(file *os.File) *Holder {
	var h Holder
	line := make([]byte, 4096)
	n, _ := file.ReadAt(line, 0)
	if json.Unmarshal(line[:n], &h) != nil {
		return nil
	}
	return &h
}

// Inspection is the state of a lock, read without taking it.
type Inspection struct {
	Held bool
	By   *Holder // the note in the file; if the lock is free, its author has died. nil without a note
}

// Inspect reads the state of the lock at path. Only the kernel knows whether a process holds it; neither the file nor
// a note in it proves that.
func Inspect(path string) (Inspection, error) {
	file, _, err := open(path, mostRead)
	if errors.Is(err, fs.ErrNotExist) {
		return Inspection{}, nil
	}
	if err != nil {
		return Inspection{}, fmt.Errorf("inspecting the lock: %w", err)
	}
	defer file.Close()
	seen := Inspection{By: readHolder(file)}
	// Try a shared lock for a moment: it fails only if another process holds the exclusive lock, and closing the file
	// releases it.
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		seen.Held = true
	case err != nil:
		return seen, fmt.Errorf("inspecting the lock %s: %w", path, err)
	}
	return seen, nil
}

// Release releases the lock, even if the note in the file cannot be cleared.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// BusyError is the error of LockByte if the context ends first.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process has a lock in %s; try again in a moment", e.Path)
}

// bytePoll is the interval at which a waiting LockByte tries again.
const bytePoll = 5 * time.Millisecond

// LockByte locks one byte of the file at path. It waits until the context ends; then the error is a *BusyError. One
// file holds any number of locks, so names in requests create no files. The lock belongs to the open file, not to the
// process: agents of a test wait for each other, too. Closing the returned value releases the lock.
func LockByte(ctx context.Context, path string, at int64) (io.Closer, error) {
	file, err := os.OpenFile(fileOfByte(path, at), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	for {
		err := lockByte(file, at)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, &BusyError{path}
		case <-time.After(bytePoll):
		}
	}
}
