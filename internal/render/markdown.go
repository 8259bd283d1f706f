package render

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"cosplay/internal/pattern"
)

// PlanMarkdown writes a plan for a pull request: the line that counts, and the plan as plan prints it, in a fence that is
// coloured as differences.
func PlanMarkdown(w io.Writer, s Style, v PlanView) error {
	v.Applying = true // who reads it runs no command here
	screen := onPaper(s, v)
	return markdown(w, "### cosplay plan: "+plainText(headline(v)), "diff", signLine().ReplaceAllStringFunc(screen, signFirst))
}

// FitsMarkdown writes what fits found out for a pull request: the answer, and what fits prints.
func FitsMarkdown(w io.Writer, s Style, v FitsView) error {
	return markdown(w, "**"+plainText(v.answer())+"**", "text", onPaper(s, v))
}

// onPaper is a view as it is whatever the terminal.
func onPaper(s Style, v View) string {
	var screen strings.Builder
	s.Color, s.Unicode, s.Width = false, false, defaultWidth
	Show(&screen, s, v)
	return screen.String()
}

// markdown writes a line, and a screen in a fence that no line of it can close.
func markdown(w io.Writer, head, language, screen string) error {
	ticks := "```"
	for strings.Contains(screen, ticks) {
		ticks += "`"
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s%s\n%s%s\n", head, ticks, language, screen, ticks)
	return err
}

// headline counts what a plan does.
func headline(v PlanView) string {
	said := "no changes"
	switch {
	case v.onlyClusters():
		said = v.Clusters.counts()
	case v.Plan.Diff.Changes():
		said = strings.ReplaceAll(tallyOf(v.Plan).words().text(), hard, " ")
	case len(v.Plan.Diff.Outputs) > 0:
		said = "outputs alone change"
	}
	stuck := len(v.Plan.Diff.Stuck)
	return said + given(stuck > 0 && !v.Destroy, fmt.Sprintf("; %d unfinished", stuck))
}

// signLine is the beginning of a line with the sign of an action.
var signLine = pattern.Of(`(?m)^(-/\+|  [-+~><.]) `)

// signFirst puts the sign where a fence for differences expects it: green is +, red is - and orange is !.
func signFirst(line string) string {
	switch strings.TrimSpace(line) {
	case "+", "<":
		return "+   "
	case "-", ".":
		return "-   "
	}
	return "!   "
}

// eaten are the characters that Markdown, or the HTML in it, interprets anywhere in a line.
const eaten = "\\`*_{}[]<>|&~$@"

// plainText is a text that Markdown shows as it is.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		if strings.ContainsRune(eaten, r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// oneLine keeps a text on its line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
