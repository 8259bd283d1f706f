package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ShellWord quotes a word for a shell where it has to be, for commands to copy. What a
// terminal could obey is written as an escape that the shell reads: $'two\nlines'.
func ShellWord(s string) string {
	switch {
	case !printable(s):
		return "$'" + shellEscapes(s) + "'"
	case s == "", strings.ContainsAny(s, " '\"\\$`&|;<>()*?[]{}!#~"):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// ShellWords quotes each word of a command.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellWord(word)
	}
	return strings.Join(quoted, " ")
}

const hardBlank = '\u00a0' // reads as a blank

func printable(s string) bool { return Safe(s) == s && !strings.ContainsRune(s, hardBlank) }

func shellEscapes(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch one := s[:size]; {
		case r == '\'', r == '\\':
			b.WriteString(`\` + one)
		case r == '\n':
			b.WriteString(`\n`)
		case printable(one):
			b.WriteString(one)
		default:
			for _, c := range []byte(one) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
		s = s[size:]
	}
	return b.String()
}
