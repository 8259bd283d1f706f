package fullscreen_test

import (
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"cosplay/internal/fullscreen"
)

// TestMain serves as the guard that a screen starts where the tests have a terminal.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fullscreen.GuardCommand {
		if fullscreen.ServeGuard() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// pen is a terminal that keeps what was written since the last look.
type pen struct {
	strings.Builder
	fd uintptr
}

func (p *pen) Fd() uintptr { return p.fd }

func (p *pen) written() string {
	defer p.Reset()
	return p.String()
}

// open opens a screen on a terminal of 12 lines and 60 columns.
func open(t *testing.T) (screen *fullscreen.Screen, out *pen, mode func() *term.State) {
	t.Helper()
	terminal, keys, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close(); _ = keys.Close() })
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 12, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	out = &pen{fd: keys.Fd()}
	if screen, err = fullscreen.Open(keys, out); err != nil {
		t.Fatal(err)
	}
	return screen, out, func() *term.State {
		now, err := term.GetState(int(keys.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
}

const (
	entered  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	restored = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// TestScreen: a terminal gets the lines that have changed, and is afterwards as before.
func TestScreen(t *testing.T) {
	screen, out, mode := open(t)
	before := mode()
	if columns, lines := screen.Size(); columns != 60 || lines != 12 {
		t.Errorf("it has %d columns and %d lines", columns, lines)
	}
	draw := func(text, want string) {
		t.Helper()
		if err := screen.Draw(text); err != nil {
			t.Fatal(err)
		}
		if got := out.written(); got != want {
			t.Errorf("%q was written for %q, want %q", got, text, want)
		}
	}
	draw("a\nb\nc", entered+"\x1b[2J\x1b[1;1H\x1b[2Ka\x1b[2;1H\x1b[2Kb\x1b[3;1H\x1b[2Kc")
	draw("a\nb\nc", "")
	draw("a\nB\nc", "\x1b[2;1H\x1b[2KB")
	draw("a", "\x1b[2;1H\x1b[J")
	screen.Forget()
	draw("a", "\x1b[2J\x1b[1;1H\x1b[2Ka")
	if reflect.DeepEqual(mode(), before) {
		t.Errorf("the terminal does not give each key: %+v", before)
	}
	if err := screen.Close(); err != nil {
		t.Error(err)
	}
	if got := out.written(); got != restored || !reflect.DeepEqual(mode(), before) {
		t.Errorf("it ended with %q and %+v; before: %+v", got, mode(), before)
	}
}

// TestPanic: what Go prints of a panic is on the terminal that the user sees.
func TestPanic(t *testing.T) {
	screen, out, mode := open(t)
	before := mode()
	if err := screen.Draw("a"); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if cause := recover(); cause != "a fault" || !strings.HasSuffix(out.written(), restored) || !reflect.DeepEqual(mode(), before) {
				t.Errorf("after a panic with %v the terminal is %+v; before: %+v", cause, mode(), before)
			}
		}()
		defer screen.ClosePanicking()
		panic("a fault")
	}()
}

// TestChanged: another size, and a shell that continues the process, have everything drawn again.
func TestChanged(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGWINCH, syscall.SIGCONT} {
		changed := make(chan bool, 1)
		stop := fullscreen.Changed(func() { changed <- true })
		if err := syscall.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Errorf("%s changes nothing", signal)
		}
		stop()
	}
}
