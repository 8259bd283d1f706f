// Package render shows everything that a person reads, and has a JSON twin for each screen. It is given values,
// writes to an io.Writer and decides nothing. It alone knows colour, the width of a terminal and box characters.
package render

import (
	"io"
	"os"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"cosplay/internal/terminal"
)

// Style is how a screen may look.
type Style struct {
	Color   bool
	Unicode bool // box characters and arrows; only in a UTF-8 locale
	Verbose bool // show what is alike instead of counting it
	Width   int  // columns; 0 is 100

	names *strings.Replacer // of line ends within paths; nil where there are none
}

// Naming is the style where paths may be in any message, as errors quote them: a line end in one of them ends no
// line.
func (s Style) Naming(paths []string) Style {
	var pairs []string
	for _, path := range paths {
		for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '=' }) { // also of --flag=path
			if strings.Contains(part, "\n") {
				pairs = append(pairs, part, terminal.Safe(part))
			}
		}
	}
	if len(pairs) > 0 {
		s.names = strings.NewReplacer(pairs...)
	}
	return s
}

// known is a message with the paths in it as a terminal shows them.
func (s Style) known(message string) string {
	if s.names == nil {
		return message
	}
	return s.names.Replace(message)
}

// defaultWidth is that of everything that is not a terminal, in columns.
const defaultWidth = 100

// Detect finds the style for a writer. What is not a terminal gets no colour and 100 columns; NO_COLOR and TERM=dumb
// turn colour off, the locale decides about box characters.
func Detect(w io.Writer, noColor bool) Style {
	s := Style{Width: defaultWidth, Unicode: utf8Locale(os.Getenv)}
	fd, ok := descriptor(w)
	if !ok {
		return s
	}
	if width, _, err := term.GetSize(fd); err == nil && width > 0 {
		s.Width = width
	}
	s.Color = !noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// descriptor returns the file descriptor of a writer that is a terminal.
func descriptor(w io.Writer) (int, bool) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// utf8Locale asks the variables in the order of setlocale(3).
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

func (s Style) width() int {
	if s.Width <= 0 {
		return defaultWidth
	}
	return s.Width
}

// pick chooses a character sequence by what the locale can show.
func (s Style) pick(unicode, ascii string) string {
	if s.Unicode {
		return unicode
	}
	return ascii
}

func (s Style) arrow() string { return s.pick("→", "->") }
func (s Style) cross() string { return s.pick("✗", "x") }
func (s Style) dots() string  { return s.pick("…", "...") }

// ink is what a piece of text means. No meaning rests on it alone: a sign or a word always says the same.
type ink uint8

const (
	plain ink = iota
	strong
	dim
	added
	changed
	removed
	replaced
	drifted
)

// inks are kept to those that can be read on a dark and on a light background. Yellow is hard to read on white: it is
// for the sign of a change only, and words that warn are strong.
var inks = map[ink]*color.Color{
	strong:   forced(color.Bold),
	dim:      forced(color.Faint),
	added:    forced(color.FgGreen),
	changed:  forced(color.FgYellow),
	removed:  forced(color.FgRed, color.Bold),
	replaced: forced(color.FgMagenta),
	drifted:  forced(color.FgCyan),
}

// forced makes a colour that does not look at the process's own standard output.
func forced(attributes ...color.Attribute) *color.Color {
	c := color.New(attributes...)
	c.EnableColor()
	return c
}

func (s Style) paint(i ink, text string) string {
	c := inks[i]
	if !s.Color || c == nil || text == "" {
		return text
	}
	return c.Sprint(text)
}
