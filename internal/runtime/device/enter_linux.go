package device

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/initd"
	"cosplay/internal/proc"
	"cosplay/internal/prose"
)

// namespaces are those of a container that its programs see; the mount namespace is the last, since it takes /proc away.
var namespaces = []struct {
	name string
	kind int
}{{"cgroup", unix.CLONE_NEWCGROUP}, {"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"net", unix.CLONE_NEWNET}, {"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS}}

// start starts a command in a container, with no more rights than its first process has: in its namespaces and control
// groups, with its capabilities, and without new privileges where it has none. A filter of system calls that the engine has
// set cannot be copied.
func (c container) start(command *exec.Cmd) (err error) {
	onThread(func() { err = c.startHere(command) })
	return err
}

// onThread calls a function on a thread that ends with it. That is not the process's first, by which the kernel shows the
// process.
func onThread(call func()) {
	called := make(chan struct{})
	go func() {
		goruntime.LockOSThread() // for ever
		if unix.Gettid() == os.Getpid() {
			onThread(call) // on another, as long as this goroutine has the first
			goruntime.UnlockOSThread()
		} else {
			call()
		}
		close(called)
	}()
	<-called
}

// startHere changes this thread into one of the container's, and starts the command from it.
func (c container) startHere(command *exec.Cmd) error {
	rights, err := c.rights()
	if err != nil {
		return err
	}
	if err := c.sameUsers(); err != nil {
		return err
	}
	group, err := c.joinGroups()
	if err != nil {
		return err
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &rights.user} // no program of a container gets the caller's terminal
	if group != nil {
		defer group.Close()
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // else the mount namespace would be that of all threads
		return err
	}
	for _, n := range namespaces {
		if err := c.join(n.name, n.kind); err != nil {
			return fmt.Errorf("entering the %s namespace of process %d: %w", n.name, c.pid, err)
		}
	}
	for capability := range uint64(64) {
		if rights.bounding>>capability&1 == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0) // the kernel knows fewer
		}
	}
	if rights.noNew {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	if command.Path, err = lookUp(command.Args[0], command.Env); err != nil {
		return err
	}
	command.Err = nil
	return command.Start()
}

func (c container) join(name string, kind int) error {
	file, err := os.Open(c.file("ns/" + name))
	if errors.Is(err, fs.ErrNotExist) { // an old kernel has none for control groups
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Setns(int(file.Fd()), kind)
}

// sameUsers refuses a container with a user namespace, which no program with threads can enter.
func (c container) sameUsers() error {
	own, err := os.Readlink(proc.Root + "/self/ns/user")
	its, failed := os.Readlink(c.file("ns/user"))
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if own != its {
		return prose.Advice{What: "the container has a user namespace, which cosplay cannot enter", Fix: "run the command by its engine, like: podman exec"}
	}
	return nil
}

// rights are those of a container's first process.
type rights struct {
	user     syscall.Credential
	bounding uint64 // capabilities that its programs can get
	noNew    bool   // privileges
}

func (c container) rights() (r rights, err error) {
	status, err := os.ReadFile(c.file("status"))
	if err != nil {
		return r, err
	}
	fields := map[string][]string{}
	for line := range strings.Lines(string(status)) {
		name, values, _ := strings.Cut(line, ":")
		fields[name] = strings.Fields(values)
	}
	number := func(name string, at, base int) uint64 {
		if len(fields[name]) <= at {
			err = fmt.Errorf("%s has no %s", c.file("status"), name)
			return 0
		}
		n, failed := strconv.ParseUint(fields[name][at], base, 64)
		err = errors.Join(err, failed)
		return n
	}
	r.user = syscall.Credential{Uid: uint32(number("Uid", 1, 10)), Gid: uint32(number("Gid", 1, 10))}
	for i := range fields["Groups"] {
		r.user.Groups = append(r.user.Groups, uint32(number("Groups", i, 10)))
	}
	r.bounding, r.noNew = number("CapBnd", 0, 16), number("NoNewPrivs", 0, 10) == 1
	return r, err
}

// groups is the folder of the control groups: of version 2, or of each hierarchy of version 1.
const groups = "/sys/fs/cgroup"

// joinGroups moves this thread to the control groups of a container. Of version 2, in which a process is moved as a whole, it
// returns the group, for the start.
func (c container) joinGroups() (unified *os.File, err error) {
	content, err := os.ReadFile(c.file("cgroup"))
	if err != nil {
		return nil, err
	}
	_, first := os.Stat(groups + "/cgroup.controllers") // an error: version 1
	for line := range strings.Lines(strings.TrimSpace(string(content))) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		controllers := strings.TrimPrefix(parts[1], "name=")
		switch {
		case controllers == "" && first == nil:
			return os.Open(filepath.Join(groups, parts[2]))
		case controllers == "": // beside groups of version 1, it has no controllers
		default:
			if err := moveThread(filepath.Join(groups, controllers, parts[2], "tasks")); err != nil {
				return nil, fmt.Errorf("entering the control groups of process %d: %w", c.pid, err)
			}
		}
	}
	return nil, nil
}

// moveThread moves this thread to a control group. A hierarchy that is not mounted here is left out.
func moveThread(tasks string) error {
	file, err := os.OpenFile(tasks, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(file, unix.Gettid())
	return errors.Join(err, file.Close())
}

// lookUp finds a program in the folders of PATH among variables, on the files that this thread sees.
func lookUp(name string, variables []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, v := range variables {
		if value, is := strings.CutPrefix(v, "PATH="); is {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join("/", folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no command %q in the container: %w", name, fs.ErrNotExist)
}

// look finds what a process sees where a device mounts a session's folder. No link of the container is followed: it could
// lead to the folder from anywhere.
func (c *container) look() bool {
	root, err := os.Open(c.file("root"))
	if err != nil {
		return false
	}
	defer root.Close()
	fd, err := unix.Openat2(int(root.Fd()), strings.TrimPrefix(initd.Dir, "/"),
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return false
	}
	there := os.NewFile(uintptr(fd), initd.Dir)
	defer there.Close()
	c.folder, err = there.Stat()
	return err == nil
}
