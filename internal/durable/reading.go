package durable

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a folder that is held open for fast reading. A plan reads several files of a thousand sessions: relative
// paths are short to resolve, and plain descriptors are cheaper than os.File.
type Folder struct {
	Dir string // its path
	fd  int
}

// WorkingFolder is the one that relative paths begin at.
var WorkingFolder = Folder{fd: unix.AT_FDCWD}

// OpenFolder opens a folder. The caller closes it.
func OpenFolder(dir string) (Folder, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, forNames|unix.O_DIRECTORY)
	if err != nil {
		return Folder{}, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return Folder{dir, fd}, nil
}

// Close closes the folder.
func (f Folder) Close() { _ = unix.Close(f.fd) }

// Read reads a file in the folder into a buffer, which it enlarges if necessary. Pass the returned buffer to the next
// call.
func (f Folder) Read(name string, buffer []byte) ([]byte, error) {
	fd, err := openAt(f.fd, name, unix.O_RDONLY)
	if err != nil {
		return buffer, f.failed("open", name, err)
	}
	defer func() { _ = unix.Close(fd) }()
	for buffer = buffer[:0]; ; {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, make([]byte, 4<<10)...)[:len(buffer)]
		}
		n, err := unix.Read(fd, buffer[len(buffer):cap(buffer)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return buffer, f.failed("read", name, err)
		default:
			buffer = buffer[:len(buffer)+n]
			if n == 0 || len(buffer) < cap(buffer) { // a regular file is read as far as it goes
				return buffer, nil
			}
		}
	}
}

// Stat describes a file in the folder, without following a link.
func (f Folder) Stat(name string, to *unix.Stat_t) error {
	if err := unix.Fstatat(f.fd, name, to, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return f.failed("stat", name, err)
	}
	return nil
}

// Open opens a file in the folder for reading, with further flags of open(2). It does not wait for the writer of a
// pipe. The caller closes the descriptor.
func (f Folder) Open(name string, flags int) (fd int, err error) {
	if fd, err = openAt(f.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|flags); err != nil {
		return -1, f.failed("open", name, err)
	}
	return fd, nil
}

func (f Folder) failed(what, name string, err error) error {
	return &fs.PathError{Op: what, Path: filepath.Join(f.Dir, name), Err: err}
}

// openAt calls openat, which a signal can interrupt on some file systems.
func openAt(dir int, name string, flags int) (fd int, err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
	}
	return fd, err
}
