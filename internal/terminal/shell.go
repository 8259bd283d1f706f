package terminal

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ShellWord quotes a word for a shell if necessary, in commands for users to copy. Characters that control a terminal
// become escapes that the shell interprets: $'two\nlines'.
func ShellWord(s string) string {
	parts := strings.Split(s, "!") // an interactive shell expands a ! within double quotes
	for i, part := range parts {
		quoted, err := syntax.Quote(part, syntax.LangBash)
		if err != nil { // a byte of 0, which no word can have
			return ShellWord(Safe(s))
		}
		if part != "" || s == "" {
			parts[i] = quoted
		}
	}
	return strings.Join(parts, `\!`)
}

// ShellWords quotes each word of a command.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}
