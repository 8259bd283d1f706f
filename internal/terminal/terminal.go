// Package terminal makes text that comes from outside cosplay safe to print: paths,
// names of processes and containers, what drivers and engines answer. A terminal
// obeys control characters, so they are shown and not sent.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Safe is a text for one line: every character that a terminal could obey, and
// every byte that is no UTF-8, is written as an escape such as \x1b or \u202e.
func Safe(s string) string { return escaped(s, "") }

// Lines is a text of several lines, whose ends and tabs stay.
func Lines(s string) string { return escaped(s, "\n\t") }

// JSON is a JSON document in which such characters are JSON's own escapes. In one
// that is valid they are in strings alone.
func JSON(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r != '\n' && unsafe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && unsafe(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escaped is a text with escapes but for the characters that are kept.
func escaped(s, kept string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case strings.ContainsRune(kept, r):
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unsafe(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// plain reports whether a text is printable ASCII alone, as almost all are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// unsafe reports whether a terminal could obey a character: C0, DEL, C1, what turns
// the direction of text, and what separates lines.
func unsafe(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	}
	return false
}

// Writer passes text on with Lines. Text that comes through it cannot steer a terminal.
type Writer struct{ to io.Writer }

// NewWriter makes a Writer in front of another writer.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write reports p as written once its safe form is.
func (w *Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Fd lets a terminal be known for one.
func (w *Writer) Fd() uintptr {
	if f, ok := w.to.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Raw is what is behind a Writer, for bytes that are to arrive as they are: screens
// whose texts are safe already, and the output of the user's own programs. Any
// other writer is its own.
func Raw(w io.Writer) io.Writer {
	if safe, ok := w.(*Writer); ok {
		return safe.to
	}
	return w
}
