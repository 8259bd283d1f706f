package disguise

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a session's folder, held open for fast reading. A plan inspects a dozen files in each of a thousand
// folders: relative paths are short to resolve, and plain descriptors are cheaper than os.File.
type Folder struct {
	Dir string // its path
	fd  int
}

// OpenFolder opens a folder. The caller closes it.
func OpenFolder(dir string) (Folder, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY)
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

// looks compares the type, size and time of a file in the folder with the seal, without following links. For most
// files this makes reading the content unnecessary.
func (f Folder) looks(m mark) bool {
	var now unix.Stat_t
	err := unix.Fstatat(f.fd, m.file, &now, unix.AT_SYMLINK_NOFOLLOW)
	if m.digest == counted {
		return err == nil && now.Size == m.size && now.Mode&countedMode == countedMode
	}
	return err == nil && now.Size == m.size && now.Mtim.Nano() == m.time
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
