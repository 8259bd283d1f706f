// Package terminal makes text from outside cosplay safe to print: paths, names of processes and containers, messages
// of drivers and engines. A terminal interprets control characters, so cosplay prints them as escapes.
package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe returns a text for one line in which every character that controls a terminal, and every byte that is not
// UTF-8, is an escape such as \x1b or \u202e.
func Safe(s string) string { return escaped(s, "") }

// Lines does the same for a text of several lines, and keeps line ends and tabs.
func Lines(s string) string { return escaped(s, "\n\t") }

// JSON returns a JSON document in which such characters are JSON escapes. In a valid document they occur only in
// strings.
func JSON(s string) string {
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

// escaped returns a text with escapes, except for the characters to keep.
func escaped(s, kept string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case isPrintable(s[0]):
			b.WriteByte(s[0])
		case strings.ContainsRune(kept, r):
			b.WriteRune(r)
		case strings.ContainsRune("\n\t\r", r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case r == utf8.RuneError && size == 1, unsafe(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// plain reports whether a text is printable ASCII, as almost all texts are.
func plain(s string) bool {
	for i := range len(s) {
		if !isPrintable(s[i]) {
			return false
		}
	}
	return true
}

func isPrintable(c byte) bool { return ' ' <= c && c <= '~' }

// unsafe reports whether a character controls a terminal: controls, changes of text direction, line separators, and
// the byte order mark.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == 0xfeff
}

// Writer filters text with Lines, so that it cannot control a terminal.
type Writer struct{ to io.Writer }

// NewWriter returns a Writer that writes to another writer.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write reports p as written once its safe form is written.
func (w *Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, Lines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Fd lets callers detect a terminal.
func (w *Writer) Fd() uintptr {
	if f, ok := w.to.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Raw returns the writer behind a Writer, for bytes that must stay unchanged: screens whose texts are already safe,
// and the output of the user's programs. It returns any other writer unchanged.
func Raw(w io.Writer) io.Writer {
	if safe, ok := w.(*Writer); ok {
		return safe.to
	}
	return w
}
