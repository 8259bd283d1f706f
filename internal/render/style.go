// Package render prints what people read, and the same as JSON. It gets values, writes to an io.Writer and decides
// nothing. It alone knows colours, the width of a terminal and line-drawing characters.
package render

import (
	"io"
	"os"
	"strings"

	"github.com/fatih/color"
	"golang.org/x/term"

	"cosplay/internal/terminal"
)

// View is what a command shows: for people, and the same for programs.
type View interface {
	draw(p *page)
	data() any // a value of package public
}

// Show draws a view.
func Show(w io.Writer, s Style, v View) {
	p := newPage(s)
	v.draw(p)
	p.flush(w)
}

// Style is how a screen may look.
type Style struct {
	Color   bool
	Unicode bool // line-drawing characters and arrows; only in a UTF-8 locale
	Verbose bool // show things that read alike instead of counting them
	Compact bool // show warnings without their texts
	Width   int  // columns; 0 is 100

	Secrets []string // sensitive variables whose values the user has to give again to a command that is suggested

	names *strings.Replacer // of line ends in paths; nil for none
}

// Naming returns the style for messages with these paths: a line end in a path does not end the line.
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

// known returns a message with its paths as a terminal shows them.
func (s Style) known(message string) string {
	if s.names == nil {
		return message
	}
	return s.names.Replace(message)
}

// defaultWidth is the width of a writer that is no terminal, in columns.
const defaultWidth = 100

// Detect returns the style for a writer. A writer that is no terminal gets no colour and 100 columns. NO_COLOR and
// TERM=dumb turn colour off; the locale decides on line-drawing characters.
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

// pick returns the text that the locale can show.
func (s Style) pick(unicode, ascii string) string {
	return either(s.Unicode, unicode, ascii)
}

func (s Style) arrow() string { return s.pick("→", "->") }
func (s Style) cross() string { return s.pick("✗", "x") }
func (s Style) dots() string  { return s.pick("…", "...") }

// ink is the meaning of a piece of text. A sign or a word always has the same meaning as its ink.
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

// inks are readable on dark and on light backgrounds. Yellow is not on white, so only signs have it; warnings are strong.
var inks = map[ink]*color.Color{
	strong:   forced(color.Bold),
	dim:      forced(color.Faint),
	added:    forced(color.FgGreen),
	changed:  forced(color.FgYellow),
	removed:  forced(color.FgRed, color.Bold),
	replaced: forced(color.FgMagenta),
	drifted:  forced(color.FgCyan),
}

// forced returns a colour that does not depend on the process's standard output.
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
