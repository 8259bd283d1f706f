package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Announce tells all who look into a folder that something is being changed,
// until done is called or the process is gone. Nobody who may only read there can
// stand in the way: each announcement is a fresh file with a lock of its own.
func Announce(dir string) (done func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	sweep(dir)
	file, err := os.CreateTemp(dir, ".*")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	// The lock comes before the name: whoever sees the file sees it locked.
	err = errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), file.Chmod(0o644), os.Rename(file.Name(), path))
	if err != nil {
		_ = os.Remove(file.Name())
		file.Close()
		return nil, fmt.Errorf("announcing a change in %s: %w", dir, err)
	}
	return func() {
		_ = os.Remove(path) // one that stays is swept: its lock is gone
		file.Close()
	}, nil
}

// sweep removes what the dead have left.
func sweep(dir string) {
	for _, path := range announcements(dir) {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(path)
		}
		file.Close()
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

func announcements(dir string) []string {
	entries, _ := os.ReadDir(dir) // without a folder there is none
	var paths []string
	for _, e := range entries {
		if !unnamed(e) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// MovingError is what Quiet gives up with.
type MovingError struct{ PIDs []string }

func (e *MovingError) Error() string {
	pids := strings.Join(e.PIDs, ", ")
	return fmt.Sprintf("process %s is still changing the hardware; wait for it to finish: one NVML call takes a minute at most (ps -p %s)", pids, strings.Join(e.PIDs, ","))
}

// Quiet waits for what is announced in a folder now; what begins meanwhile is not
// waited for. When the context ends first, the error is a *MovingError.
func Quiet(ctx context.Context, dir string) error {
	var files []*os.File // each is one change, whatever gets its name later
	for _, path := range announcements(dir) {
		if file, err := os.Open(path); err == nil { // else it is over
			defer file.Close()
			files = append(files, file)
		}
	}
	for {
		files = slices.DeleteFunc(files, func(f *os.File) bool { return !locked(f) })
		if len(files) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			var moving []string
			for _, f := range files {
				moving = append(moving, filepath.Base(f.Name()))
			}
			return &MovingError{PIDs: moving}
		case <-time.After(pollInterval / 5):
		}
	}
}

// locked asks for a shared lock, which is had unless the one who announced has his.
func locked(file *os.File) bool {
	err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK)
}
