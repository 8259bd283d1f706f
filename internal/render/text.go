package render

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"cosplay/internal/terminal"
)

// piece is text in one ink; a line is a row of them.
type piece struct {
	ink  ink
	text string
}

type line []piece

// Any text may have come from outside, so all of it is made safe here, where its room is not measured yet, and once
// more when it is printed.
func text(s string) line         { return line{{plain, terminal.Safe(s)}} }
func inked(i ink, s string) line { return line{{i, terminal.Safe(s)}} }

func join(parts ...line) line { return slices.Concat(parts...) }

func (l line) width() (n int) {
	for _, p := range l {
		n += columns(p.text)
	}
	return n
}

// text is the text of a line, without its inks.
func (l line) text() string { return strings.Join(each(l, func(p piece) string { return p.text }), "") }

// columns is the room that a text takes on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.Is(narrow, r) {
			return terminalWidth.StringWidth(s)
		}
		n++
	}
	return n
}

// narrow are characters of one column that no other one joins: with them alone, the table of all characters is not
// needed, which takes longer to make than the screen of a small host.
var narrow = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: ' ', Hi: '~', Stride: 1}, {Lo: 0xa0, Hi: 0xac, Stride: 1}, {Lo: 0xae, Hi: 0x2ff, Stride: 1}, // Latin
	{Lo: 0x2010, Hi: 0x2027, Stride: 1}, // dashes, quotation marks
	{Lo: '←', Hi: '↓', Stride: 1}, {Lo: '─', Hi: '╿', Stride: 1}, {Lo: '✓', Hi: '✓', Stride: 1}, {Lo: '✗', Hi: '✗', Stride: 1},
}, LatinOffset: 2}

// terminalWidth is the same in every locale: most terminals give signs of ambiguous width one column.
var terminalWidth = runewidth.Condition{StrictEmojiNeutral: true}

// hard is a space at which no line is broken.
const hard = "\u00a0"

// together makes a text that stays on one line.
func together(s string) string { return strings.ReplaceAll(s, " ", hard) }

// page collects a screen and writes it in one go.
type page struct {
	Style
	out   strings.Builder
	blank bool // the last line is empty, or there is none
	row   line // of a table, while it is made

	paper *[]block // what is drawn, instead of out, where it becomes HTML; nil on a screen
}

func newPage(s Style) *page { return &page{Style: s, blank: true} }

func (p *page) flush(w io.Writer) {
	_, _ = io.WriteString(terminal.Raw(w), p.out.String()) // a reader that went away is no problem of the screen's
}

// gap leaves one empty line, never two and none at the top.
func (p *page) gap() {
	if !p.blank {
		p.out.WriteByte('\n')
		p.blank = true
	}
}

// print writes one line at an indent, without blanks at its end.
func (p *page) print(indent int, l line) {
	l = trimmed(l)
	if len(l) == 0 {
		p.gap()
		return
	}
	if p.paper != nil {
		*p.paper = append(*p.paper, block{indent: indent, line: l})
		return
	}
	p.out.WriteString(strings.Repeat(" ", indent))
	for _, one := range l {
		p.out.WriteString(p.paint(one.ink, terminal.Safe(strings.ReplaceAll(one.text, hard, " "))))
	}
	p.out.WriteByte('\n')
	p.blank = false
}

func trimmed(l line) line {
	for ; len(l) > 0; l = l[:len(l)-1] {
		last := l[len(l)-1]
		switch cut := strings.TrimRight(last.text, " "+hard); cut {
		case "":
		case last.text:
			return l
		default:
			return append(slices.Clone(l[:len(l)-1]), piece{last.ink, cut})
		}
	}
	return nil
}

// flow writes prose, broken at blanks; later lines hang at their own indent.
func (p *page) flow(indent, hang int, l line) {
	if p.paper != nil {
		p.print(indent, l)
		return
	}
	for _, one := range wrap(l, p.width()-indent, p.width()-hang) {
		p.print(indent, one)
		indent = hang
	}
}

// say writes prose; later lines hang by two columns.
func (p *page) say(words string) { p.flow(0, 2, text(words)) }

// detail writes prose below what was said.
func (p *page) detail(words string) { p.flow(2, 4, text(words)) }

// lead writes prose that begins with words in an ink; later lines hang by two columns.
func (p *page) lead(indent int, i ink, words, rest string) {
	p.flow(indent, indent+2, join(inked(i, words), text(" "+rest)))
}

// wrap breaks a line into lines of at most so many columns. A word that is longer than a line stays whole, so that it
// can be copied.
func wrap(l line, room, rest int) []line {
	var lines []line
	var current line
	used := 0
	for _, w := range withUnits(splitWords(l)) {
		n := w.width()
		switch {
		case len(current) == 0:
		case used+1+n > room:
			lines, current, used, room = append(lines, current), nil, 0, rest
		default:
			current, used = append(current, piece{w[0].ink, " "}), used+1
		}
		current, used = append(current, w...), used+n
	}
	return append(lines, current)
}

// units follow a figure on its line, and so does what multiplies it: "7 x 160 W".
var units = []string{"x", "%", "W", "MHz", "MiB", "GB/s", "TFLOPS", "SMs"}

// withUnits joins figures and their units to one word.
func withUnits(all []line) []line {
	var out []line
	for _, w := range all {
		if last := len(out) - 1; last >= 0 && isFigure(out[last], w.text()) {
			end := &out[last][len(out[last])-1]
			if end.ink != w[0].ink {
				out[last] = append(out[last], piece{ink: w[0].ink})
				end = &out[last][len(out[last])-1]
			}
			end.text += hard + w[0].text
			out[last] = append(out[last], w[1:]...)
		} else {
			out = append(out, w)
		}
	}
	return out
}

// isFigure reports whether a word is a figure, or a figure with an x behind it, whose line the next word stays on.
func isFigure(w line, next string) bool {
	text := w.text()
	number := func(c byte) bool { return c >= '0' && c <= '9' }
	if strings.HasSuffix(text, hard+"x") {
		return number(next[0])
	}
	return number(text[len(text)-1]) && slices.Contains(units, strings.TrimRight(next, ".,;:)"))
}

// splitWords splits at blanks; a word may be made of several inks.
func splitWords(l line) []line {
	words := []line{nil}
	for _, p := range l {
		for i, part := range strings.Split(p.text, " ") {
			if i > 0 {
				words = append(words, nil)
			}
			if part != "" {
				words[len(words)-1] = append(words[len(words)-1], piece{p.ink, part})
			}
		}
	}
	return slices.DeleteFunc(words, func(w line) bool { return len(w) == 0 })
}

// Prose wraps paragraphs. Indented lines are to be copied, and stay as they are.
func Prose(w io.Writer, s Style, prose string) {
	p := newPage(s)
	for _, l := range strings.Split(strings.TrimRight(prose, "\n "), "\n") {
		if body := strings.TrimLeft(l, " "); body != l {
			p.print(len(l)-len(body), text(body))
		} else {
			p.flow(0, 0, text(l))
		}
	}
	p.flush(w)
}
