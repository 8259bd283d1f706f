package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock on a file. The kernel drops it when the last
// process that has it open is gone, so a crash never leaves one behind.
type Lock struct{ file *os.File }

// Holder says who has a lock.
type Holder struct {
	User    string    `json:"user"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// HeldError is what Acquire gives up with.
type HeldError struct {
	Path string  // of the lock, which is called after what it keeps: PATH.lock
	By   *Holder // nil where the holder did not say
}

func (e *HeldError) Error() string {
	what, who := strings.TrimSuffix(e.Path, ".lock"), "another process"
	if e.By != nil {
		who = e.By.String()
	}
	return fmt.Sprintf("%s is locked by %s; wait for it to finish", what, who)
}

// String tells people who it is and what he does.
func (h *Holder) String() string {
	since := h.Since.Format(time.TimeOnly)
	if time.Since(h.Since) > 12*time.Hour {
		since = h.Since.Format(time.DateTime)
	}
	return fmt.Sprintf("%s (pid %d), who has been running cosplay %s since %s", h.User, h.PID, h.Command, since)
}

// pollInterval is how often a waiting Acquire looks again.
const pollInterval = 50 * time.Millisecond

// patience is how long one waits for the lock without a word.
const patience = time.Second

// Acquire takes the lock at path, waiting until the context ends; then the
// error is a *HeldError. When it takes longer than a second, waiting is called
// once with the holder, nil where he did not say who he is; waiting may be nil.
// The file itself stays when the lock is let go.
func Acquire(ctx context.Context, path, command string, waiting func(*Holder)) (*Lock, error) {
	tell := time.After(patience)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	for {
		// Not gofrs/flock: the descriptor is handed to the agent, so that the lock
		// outlives us while a step of ours still runs there.
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
	_ = lock.sign(command) // a note alone: the lock counts without it, also on a full disk
	return lock, nil
}

// sign notes the holder in the file, for the processes that wait.
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

// Inspection is what can be known of a lock without taking it.
type Inspection struct {
	Held bool
	By   *Holder // who noted himself; where the lock is not held, one who died. nil without a note
	Open []int   // the processes that have the lock's file open, as far as one may see
}

// Inspect looks at the lock at path. Neither the file nor a note in it makes a
// lock: the kernel knows whether somebody has it.
func Inspect(path string) (Inspection, error) {
	file, _, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Inspection{}, nil
	}
	if err != nil {
		return Inspection{}, fmt.Errorf("looking at the lock: %w", err)
	}
	defer file.Close()
	seen := Inspection{By: readHolder(file)}
	// A shared lock for a moment: it is had unless somebody has the lock for
	// himself, and goes when the file is closed.
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		seen.Held, seen.Open = true, openers(file)
	case err != nil:
		return seen, fmt.Errorf("looking at the lock %s: %w", path, err)
	}
	return seen, nil
}

// openers finds the other processes that have a file open. They are told by the
// kernel's name for it: looking at the files themselves could hang.
func openers(file *os.File) []int {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil
	}
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || pid == os.Getpid() || slices.Contains(pids, pid) {
			continue
		}
		if target, err := os.Readlink(link); err == nil && target == name {
			pids = append(pids, pid)
		}
	}
	return pids
}

// File is the open file that carries the lock.
func (l *Lock) File() *os.File { return l.file }

// Release releases the lock, also where the note in the file cannot be cleared.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
