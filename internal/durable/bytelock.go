package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// BusyError is the error of LockByte if the context ends first.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process has a lock in %s; try again in a moment", e.Path)
}

// bytePoll is the interval at which a waiting LockByte tries again.
const bytePoll = 5 * time.Millisecond

// LockByte locks one byte of the file at path. It waits until the context ends; then the
// error is a *BusyError. One file holds any number of locks, so names in requests create
// no files. Closing the returned value releases the lock.
func LockByte(ctx context.Context, path string, at int64) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	for {
		// The lock belongs to the open file, not to the process: agents of a test wait for
		// each other, too.
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1})
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
