package terminal_test

import (
	"os/exec"
	"testing"

	"cosplay/internal/terminal"
)

// TestShellWord checks that a shell reads the original word, and that the quoted word has no control characters.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"fleet.plan": "fleet.plan", "my plan": "'my plan'", "it's": `"it's"`, "": "''", "!": `\!`, "it's!": `"it's"\!`, "a!=b c": `a\!='b c'`, "Größe": "Größe",
		"x\nError: it's \\n": `$'x\nError: it\'s \\n'`, "\x1b[1m": `$'\x1b[1m'`, "\xff7": `$'\xff7'`, "\u202ea\u00a0b": `$'\u202ea\u00a0b'`,
	} {
		got := terminal.ShellWord(word)
		if got != want {
			t.Errorf("ShellWord(%q) = %s, want %s", word, got, want)
		}
		if read, err := exec.Command("bash", "-c", "printf %s "+got).Output(); err != nil || string(read) != word {
			t.Errorf("%v: a shell reads %s as %q, not as %q", err, got, read, word)
		}
	}
}
