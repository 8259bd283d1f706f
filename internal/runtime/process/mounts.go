package process

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/prose"
)

// EnterCommand is the hidden command of cosplay that calls Enter.
const EnterCommand = "enter-session"

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
