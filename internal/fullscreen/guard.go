// Package fullscreen is the whole of a terminal for a while: it is as before afterwards, also if the process is killed.
package fullscreen

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// GuardCommand is the command that serves as a guard: it calls ServeGuard.
const GuardCommand = "guard-terminal"

// guard starts a process that restores the terminal if this process ends before it calls release, as after kill -9.
// Without a terminal that can be opened there is no guard, and no error.
func guard() (release func(), err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return func() {}, nil
	}
	defer func() { _ = tty.Close() }()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the cosplay binary to guard the terminal: %w", err)
	}
	command := exec.Command(self, GuardCommand)
	command.ExtraFiles = []*os.File{tty}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal for this process or its terminal ends it
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", err)
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("guarding the terminal: %w", command.Wait())
	}
	return func() {
		_, _ = alive.Write([]byte{1})
		_ = alive.Close()
		_ = command.Wait()
	}, nil
}

// ServeGuard is a guard's work: standard input ends with the process that it guards, and file 3 is the terminal.
func ServeGuard() error {
	const tty = 3
	before, err := unix.IoctlGetTermios(tty, readTermios)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	if n, _ := os.Stdin.Read(make([]byte, 1)); n > 0 {
		return nil // released
	}
	// A shell that has its own settings by now keeps them: unlike a full screen, its line editor takes signals.
	const raw = unix.ICANON | unix.ECHO | unix.ISIG
	if now, err := unix.IoctlGetTermios(tty, readTermios); err == nil && now.Lflag&raw == 0 {
		_ = unix.IoctlSetTermios(tty, writeTermios, before)
	}
	_, err = unix.Write(tty, []byte(restored))
	return err
}
