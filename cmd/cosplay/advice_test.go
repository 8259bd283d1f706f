package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anmitsu/go-shlex"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cosplay/internal/cli"
)

// adviceStart is what precedes a command that cosplay prints for the user to type.
var adviceStart = regexp.MustCompile(`(?:Next|[Tt]o [a-z][^.:;\n]{0,60}|\(or): +(cosplay .*)`)

// advised returns the commands that an output tells the user to type, without the breaks of its lines.
func advised(output string) []string {
	var all []string
	lines := strings.Split(output, "\n")
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	for i, line := range lines {
		m := adviceStart.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		text, inside := line[m[2]:], m[0] > indent(line)
		for _, next := range lines[i+1:] {
			deeper := indent(next) > indent(line)
			if strings.TrimSpace(next) == "" || !deeper && (!inside || indent(next) == 0 || indent(next) < indent(line)) {
				break
			}
			text += " " + strings.TrimSpace(next)
		}
		next := line[m[0]] == 'N'
		all = append(all, commandIn(text, !next))
		if alternative := adviceStart.FindStringSubmatch(text); next && alternative != nil {
			all = append(all, commandIn(alternative[1], true))
		}
	}
	return all
}

// commandIn is the command that a text begins with. In a sentence it ends with a punctuation mark.
func commandIn(text string, sentence bool) string {
	text, _, _ = strings.Cut(text, " (or: ")
	words := strings.Fields(text)
	for i, word := range words {
		if sentence && strings.ContainsAny(word[len(word)-1:], ".,;)") {
			words[i] = strings.TrimRight(word, ".,;)")
			return strings.Join(words[:i+1], " ")
		}
	}
	return strings.Join(words, " ")
}

// checkAdvice reads a command as cosplay does: its name, flags and arguments, and what they may not be together.
func checkAdvice(command string) error {
	words, err := shlex.Split(command, true)
	if err != nil {
		return fmt.Errorf("%q cannot be read: %w", command, err)
	}
	if redirected := slices.Index(words, ">"); redirected > 0 {
		words = words[:redirected]
	}
	cmd, args, err := cli.Command().Find(words[1:])
	if err == nil && cmd.HasSubCommands() {
		err = fmt.Errorf("%s has no such command", cmd.CommandPath())
	}
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		return fmt.Errorf("cosplay prints %q, and refuses it: %w", command, err)
	}
	return nil
}

// heard is a standard stream that keeps what is written to it.
type heard struct {
	*os.File
	kept bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.kept.Write(p)
	return h.File.Write(p)
}

// check reports the first command among what was written that cosplay refuses.
func (h *heard) check() error {
	for _, command := range advised(h.kept.String()) {
		if err := checkAdvice(command); err != nil {
			return err
		}
	}
	return nil
}

// listens reports whether the advice of a command can be read: no program of a session writes to its streams.
func listens(cmd *cobra.Command) bool {
	programs := []string{"exec", "run", "fits", "ssh", "logs", "watch", "console", "build", "completion", "help", "agent"}
	return cmd.HasParent() && !slices.Contains(programs, cmd.Name()) && !term.IsTerminal(int(os.Stdout.Fd()))
}

// TestAdvised finds commands in outputs, also over several lines, and rejects those that cosplay would refuse.
func TestAdvised(t *testing.T) {
	output := `Plan: 1 to create.
Next: cosplay apply --exclude w-1 --replace
      'a b'
Error: no room. To take it down: cosplay destroy --chdir /a/b.c
  --state x. Or wait.
    held by a run
      to take it down: cosplay reset --chdir
        /tmp/x
    held by another
Next: cosplay ssh w-0   (or: cosplay ssh-config > ~/.ssh/cosplay)
`
	want := []string{"cosplay apply --exclude w-1 --replace 'a b'", "cosplay destroy --chdir /a/b.c --state x", "cosplay reset --chdir /tmp/x",
		"cosplay ssh w-0", "cosplay ssh-config > ~/.ssh/cosplay"}
	got := advised(output)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	for _, command := range got {
		if err := checkAdvice(command); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []string{"cosplay apply --replace w-0 a.plan", "cosplay plan a.plan", "cosplay apply --wait a.plan", "cosplay destroy --replace a",
		"cosplay nothing", "cosplay state", "cosplay plan --nothing", "cosplay apply --target a --exclude b", "cosplay plan --destroy --refresh-only"} {
		if checkAdvice(wrong) == nil {
			t.Errorf("%q is not refused", wrong)
		}
	}
}
