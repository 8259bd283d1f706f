package fullscreen_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

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

// TestScreen: a terminal gets the lines that have changed, and is afterwards as before.
func TestScreen(t *testing.T) {
	terminal, keys, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close(); _ = keys.Close() }()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 12, Cols: 60}); err != nil {
		t.Fatal(err)
	}
	mode := func() *term.State {
		now, err := term.GetState(int(keys.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before, out := mode(), &pen{fd: keys.Fd()}
	screen, err := fullscreen.Open(keys, out)
	if err != nil {
		t.Fatal(err)
	}
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
	const entered = "\x1b[?1049h\x1b[?25l\x1b[?7l"
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
	if got := out.written(); got != "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l" || !reflect.DeepEqual(mode(), before) {
		t.Errorf("it ended with %q and %+v; before: %+v", got, mode(), before)
	}
}
