package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Trusted resolves the links of a path and checks that only root can change it: root owns
// the file and every folder above it, and neither group nor others can write to them. No
// other user can redirect the returned path, since it has no links.
func Trusted(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	for at := real; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if err := rootsAlone(at, info); err != nil {
			return "", err
		}
		if at == "/" {
			return real, nil
		}
	}
}

func rootsAlone(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || owner.Uid != 0:
		return fmt.Errorf("%s is not root's: chown root %s", path, path)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others than root can write to %s: chmod go-w %s", path, path)
	}
	return nil
}

// trustedFile is Trusted for a file.
func trustedFile(path string) (string, error) {
	real, err := Trusted(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a file", real))
	}
	return real, nil
}
