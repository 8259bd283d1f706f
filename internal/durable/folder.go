package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CanWriteIn tells whether a folder is there and can be written into, or can be
// made. It makes nothing; the error says which folder or file is in the way.
func CanWriteIn(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file", at)
		case err == nil:
			return mayWrite(at)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return fmt.Errorf("%s cannot be looked at: %w", at, plainly(err))
		}
		if _, err := os.Lstat(at); err == nil {
			return fmt.Errorf("%s is a link to what is not there", at)
		}
	}
}

func mayWrite(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be written into: %w", dir, err)
	}
	return nil
}

// plainly leaves out the path, which is told already.
func plainly(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
