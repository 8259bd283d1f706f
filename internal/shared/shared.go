// Package shared keeps one copy of the files that many session folders of a host have: in a folder beside them, named
// by their content. Session folders have hard links of them, or symbolic links to folders of them.
package shared

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
)

// Dir is the name of that folder; no session's name begins with a dot.
const Dir = ".shared"

// File is the content of a file that many sessions have. It is safe for concurrent use.
type File struct {
	Name    string // with the digest of the content
	content []byte
	mode    os.FileMode

	writing sync.Mutex
	known   map[string]int64 // when files with this content were last changed, in ns, by path
}

// NewFile describes a file by a name, its content and its mode.
func NewFile(name string, content []byte, mode os.FileMode) *File {
	return &File{Name: name + "-" + Digest(content), content: content, mode: mode, known: map[string]int64{}}
}

// Digest is short enough for a name.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Write writes the file to a path, unless it is there, and reports whether it wrote. It is not synced to disk, which
// would take longer than starting a container. So a file is compared before this process first uses it, and whenever
// its time has changed.
func (f *File) Write(path string) (wrote bool, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	before := changed(path)
	if time, ok := f.known[path]; ok && time == before {
		return false, nil
	}
	if err = Replace(path, f.content, f.mode); err != nil {
		return false, err
	}
	f.known[path] = changed(path)
	return f.known[path] != before, nil
}

// changed is when a file was last changed, in ns; 0 where there is none.
func changed(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// Link puts the file into a session's folder by a hard link, or as a copy if the file system has no links. base is the
// folder of the session folders.
func (f *File) Link(base, path string) error {
	source := filepath.Join(base, Dir, f.Name)
	return inFolders(base, path, func() error {
		_, err := f.Write(source)
		if err == nil {
			err = link(source, path)
		}
		return err
	}, func() error { return Replace(path, f.content, f.mode) })
}

// inFolders does something that needs the shared folder, which the end of another session may remove in between, and the
// folder of a path. If that fails, it does something else instead.
func inFolders(base, path string, do, instead func() error) (err error) {
	err = do()
	for tries := 1; tries < 3 && errors.Is(err, fs.ErrNotExist); tries++ {
		if err = errors.Join(os.MkdirAll(filepath.Join(base, Dir), 0o755), os.MkdirAll(filepath.Dir(path), 0o755)); err == nil {
			err = do()
		}
	}
	if err != nil {
		err = instead()
	}
	if err != nil {
		return fmt.Errorf("writing the session folder: %w", err)
	}
	return nil
}

// Lead makes a path in a session's folder a symbolic link, unless it is that. It is a hard link of one in the shared
// folder, which a file system makes many times faster than another symbolic link.
func Lead(base, path, to string) error {
	if now, err := os.Readlink(path); err == nil && now == to {
		return nil
	}
	source := filepath.Join(base, Dir, "to-"+Digest([]byte(to)))
	return inFolders(base, path, func() error {
		err := link(source, path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Symlink(to, source); err == nil || errors.Is(err, fs.ErrExist) {
				err = link(source, path)
			}
		}
		return err
	}, func() error { return renameio.Symlink(to, path) })
}

// link makes path another name of source, in one step. If both are names of one file already, it does nothing: a
// rename would leave both.
func link(source, path string) error {
	err := os.Link(source, path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	from, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if to, err := os.Lstat(path); err == nil && os.SameFile(from, to) {
		return nil
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(source, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// Replace writes a file in one step, unless it has the content already. It does not sync it to disk.
func Replace(path string, content []byte, mode os.FileMode) error {
	if info, err := os.Lstat(path); err == nil && info.Mode() == mode && info.Size() == int64(len(content)) {
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			return nil
		}
	}
	syscall.ForkLock.RLock() // a child that another thread starts meanwhile would keep a program open: "text file busy"
	defer syscall.ForkLock.RUnlock()
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(content)
	err = errors.Join(err, fresh.Chmod(mode), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
	}
	return err
}

// Remove removes the shared folder from the folder of session folders, if it is the last in it, and then that.
func Remove(base string) {
	folder, err := os.Open(base)
	if err != nil {
		return
	}
	defer folder.Close()
	first, err := folder.Readdirnames(2)
	switch {
	case len(first) > 1: // other sessions are in it
		return
	case len(first) == 1 && first[0] == Dir && err == nil:
		_ = os.RemoveAll(filepath.Join(base, Dir)) // another session creates it again
	}
	_ = os.Remove(base) // fails if a session has come
}
