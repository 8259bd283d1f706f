package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Trusted follows a path to what it names and makes sure that root alone can
// change that: it, and every folder on the way, is root's and not writable for
// group or others. What comes back has no links left in it, so nobody can turn it
// elsewhere afterwards. Its error says what is wrong.
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
