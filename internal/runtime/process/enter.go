package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
)

// Enter mounts the libraries of the session in dir over the system's, and executes the program at path. It must run
// in a mount namespace that is its own. It returns only if that fails, after it has written the error to the
// descriptor report, which a successful execve closes.
func Enter(report int, dir, path string, argv []string) {
	unix.CloseOnExec(report)
	goruntime.LockOSThread() // capabilities belong to a thread
	var failed entry
	if err := mountSession(dir); err != nil {
		failed = entry{Refused: !errors.Is(err, fs.ErrNotExist), Why: err.Error()}
	} else if err := dropCapabilities(); err != nil {
		failed.Why = err.Error()
	} else {
		errors.As(syscall.Exec(path, argv, os.Environ()), &failed.Exec)
	}
	_ = json.NewEncoder(os.NewFile(uintptr(report), "report")).Encode(failed)
}

// dropCapabilities removes what startPrivately gave a user who is not root.
func dropCapabilities() error {
	if os.Geteuid() == 0 {
		return nil
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// layer is what a session puts in front of the loader's folder. The facades are written for paths in that folder,
// because another user may not enter the session's folder.
type layer struct {
	folder string         // the loader's
	files  map[string]int // files to mount, by path below needs: descriptors, because the mounts hide their paths
}

// needs is the folder, in the loader's, of the files that the facades need.
const needs = "cosplay"

// mountSession replaces the loader's folder by an overlay with the facades in front, and every other library of their
// names that the loader knows by its facade.
func mountSession(dir string) error {
	folder, err := loaderFolder()
	if err != nil {
		return err
	}
	others := known(os.ReadFile("/etc/ld.so.cache"))
	l := layer{folder: folder, files: map[string]int{}}
	mounted := []string{disguise.UsageFile}
	for _, library := range libraries {
		mounted = append(mounted, filepath.Join("real", library))
	}
	for _, name := range mounted {
		fd, err := openPath(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // without a CUDA driver there is neither its facade nor a usage file
		}
		if err != nil {
			return err
		}
		l.files[name] = fd
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := l.mount(filepath.Join(dir, disguise.FiguresFile)); err != nil {
		return err
	}
	for _, path := range others {
		facade := filepath.Join(folder, filepath.Base(path))
		if _, err := os.Stat(path); err != nil || l.files[filepath.Join("real", filepath.Base(path))] == 0 {
			continue
		}
		if err := mount(facade, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// libraries are those that have a facade.
var libraries = []string{driver.NVML, driver.CUDA}

// mount mounts the overlay. A file system in memory below it holds the layer.
func (l layer) mount(figures string) error {
	content, err := os.ReadFile(figures)
	if err != nil {
		return err
	}
	behind, err := openPath(l.folder)
	if err != nil {
		return err
	}
	below, err := mountsBelow(l.folder)
	if err != nil {
		return err
	}
	if err := mount("tmpfs", l.folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	if err := l.fill(content); err != nil {
		return err
	}
	front, err := openPath(l.folder)
	if err != nil {
		return err
	}
	if err := mount("overlay", l.folder, "overlay", 0, "lowerdir="+descriptor(front)+":"+descriptor(behind)); err != nil {
		return err
	}
	for path, fd := range below {
		if err := mount(descriptor(fd), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	for name, fd := range l.files {
		if err := mount(descriptor(fd), filepath.Join(l.folder, needs, name), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the layer: the facades, the figures file, and an empty file for each one to mount.
func (l layer) fill(figures []byte) error {
	defer unix.Umask(unix.Umask(0o022)) // every user must read them
	dir := filepath.Join(l.folder, needs)
	if err := os.MkdirAll(filepath.Join(dir, "real"), 0o755); err != nil {
		return err
	}
	files := map[string][]byte{filepath.Join(dir, disguise.FiguresFile): figures}
	for name := range l.files {
		files[filepath.Join(dir, name)] = nil
	}
	for _, library := range libraries {
		if l.files[filepath.Join("real", library)] == 0 {
			continue
		}
		facade, err := disguise.Facade(library, filepath.Join(dir, "real", library), filepath.Join(dir, disguise.FiguresFile))
		if err != nil {
			return err
		}
		path := filepath.Join(l.folder, library)
		files[path] = facade
		if err := os.Symlink(library, disguise.Short(path)); err != nil {
			return err
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o755); err != nil { //nolint:forbidigo // in a mount that ends with the command
			return err
		}
	}
	return nil
}

// loaderFolder is the folder in which the loader of this machine searches without a variable.
func loaderFolder() (string, error) {
	folders := cdi.LoaderFolders()
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "libc.so.6")); err == nil {
			return folder, nil
		}
	}
	return "", fmt.Errorf("libc.so.6 is in none of %s: %w", strings.Join(folders, ", "), fs.ErrNotExist)
}

// mountsBelow opens what is mounted below a folder, such as the driver's libraries in a container: an overlay leaves
// it out. The session's own libraries stay in front.
func mountsBelow(folder string) (map[string]int, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	below := map[string]int{}
	for line := range strings.Lines(string(text)) {
		path := strings.Fields(line)[4]
		name, is := strings.CutPrefix(path, folder+"/")
		if !is || slices.Contains(libraries, name) || slices.Contains(libraries, name+".1") {
			continue
		}
		if below[path], err = openPath(path); err != nil {
			return nil, err
		}
	}
	return below, nil
}

// known lists the paths in the loader's cache of libraries that have a facade. Paths in the cache end with a zero byte.
func known(cache []byte, err error) []string {
	var paths []string
	for text := range bytes.SplitSeq(cache, []byte{0}) {
		if path := string(text); err == nil && filepath.IsAbs(path) && slices.Contains(libraries, filepath.Base(path)) {
			paths = append(paths, path)
		}
	}
	return paths
}

func openPath(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return &fs.PathError{Op: "mount", Path: target, Err: err}
	}
	return nil
}
