// Package durable keeps things on disk through crashes: a file that is replaced
// whole or not at all, a lock that the kernel lets go when its holder dies, and
// a journal whose every line is on disk before the next thing happens.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteFile replaces a file in one step: after a crash it is the old one or the
// new one, never a part.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := renameio.WriteFile(path, data, mode, renameio.WithStaticPermissions(mode)); err != nil {
		return named(path, err)
	}
	return syncDir(filepath.Dir(path))
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
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
