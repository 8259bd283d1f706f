// Package durable keeps things on disk through crashes: a file that is replaced
// whole or not at all, a lock that the kernel lets go when its holder dies, and
// a journal whose every line is on disk before the next thing happens.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// WriteFile replaces a file in one step: after a crash it is the old one or the
// new one, never a part.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	Moment("before %s", path)
	defer Moment("after %s", path)
	beside := renameio.WithTempDir(filepath.Dir(path)) // where Sweep looks
	if err := renameio.WriteFile(path, data, mode, renameio.WithStaticPermissions(mode), beside); err != nil {
		return named(path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// mostRead is more than any file of cosplay's has, in bytes.
const mostRead = 256 << 20

// open opens a file at a path where any user may have put another one. A pipe, a device
// or a file of more than 256 MiB is an error; open never blocks.
func open(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostRead) {
		err = fmt.Errorf("%s is not a regular file of at most %d MiB", path, mostRead>>20)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// ReadFile reads a file at a path where any user may have put another one: see open.
func ReadFile(path string) ([]byte, error) {
	file, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, size)
	n, err := io.ReadFull(file, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // it became shorter
		err = nil
	}
	return data[:n], err
}

// Sweep removes what writers of a file, or of those whose names go on after its
// own, have left beside it when they were killed. It is for who has the lock:
// nobody else may be writing.
func Sweep(path string) {
	left := regexp.MustCompile(`^\.` + regexp.QuoteMeta(filepath.Base(path)) + `(\.[a-z]*)?\d+$`)
	entries, _ := os.ReadDir(filepath.Dir(path)) // without a folder there is nothing
	for _, e := range entries {
		if left.MatchString(e.Name()) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // else the next one does
		}
	}
}

// ReplaceFile replaces a file in one step as far as processes go: whatever dies,
// it is the old one or the new one. It does not wait for the disk.
func ReplaceFile(path string, data []byte, mode os.FileMode) error {
	Moment("before %s", path)
	defer Moment("after %s", path)
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return named(path, err)
	}
	_, err = fresh.Write(data)
	err = errors.Join(err, fresh.Chmod(mode), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
		return named(path, err)
	}
	return nil
}

// named is an error about the file that was meant, not about a temporary one.
func named(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "write", Path: path, Err: at.Err}
	}
	return err
}

// Remove deletes a file for good: after a crash it does not come back.
func Remove(path string) error {
	Moment("before removal of %s", path)
	defer Moment("after removal of %s", path)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes what was renamed in a folder last through a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
