package account

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cosplay/internal/initd"
)

// shells in the order of preference, where images keep them.
var shells = []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh", "/usr/bin/sh", "/busybox/sh"}

// Shell is the preferred shell if the image has it, otherwise the first that the image has; "" if it has none.
func Shell(root, preferred string) string {
	for _, shell := range append([]string{preferred}, shells...) {
		info, err := os.Stat(filepath.Join(root, shell))
		if shell != "" && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return shell
		}
	}
	return ""
}

// Setup creates the user in the file system under root ("/" in a container) and returns notes on conflicts and
// errors. If it cannot write the files, the session works with numeric ids, without names.
func Setup(root string, u initd.User) (Account, []string, error) {
	files, err := read(root)
	if err != nil {
		return Account{}, nil, err
	}
	want, account, notes := Enrol(files, u, Shell(root, u.Shell))
	for _, f := range []struct {
		name     string
		old, new []byte
		mode     os.FileMode
	}{
		{"/etc/passwd", files.Passwd, want.Passwd, 0o644},
		{"/etc/group", files.Group, want.Group, 0o644},
		{"/etc/shadow", files.Shadow, want.Shadow, 0o600},
	} {
		file := filepath.Join(root, f.name)
		var err error
		if !bytes.Equal(f.old, f.new) {
			err = Replace(file, f.new, f.mode)
		}
		if err = errors.Join(err, reveal(file, f.mode)); err != nil {
			notes = append(notes, fmt.Sprintf("%v; programs will not find %s by name: leave %s writable", err, u.Name, f.name))
		}
	}
	if err := makeHome(root, u, files.Passwd); err != nil {
		notes = append(notes, fmt.Sprintf("no home: %v; mount a volume at %s", err, u.Home))
	}
	return account, notes, nil
}

// reveal gives a file its mode if only root can read it. podman writes such files into an image without accounts, and
// without a readable one no program finds a name.
func reveal(file string, mode os.FileMode) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil
	}
	return errors.Join(err, os.Chmod(file, mode))
}

// Look reads the account that Setup has created, for a second program in the same container.
func Look(root string, u initd.User) (Account, error) {
	files, err := read(root)
	if err != nil {
		return Account{}, err
	}
	_, account, _ := Enrol(files, u, Shell(root, u.Shell))
	return account, nil
}

// Find reads another account of the container, by NAME or UID, with :GROUP or :GID.
func Find(root, ref string) (Account, error) {
	files, err := read(root)
	if err != nil {
		return Account{}, err
	}
	account, preferred, err := In(files, ref)
	account.Shell = Shell(root, preferred)
	return account, err
}

func read(root string) (files Files, err error) {
	for name, data := range map[string]*[]byte{"passwd": &files.Passwd, "group": &files.Group, "shadow": &files.Shadow} {
		*data, err = os.ReadFile(filepath.Join(root, "etc", name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !(name == "shadow" && errors.Is(err, fs.ErrPermission)) {
			return files, fmt.Errorf("%w; is the image sound?", err)
		}
	}
	return files, nil
}

// Replace writes a file in one step, with its present mode and owner; mode applies to a new one. A file that is a
// mount point is overwritten in place. Replace does not wait for the disk: after a power failure the container starts
// again.
func Replace(file string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	uid, gid := -1, -1
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
		stat := info.Sys().(*syscall.Stat_t)
		uid, gid = int(stat.Uid), int(stat.Gid)
	}
	temp, err := os.CreateTemp(dir, ".cosplay-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // already renamed after a success
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chown(uid, gid), temp.Chmod(mode), temp.Close())
	if err != nil {
		return err
	}
	err = os.Rename(temp.Name(), file)
	if errors.Is(err, syscall.EBUSY) {
		return overwrite(file, data)
	}
	return err
}

func overwrite(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// makeHome creates the home with the content of /etc/skel. An existing home keeps its content and owner, with one
// exception: if root or the user's former uid owns the folder itself, the user becomes its owner, because Docker
// creates the parents of a mount as root.
func makeHome(root string, u initd.User, before []byte) error {
	home := filepath.Join(root, u.Home)
	info, err := os.Stat(home)
	if errors.Is(err, fs.ErrNotExist) {
		return newHome(root, home, u)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", u.Home)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	ours := filepath.Dir(u.Home) == "/home" && !isMount(u.Home)
	if ours && owner != u.UID && (owner == 0 || decimal(owner) == formerUID(before, u.Name)) {
		return os.Lchown(home, int(u.UID), int(u.GID))
	}
	return nil
}

func newHome(root, home string, u initd.User) error {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	skel := os.DirFS(filepath.Join(root, "etc/skel"))
	if err := os.CopyFS(home, skel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(u.UID), int(u.GID))
	})
}

func formerUID(passwd []byte, name string) string {
	t := parse(passwd)
	if i := t.find(fieldName, name); i >= 0 {
		return at((*t)[i], fieldID)
	}
	return ""
}

// isMount reports whether a path is a mount point; the kernel writes spaces in it as \040.
func isMount(path string) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true // unknown: do not replace it
	}
	path = strings.ReplaceAll(path, " ", `\040`)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}
