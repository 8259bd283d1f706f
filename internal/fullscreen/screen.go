package fullscreen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Screen is all of a terminal. It writes the lines that have changed and nothing else, and keeps no cells: a screen that
// shows a reading each second may cost next to nothing. One goroutine draws.
type Screen struct {
	keys  *os.File
	out   Terminal
	guard func() // ends it

	before *term.State // of the terminal, while the screen has it; nil for none
	drawn  []string    // lines of the terminal; nil where it has to be cleared
}

// Terminal is where a screen is shown.
type Terminal interface {
	io.Writer
	Fd() uintptr
}

// entered begins a screen: the alternate one, without a cursor, on which a long line does not continue on the next.
// restored ends it, with colours as they were.
const (
	entered  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	restored = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Open takes a terminal at the first Draw, and reads keys one by one from then on. The caller closes the screen.
func Open(keys *os.File, out Terminal) (*Screen, error) {
	release, err := guard()
	if err != nil {
		return nil, err
	}
	return &Screen{keys: keys, out: out, guard: release}, nil
}

// Draw shows a text, a line of it on each line of the terminal.
func (s *Screen) Draw(text string) (err error) {
	var b strings.Builder
	if s.before == nil {
		if s.before, err = term.MakeRaw(int(s.keys.Fd())); err != nil {
			return fmt.Errorf("reading keys from the terminal: %w", err)
		}
		b.WriteString(entered)
	}
	if s.drawn == nil {
		b.WriteString("\x1b[2J")
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i >= len(s.drawn) || s.drawn[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, line)
		}
	}
	if len(lines) < len(s.drawn) {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[J", len(lines)+1)
	}
	if s.drawn = lines; b.Len() > 0 {
		_, err = io.WriteString(s.out, b.String())
	}
	return err
}

// Size is that of the terminal, in columns and lines. A terminal that does not say it has 80 and 24.
func (s *Screen) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// Changed calls a function when the terminal has another size, or the shell continues the process. It then draws
// everything again, after Forget.
func Changed(f func()) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-signals:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

// Forget makes the next Draw clear the terminal first.
func (s *Screen) Forget() { s.drawn = nil }

// Suspend gives the terminal back and stops the process until the shell continues it. The next Draw takes the terminal
// again. Without a shell that can continue it, the kernel does not stop it.
func (s *Screen) Suspend() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	err := errors.Join(s.leave(), syscall.Kill(0, syscall.SIGTSTP))
	select { // the signal arrives while this goroutine runs on
	case <-continued:
	case <-time.After(time.Second):
	}
	return err
}

// Close gives the terminal back.
func (s *Screen) Close() error {
	defer s.guard()
	return s.leave()
}

func (s *Screen) leave() error {
	if s.before == nil {
		return nil
	}
	_, err := io.WriteString(s.out, restored)
	err = errors.Join(err, term.Restore(int(s.keys.Fd()), s.before))
	s.before, s.drawn = nil, nil
	return err
}

// ClosePanicking is deferred where another goroutine than that of Close can panic: what Go prints then is on the terminal
// that the user sees.
func (s *Screen) ClosePanicking() {
	if cause := recover(); cause != nil {
		_ = s.Close()
		panic(cause)
	}
}
