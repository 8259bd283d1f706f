package sshd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// lastWords is how long the server waits for more output after the process on the
// terminal has ended, while other processes keep the terminal open.
var lastWords = 100 * time.Millisecond

// endOfFile ends the input of a terminal.
const endOfFile = 4

// terminal is the pseudo-terminal of a session. A nil one does nothing.
type terminal struct {
	name   string // as in TERM
	master *os.File
	tty    *os.File
	ending atomic.Bool
}

type windowSize struct{ Columns, Rows, Width, Height uint32 }

func (s *session) openTerminal(payload []byte) bool {
	var wanted struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if s.term != nil || s.started || ssh.Unmarshal(payload, &wanted) != nil {
		return false
	}
	master, tty, err := pty.Open()
	if err != nil {
		fmt.Fprintf(s.ch.Stderr(), "cosplay: no terminal: %v; is /dev/pts mounted?\r\n", err)
		return false
	}
	defer shut(master)
	polled, err := pollable(master)
	if err != nil {
		shut(tty)
		return false
	}
	account := s.server.Launcher.Account
	_ = tty.Chown(int(account.UID), -1) // fails if the process runs as the user, who then already owns it
	_ = tty.Chmod(0o620)
	setModes(tty, wanted.Modes)
	s.term = &terminal{name: wanted.Term, master: polled, tty: tty}
	s.term.setSize(windowSize{wanted.Columns, wanted.Rows, wanted.Width, wanted.Height})
	return true
}

// pollable is a second handle of a file whose reads can have a deadline; that of pty blocks.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (t *terminal) resize(payload []byte) bool {
	var size windowSize
	return t != nil && ssh.Unmarshal(payload, &size) == nil && t.setSize(size)
}

func (t *terminal) setSize(size windowSize) bool {
	control, err := t.master.SyscallConn()
	if err != nil {
		return false
	}
	ws := &unix.Winsize{Row: uint16(size.Rows), Col: uint16(size.Columns), Xpixel: uint16(size.Width), Ypixel: uint16(size.Height)}
	var failed error
	err = control.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, ws) })
	return err == nil && failed == nil
}

// onTerminal runs a process with the terminal as its controlling one.
func (s *session) onTerminal(cmd *exec.Cmd) error {
	t := s.term
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.tty, t.tty, t.tty
	cmd.SysProcAttr.Setctty = true
	if err := cmd.Start(); err != nil {
		return err
	}
	shut(t.tty) // it is the process's now
	s.cmd = cmd
	go func() {
		if _, err := io.Copy(t.master, s.ch); err == nil {
			_, _ = t.master.Write([]byte{endOfFile}) // fails if the process has ended
		}
	}()
	var output sync.WaitGroup
	output.Go(func() { t.copyTo(s.ch) })
	go s.finish(&output)
	return nil
}

// copyTo reads until no process has the terminal open, or no output has come for a while
// after drain.
func (t *terminal) copyTo(w io.Writer) {
	buffer := make([]byte, 32<<10)
	silent := false
	for {
		n, err := t.master.Read(buffer)
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late { // this goroutine may have been late, so check for output
			n = t.pending(buffer)
		}
		if n > 0 {
			late = false
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
		} else if err != nil && (!late || silent) {
			return
		}
		if silent = late; t.ending.Load() {
			_ = t.master.SetReadDeadline(time.Now().Add(lastWords)) // a closed one ends the next read
		}
	}
}

// pending reads available output, also after the deadline.
func (t *terminal) pending(buffer []byte) (n int) {
	control, err := t.master.SyscallConn()
	if err == nil {
		err = control.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buffer) })
	}
	if err != nil {
		return 0
	}
	return max(n, 0)
}

func (t *terminal) drain() {
	t.ending.Store(true)
	_ = t.master.SetReadDeadline(time.Now().Add(lastWords))
}

// close closes the terminal, which sends SIGHUP to the processes that still use it.
func (t *terminal) close() {
	if t != nil {
		shut(t.master)
		shut(t.tty)
	}
}
