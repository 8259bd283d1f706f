package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CanWriteIn reports whether a folder exists and is writable, or can be created. It creates nothing. The error names
// the folder or file that prevents it.
func CanWriteIn(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file", at)
		case err == nil:
			return mayWrite(at)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return fmt.Errorf("%s cannot be inspected: %w", at, plainly(err))
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

// plainly drops the path, which the message already has.
func plainly(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
