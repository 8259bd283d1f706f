package agent

import (
	"os/exec"
	"syscall"
)

// detach takes the child out of the terminal's process group: Ctrl-C is for the
// parent, which then lets the child finish its step.
func detach(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
