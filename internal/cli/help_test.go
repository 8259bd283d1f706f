package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelp: every command lists its exit codes, and no line is wider than a screen except
// commands to copy.
func TestHelp(t *testing.T) {
	const screen, shortest = 100, 80
	var visit func(cmd *cobra.Command, path ...string)
	visit = func(cmd *cobra.Command, path ...string) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		if line := "  force-unlock " + cmd.Short; len(path) == 1 && len(line) > shortest {
			t.Errorf("%v: %q has no room in the list of commands", path, cmd.Short)
		}
		var out, mistakes strings.Builder
		if code := Main(append(path, "--help"), Streams{In: strings.NewReader(""), Out: &out, Err: &mistakes}); code != 0 || mistakes.Len() > 0 {
			t.Errorf("%v: exit code %d, %s", path, code, &mistakes)
		}
		if !cmd.HasSubCommands() && strings.Count(out.String(), "Exit codes: ") != 1 {
			t.Errorf("%v: not one line of exit codes in\n%s", path, &out)
		}
		for line := range strings.Lines(out.String()) {
			if utf8.RuneCountInString(line) > screen+1 && !strings.HasPrefix(line, "  cosplay ") {
				t.Errorf("%v: too wide: %s", path, line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name())...)
		}
	}
	inv := &invocation{Streams: Streams{Out: &strings.Builder{}}}
	visit(inv.root())
}
