package process

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/driver"
	"cosplay/internal/cdi"
	"cosplay/internal/disguise"
	"cosplay/internal/prose"
)

// entry is what Enter reports if the program does not run.
type entry struct {
	Refused bool          // the kernel refused a mount
	Exec    syscall.Errno // of execve; 0 if it was not called
	Why     string        // the error otherwise
}

// startPrivately starts a command in a mount namespace in which the libraries of the session in dir are at the
// system's paths. The process starts as cosplay, mounts, and executes the command: pid, signals and exit code are the
// command's. The kernel removes the namespace with its last process. The exit code belongs to the error.
func startPrivately(command *exec.Cmd, dir string) (code int, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 1, err
	}
	reads, writes, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	defer reads.Close()
	// Not in ExtraFiles, which would replace a descriptor that the user passes to the command.
	report := writes.Fd()
	if _, err := unix.FcntlInt(report, unix.F_SETFD, 0); err != nil {
		return 1, err
	}
	argv := command.Args
	command.Args = append([]string{os.Args[0], EnterCommand, "--", strconv.Itoa(int(report)), dir, command.Path}, argv...)
	command.Path = "/proc/self/exe"
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // otherwise lost when the child executes cosplay
	}
	err = command.Start()
	command.Args = argv
	_ = writes.Close()
	if _, missing := os.Stat(command.Dir); err != nil && missing == nil {
		return 1, notPermitted(err)
	}
	if err != nil {
		return notRun(command, err)
	}
	text, _ := io.ReadAll(reads) // ends when the program runs
	if len(text) == 0 {
		return 0, nil
	}
	_ = command.Wait()
	var failed entry
	if err := json.Unmarshal(text, &failed); err != nil {
		return 1, err
	}
	switch {
	case failed.Refused:
		return 1, notPermitted(errors.New(failed.Why))
	case failed.Exec != 0:
		return notRun(command, failed.Exec)
	}
	return 1, errors.New(failed.Why)
}

// notPermitted is the error if the kernel refuses the namespace or a mount in it.
func notPermitted(err error) error {
	fix := "run cosplay as root, or permit user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, " +
		"kernel.apparmor_restrict_unprivileged_userns)"
	if os.Geteuid() == 0 {
		fix = "run cosplay with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN --security-opt apparmor=unconfined)"
	}
	return prose.Advice{What: "--private-mounts needs a mount namespace with an overlay, which the kernel refused: " + err.Error(),
		Fix: fix + `; without the right to do so, run sessions in containers (runtime = "docker" in the host block)`, Cause: err}
}

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
// because another user may not enter the session's folder. After its first error it does nothing more.
type layer struct {
	folder string         // the loader's
	files  map[string]int // files to mount, by path below needs: descriptors, because the mounts hide their paths
	err    error
}

// needs is the folder, in the loader's, of the files that the facades need.
const needs = "cosplay"

// libraries are those that have a facade.
var libraries = []string{driver.NVML, driver.CUDA}

// realFile is the path, in a folder with the disguise, of the driver's own library.
func realFile(library string) string { return filepath.Join(disguise.RealDir, library) }

// mountSession replaces the loader's folder by an overlay with the facades in front, and every other library of their
// names that the loader knows by its facade.
func mountSession(dir string) error {
	folder, err := loaderFolder()
	if err != nil {
		return err
	}
	others := known(os.ReadFile("/etc/ld.so.cache"))
	l := layer{folder: folder, files: map[string]int{}}
	for _, name := range append(prose.Each(libraries, realFile), disguise.UsageFile) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue // without a CUDA driver there is neither its facade nor a usage file
		}
		l.files[name] = l.open(path)
	}
	l.mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	l.cover(filepath.Join(dir, disguise.FiguresFile))
	for _, path := range others {
		if _, err := os.Stat(path); err == nil && l.files[realFile(filepath.Base(path))] != 0 {
			l.mount(filepath.Join(folder, filepath.Base(path)), path, "", unix.MS_BIND, "")
		}
	}
	return l.err
}

// cover mounts the overlay. A file system in memory below it holds the layer.
func (l *layer) cover(figures string) {
	content, err := os.ReadFile(figures)
	l.err = cmp.Or(l.err, err)
	behind, below := l.open(l.folder), l.mountsBelow()
	l.mount("tmpfs", l.folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
	if l.err == nil {
		l.err = l.fill(content)
	}
	l.mount("overlay", l.folder, "overlay", 0, "lowerdir="+descriptor(l.open(l.folder))+":"+descriptor(behind))
	for path, fd := range below {
		l.mount(descriptor(fd), path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	for name, fd := range l.files {
		l.mount(descriptor(fd), filepath.Join(l.folder, needs, name), "", unix.MS_BIND, "")
	}
}

// fill writes the layer: the facades, the figures file, and an empty file for each one to mount.
func (l *layer) fill(figures []byte) error {
	defer unix.Umask(unix.Umask(0o022)) // every user must read them
	dir := filepath.Join(l.folder, needs)
	if err := os.MkdirAll(filepath.Join(dir, disguise.RealDir), 0o755); err != nil {
		return err
	}
	figuresPath := filepath.Join(dir, disguise.FiguresFile)
	files := map[string][]byte{figuresPath: figures}
	for name := range l.files {
		files[filepath.Join(dir, name)] = nil
	}
	for _, library := range libraries {
		if l.files[realFile(library)] == 0 {
			continue
		}
		facade, err := disguise.Facade(library, filepath.Join(dir, realFile(library)), figuresPath)
		path := filepath.Join(l.folder, library)
		files[path] = facade
		if err := errors.Join(err, os.Symlink(library, disguise.Short(path))); err != nil {
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

// mountsBelow opens what is mounted below the folder, such as the driver's libraries in a container: an overlay leaves
// it out. The session's own libraries stay in front.
func (l *layer) mountsBelow() map[string]int {
	text, err := os.ReadFile("/proc/self/mountinfo")
	l.err = cmp.Or(l.err, err)
	below := map[string]int{}
	for line := range strings.Lines(string(text)) {
		path := strings.Fields(line)[4]
		name, is := strings.CutPrefix(path, l.folder+"/")
		if is && !slices.Contains(libraries, name) && !slices.Contains(libraries, name+".1") {
			below[path] = l.open(path)
		}
	}
	return below
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

func (l *layer) open(path string) (fd int) {
	if l.err != nil {
		return 0
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		l.err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd
}

func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

func (l *layer) mount(source, target, kind string, flags uintptr, data string) {
	if l.err != nil {
		return
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		l.err = &fs.PathError{Op: "mount", Path: target, Err: err}
	}
}
