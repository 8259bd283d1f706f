package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/terminal"
)

// handOver gives the project's files that root has created to the user who called sudo, so that this user's commands
// without sudo can read and write them. Without sudo it does nothing. What stays root's is for checkOwner to report.
func (f *Files) handOver() {
	who, err := machine.Invoker()
	if os.Geteuid() != 0 || err != nil || who.UID == 0 {
		return
	}
	for dir, names := range f.ownNames() {
		root, err := os.OpenRoot(dir) // follows no link out of the folder
		if err != nil {
			continue
		}
		for _, path := range rootsFiles(root.FS(), names) {
			_ = root.Lchown(path, who.UID, who.GID)
		}
		_ = root.Close()
	}
}

// ownNames are the names of the project's files and folders, by the folder of the project and that of its state.
func (f *Files) ownNames() map[string][]string {
	all := map[string][]string{f.Dir: {machine.ScratchDir}}
	dir, name := filepath.Split(f.Store.Path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name) {
			dir := filepath.Clean(dir)
			all[dir] = append(all[dir], e.Name())
		}
	}
	return all
}

// rootsFiles finds the files of root below some names. It leaves out a file that has another name elsewhere: a user may
// have given that one to a file of the system.
func rootsFiles(in fs.FS, names []string) (all []string) {
	type file struct {
		path string
		*syscall.Stat_t
	}
	var found []file
	seen := map[uint64]uint64{} // by inode: how many names of a file are here
	for _, name := range names {
		_ = fs.WalkDir(in, name, func(path string, e fs.DirEntry, err error) error {
			if e == nil {
				return nil
			}
			if info, err := e.Info(); err == nil {
				s := info.Sys().(*syscall.Stat_t)
				seen[s.Ino]++
				found = append(found, file{path, s})
			}
			return nil // what cannot be read stays as it is
		})
	}
	for _, f := range found {
		if f.Uid == 0 && (f.Mode&unix.S_IFMT == unix.S_IFDIR || uint64(f.Nlink) <= seen[f.Ino]) {
			all = append(all, f.path)
		}
	}
	return all
}

// checkOwner refuses a project of this user that has files of root, as a run by sudo leaves them that was killed. deep
// inspects the session folders, too: a run that is under way has some of root.
func (f *Files) checkOwner(deep bool) error {
	if os.Geteuid() == 0 {
		return nil
	}
	var paths []string
	roots := false
	for dir, names := range f.ownNames() {
		mine := ownedBy(dir, os.Geteuid())
		for _, name := range names {
			path := filepath.Join(dir, name)
			all := []string{path}
			for pattern := path; deep && name == machine.ScratchDir && strings.Count(pattern, "*") < 4; {
				pattern = filepath.Join(pattern, "*")
				below, _ := filepath.Glob(pattern)
				all = append(all, below...)
			}
			paths = append(paths, path)
			roots = roots || slices.ContainsFunc(all, func(one string) bool { return ownedBy(one, 0) && (mine || unix.Access(one, unix.R_OK) != nil) })
		}
	}
	if !roots {
		return nil
	}
	slices.Sort(paths)
	return prose.Advice{What: fmt.Sprintf("files of the project in %s belong to root, so that you cannot use it", f.Dir),
		Fix: fmt.Sprintf("run this command:\n    sudo chown -R %s: %s", terminal.ShellWord(machine.UserName()), terminal.ShellWords(paths)), Cause: fs.ErrPermission}
}

// ownedBy reports whether a file exists and belongs to a user.
func ownedBy(path string, uid int) bool {
	var s unix.Stat_t
	return unix.Lstat(path, &s) == nil && int(s.Uid) == uid
}
