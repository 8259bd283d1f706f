// Package durable stores data so that it survives crashes: a file that is replaced completely or not at all, a lock
// that the kernel releases when its holder dies, and a journal of which every line is on disk before the next action.
package durable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Destination is the file that a path of a user leads to: where it is a symbolic link, the file behind it, so that the
// link stays. Anything but a regular file is refused, since a write by rename would replace a device, a pipe or a
// socket. A file that does not exist is none of these.
func Destination(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		if path, err = behind(path); err == nil {
			info, err = os.Lstat(path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return path, err
	}
	return path, regular(path, info)
}

// behind is where a symbolic link leads, whether or not there is a file.
func behind(link string) (string, error) {
	real, err := filepath.EvalSymlinks(link)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	to, err := os.Readlink(link)
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(link), to)
	}
	return to, err
}

// regular refuses what is no regular file.
func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := map[fs.FileMode]string{fs.ModeDir: "a folder", fs.ModeNamedPipe: "a pipe", fs.ModeSocket: "a socket"}[info.Mode().Type()]
	return fmt.Errorf("%s is %s; cosplay replaces regular files only. Fix: name another file", path, cmp.Or(what, "a device"))
}

// replaceable refuses to replace what is no file. A symbolic link is replaced and not followed: in folders of others it
// may lead anywhere.
func replaceable(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() == fs.ModeSymlink {
		return nil // the write reports what is wrong
	}
	return regular(path, info)
}

// WriteFile replaces a file in one step: after a crash it has its old or its new content, never a part.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	return writeFile(path, data, renameio.WithStaticPermissions(mode))
}

// WriteOutput does the same for a file that a user names for the output of a command, see Destination. A new file has the
// mode that the user's umask leaves, and one that is replaced keeps its mode.
func WriteOutput(path string, data []byte) error {
	to, err := Destination(path)
	if err != nil {
		return err
	}
	return writeFile(to, data, renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
}

func writeFile(path string, data []byte, options ...renameio.Option) error {
	if err := replaceable(path); err != nil {
		return err
	}
	Moment("before %s", path)
	defer Moment("after %s", path)
	options = append(options, renameio.WithTempDir(filepath.Dir(path))) // where Sweep looks
	fresh, err := renameio.NewPendingFile(path, options...)
	if err != nil {
		return named(path, err)
	}
	defer func() { _ = fresh.Cleanup() }()
	_, err = fresh.Write(data)
	if err = errors.Join(err, inherit(fresh.File, path)); err == nil {
		err = fresh.CloseAtomicallyReplace()
	}
	if err != nil {
		return named(path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// inherit gives a file that root creates to the owner of the file that it replaces, or else of its folder: root may
// work for a user, who goes on without root.
func inherit(fresh *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var of unix.Stat_t
	if unix.Lstat(path, &of) != nil && unix.Stat(filepath.Dir(path), &of) != nil || of.Uid == 0 {
		return nil
	}
	return fresh.Chown(int(of.Uid), int(of.Gid))
}

// making is held while folders are created: one without its owner yet would give the one below the wrong owner.
var making sync.Mutex

// MakeFolder creates a folder and those above it that are missing, each with the owner of the one above.
func MakeFolder(path string, mode os.FileMode) error {
	making.Lock()
	defer making.Unlock()
	return makeFolder(path, mode)
}

func makeFolder(path string, mode os.FileMode) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(path, mode) // which fails if it is a file
	}
	if err := makeFolder(filepath.Dir(path), mode); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil {
		return os.MkdirAll(path, mode) // another process was faster
	}
	made, err := os.Open(path)
	if err != nil {
		return err
	}
	defer made.Close()
	return inherit(made, filepath.Dir(path))
}

// mostRead exceeds the size of any file of cosplay, in bytes.
const mostRead = 256 << 20

// open opens a file at a path where any user may have put another one. A pipe, a device
// or a file of more bytes is an error; open never blocks.
func open(path string, most int64) (*os.File, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file; cosplay reads no folders, devices and pipes. Fix: write its content to a file", path)
	case err == nil && info.Size() > most:
		err = fmt.Errorf("%s exceeds %d MiB, the limit of cosplay for such a file. Fix: name the right file", path, most>>20)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// ReadFile reads a file at a path where any user may have put another one: see open.
func ReadFile(path string) ([]byte, error) {
	data, _, err := ReadOwned(path, mostRead)
	return data, err
}

// ReadOwned is ReadFile of at most so many bytes, with the UID of the owner of the file that was read.
func ReadOwned(path string, most int64) (data []byte, uid int, err error) {
	file, info, err := open(path, most)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	data = make([]byte, info.Size())
	n, err := io.ReadFull(file, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the file was truncated meanwhile
		err = nil
	}
	return data[:n], int(info.Sys().(*syscall.Stat_t).Uid), err
}

// The limits of a record: a state, a plan or a journal. They are far above the records of 10,000 sessions.
const (
	mostRecord  = 64 << 20 // bytes
	mostObjects = 250_000
)

// ReadRecord reads a file of JSON like ReadFile. It refuses a file whose values could exceed the memory.
func ReadRecord(path string) ([]byte, error) {
	data, _, err := ReadOwnedRecord(path, mostRecord)
	return data, err
}

// ReadOwnedRecord is ReadRecord of at most so many bytes, with the UID of the owner of the file that was read.
func ReadOwnedRecord(path string, most int64) (data []byte, uid int, err error) {
	data, uid, err = ReadOwned(path, most)
	switch {
	case err != nil:
		return nil, 0, err
	case bytes.Count(data, []byte("{")) > mostObjects || bytes.Count(data, []byte("null")) > mostObjects:
		return nil, 0, fmt.Errorf("%s exceeds %d objects, the limit of cosplay for such a file. Fix: name the right file", path, mostObjects)
	}
	return data, uid, nil
}

// Sweep removes temporary files that killed writers have left beside a file or beside files whose names start with
// its name. The caller must hold the lock, so that no other process is writing.
func Sweep(path string) { sweepOf(filepath.Dir(path), regexp.QuoteMeta(filepath.Base(path))) }

// SweepAll removes such files of all files in a folder.
func SweepAll(dir string) { sweepOf(dir, `.+`) }

// sweepOf removes the temporary files of files whose names start with a pattern.
func sweepOf(dir, names string) {
	left := regexp.MustCompile(`^\.` + names + `(\.[a-z]*)?\d+$`)
	entries, _ := os.ReadDir(dir) // a missing folder has none
	for _, e := range entries {
		if left.MatchString(e.Name()) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // if this fails, the next sweep tries again
		}
	}
}

// ReplaceFile replaces a file in one step: whichever process dies, the file has its old or its new content. It does
// not wait for the disk, so a power failure can lose the change.
func ReplaceFile(path string, data []byte, mode os.FileMode) error {
	if err := replaceable(path); err != nil {
		return err
	}
	Moment("before %s", path)
	defer Moment("after %s", path)
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return named(path, err)
	}
	_, err = fresh.Write(data)
	err = errors.Join(err, fresh.Chmod(mode), inherit(fresh, path), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
		return named(path, err)
	}
	return nil
}

// named returns an error with the path of the file that the caller meant, not of a temporary one.
func named(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "write", Path: path, Err: at.Err}
	}
	return err
}

// Remove deletes a file so that it does not reappear after a crash.
func Remove(path string) error {
	Moment("before removal of %s", path)
	defer Moment("after removal of %s", path)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes renames in a folder survive a crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// CanWriteIn reports whether a folder exists and is writable, or can be created. It creates nothing. The error names
// the folder or file that prevents it.
func CanWriteIn(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file", at)
		case err == nil:
			if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("%s cannot be written into: %w", at, err)
			}
			return nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return fmt.Errorf("%s cannot be inspected: %w", at, plainly(err))
		}
		if _, err := os.Lstat(at); err == nil {
			return fmt.Errorf("%s is a link to what is not there", at)
		}
	}
}

// plainly drops the path, which the message already has.
func plainly(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// OnMoment is called at each moment at which a crash would do most harm: before and after every write to disk in this
// package, and every effect of a run. Only tests set it, to end the process there; users have no way to set it.
var OnMoment func(what string)

// Moment marks such a moment.
func Moment(format string, args ...any) {
	if OnMoment != nil {
		OnMoment(fmt.Sprintf(format, args...))
	}
}
