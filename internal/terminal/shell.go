package terminal

import (
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// ShellWord quotes an argument for bash if necessary, in commands for users to copy. Characters that control a terminal
// become escapes that the shell interprets: $'two\nlines'.
func ShellWord(s string) string {
	s = strings.ReplaceAll(s, "\x00", `\x00`) // no argument can have a byte of 0
	if s == "" {
		return "''"
	}
	quoted := quotable().ReplaceAllStringFunc(s, func(part string) string {
		word, _ := syntax.Quote(part, syntax.LangBash) // which fails for a byte of 0 alone
		return word
	})
	return strings.ReplaceAll(quoted, "!", `\!`)
}

// quotable is what syntax.Quote is for: it quotes each =, which an argument does not need,
// and leaves a ! that an interactive shell expands.
var quotable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^!=]+`) })

// ShellWords quotes each word of a command.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}
