package render

import (
	"testing"

	"github.com/creack/pty"
)

// TestDumbTerminal: a terminal gets colour, and one that knows no escapes gets none.
func TestDumbTerminal(t *testing.T) {
	terminal, end, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer end.Close()
	t.Setenv("NO_COLOR", "")
	for kind, want := range map[string]bool{"dumb": false, "xterm": true} {
		t.Setenv("TERM", kind)
		if got := Detect(end, false).Color; got != want {
			t.Errorf("TERM=%s: colour is %t", kind, got)
		}
	}
}
