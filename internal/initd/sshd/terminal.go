package sshd

import (
	"encoding/binary"
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

// pollable is a second handle of a file that waits without a thread, and whose reads can have a deadline. That of pty
// blocks, and so do the standard streams.
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

// copyTo reads until no process has the terminal open, or no output has come for a while after drain.
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

// Opcodes of terminal modes, RFC 4254 section 8 and RFC 8160.
var (
	characters = map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
		8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT,
	}
	inputFlags = map[byte]uint32{
		30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR,
		36: unix.ICRNL, 37: unix.IUCLC, 38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
	}
	localFlags = map[byte]uint32{
		50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK, 56: unix.ECHONL,
		57: unix.NOFLSH, 58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
	}
	outputFlags = map[byte]uint32{
		70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET,
	}
)

// noCharacter disables a key.
const noCharacter = 255

// setModes sets the terminal modes that the client requests, and ignores unknown ones.
func setModes(tty *os.File, modes string) {
	state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	for rest := []byte(modes); len(rest) >= 5 && rest[0] > 0 && rest[0] < 160; rest = rest[5:] {
		applyMode(state, rest[0], binary.BigEndian.Uint32(rest[1:5]))
	}
	_ = unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, state) // otherwise the usual modes stay
}

func applyMode(state *unix.Termios, opcode byte, value uint32) {
	if i, ok := characters[opcode]; ok {
		if state.Cc[i] = byte(value); value == noCharacter {
			state.Cc[i] = 0
		}
		return
	}
	set := func(word *uint32, flag uint32) {
		if *word &^= flag; value != 0 {
			*word |= flag
		}
	}
	set(&state.Iflag, inputFlags[opcode])
	set(&state.Lflag, localFlags[opcode])
	set(&state.Oflag, outputFlags[opcode])
}
