package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/prose"
)

// Diagnostics shows mistakes and warnings, each with its place in the source.
func Diagnostics(w io.Writer, s Style, diags hcl.Diagnostics, files map[string]*hcl.File) {
	p := newPage(s)
	p.diagnostics(diags, files)
	p.flush(w)
}

func (p *page) diagnostics(diags hcl.Diagnostics, files map[string]*hcl.File) {
	diags, more := mergeEqual(diags)
	if p.Compact {
		diags = p.compacted(diags, more)
	}
	for i, d := range diags {
		if i == 0 || !oneLiner(d) || !oneLiner(diags[i-1]) {
			p.gap()
		}
		mark, lead := removed, "Error:"
		if d.Severity == hcl.DiagWarning {
			mark, lead = strong, "Warning:"
		}
		p.flow(0, 2, join(inked(mark, lead), text(" "), inked(strong, d.Summary)))
		if placed(d) {
			p.gap()
			p.source(mark, *d.Subject, files[d.Subject.Filename])
			p.also(more[d])
			p.gap()
		}
		p.paragraphs(0, d.Detail)
	}
}

// compacted lists the warnings by their summaries and places, and returns the rest.
func (p *page) compacted(diags hcl.Diagnostics, more map[*hcl.Diagnostic][]hcl.Range) (errs hcl.Diagnostics) {
	for _, d := range diags {
		if d.Severity != hcl.DiagWarning {
			errs = append(errs, d)
			continue
		}
		at, n := "", len(more[d])
		if placed(d) {
			at = fmt.Sprintf("%s line %d", d.Subject.Filename, d.Subject.Start.Line)
		}
		at += given(n, " and "+prose.Count(n, "more place"))
		p.lead(0, strong, "Warning:", d.Summary+given(at, " ("+at+")"))
	}
	return errs
}

// mergeEqual returns diagnostics without the warnings that repeat another one at another place, and those places.
func mergeEqual(diags hcl.Diagnostics) (kept hcl.Diagnostics, more map[*hcl.Diagnostic][]hcl.Range) {
	more = map[*hcl.Diagnostic][]hcl.Range{}
	first := map[[2]string]*hcl.Diagnostic{}
	for _, d := range diags {
		text := [2]string{d.Summary, d.Detail}
		if same := first[text]; same != nil && placed(d) && d.Severity == hcl.DiagWarning {
			more[same] = append(more[same], *d.Subject)
			continue
		}
		if placed(d) && d.Severity == hcl.DiagWarning {
			first[text] = d
		}
		kept = append(kept, d)
	}
	return kept, more
}

// also names the other places of a warning.
func (p *page) also(places []hcl.Range) {
	if len(places) == 0 {
		return
	}
	lines := prose.Each(places, func(r hcl.Range) string { return fmt.Sprintf("%s line %d", r.Filename, r.Start.Line) })
	p.flow(2, 4, inked(dim, fmt.Sprintf("and %s: %s", prose.Count(len(places), "more place"), prose.And(prose.Few(lines, maxPlaces)))))
}

// maxPlaces is how many other places of a warning are named.
const maxPlaces = 4

// oneLiner reports whether a diagnostic is its summary alone. No empty line separates such diagnostics.
func oneLiner(d *hcl.Diagnostic) bool {
	return d.Detail == "" && !placed(d)
}

// placed reports whether a diagnostic has a place in a file.
func placed(d *hcl.Diagnostic) bool {
	return d.Subject != nil && d.Subject.Filename != config.Unwritten
}

// paragraphs wraps the lines of a text and keeps its line breaks and indents. A line with an indent of four or more is
// to be copied, and is not wrapped.
func (p *page) paragraphs(indent int, s string) {
	if s == "" {
		return
	}
	for _, l := range strings.Split(strings.TrimRight(p.known(s), "\n"), "\n") {
		body := strings.TrimLeft(l, " ")
		switch {
		case body == "":
			p.gap()
		case len(l)-len(body) >= 4:
			p.print(indent+len(l)-len(body), text(body))
		case body != l:
			p.flow(indent+len(l)-len(body), indent+len(l)-len(body)+2, text(body))
		default:
			p.flow(indent, indent, text(body))
		}
	}
}

// source shows the line of a range, and underlines the range.
func (p *page) source(mark ink, r hcl.Range, file *hcl.File) {
	where := enclosing(file, r.Start.Byte)
	place := fmt.Sprintf("on %s line %d", r.Filename, r.Start.Line) + given(where, ", in "+where)
	p.flow(2, 4, join(inked(dim, place), text(":")))
	if file == nil || r.Start.Byte > len(file.Bytes) {
		return
	}
	before, marked, after := cutLine(file.Bytes, r)
	number := fmt.Sprintf("%4d: ", r.Start.Line)
	room := p.width() - len(number)
	before, marked, after = window(room, before, marked, after, p.dots())
	p.print(0, line{{dim, number}, {plain, before}, {mark, marked}, {plain, after}})
	p.print(len(number)+columns(before), inked(mark, strings.Repeat("^", max(1, columns(marked)))))
}

// enclosing names the block around a place: session "worker".
func enclosing(file *hcl.File, at int) string {
	if file == nil {
		return ""
	}
	nav, ok := file.Nav.(interface{ ContextString(offset int) string })
	if !ok {
		return ""
	}
	return nav.ContextString(at)
}

// cutLine returns the line that a range begins in, in three parts: before, in and after the range. Tabs become
// blanks.
func cutLine(source []byte, r hcl.Range) (before, marked, after string) {
	start, end := lineAt(source, r.Start.Byte)
	stop := max(r.Start.Byte, min(r.End.Byte, end))
	plain := func(b []byte) string {
		return strings.NewReplacer("\t", "    ", "\r", "").Replace(string(b))
	}
	return plain(source[start:r.Start.Byte]), plain(source[r.Start.Byte:stop]), plain(source[stop:end])
}

// lineAt returns the offsets of the line at an offset.
func lineAt(source []byte, at int) (start, end int) {
	start, end = bytes.LastIndexByte(source[:at], '\n')+1, len(source)
	if n := bytes.IndexByte(source[at:], '\n'); n >= 0 {
		end = at + n
	}
	return start, end
}

// window cuts a line that is longer than the room around what is marked.
func window(room int, before, marked, after, dots string) (string, string, string) {
	if columns(before+marked+after) <= room {
		return before, marked, after
	}
	if marked = head(marked, room-2*columns(dots)); columns(before)+columns(marked)+columns(dots) > room {
		kept := room / 4
		if columns(marked)+kept+2*columns(dots) > room {
			kept = 0
		}
		runes := []rune(before)
		before = dots + string(runes[max(0, len(runes)-kept):])
	}
	if rest := room - columns(before) - columns(marked); columns(after) > rest {
		after = head(after, max(0, rest-columns(dots))) + dots
	}
	return before, marked, after
}

// head is the longest beginning of a text that fits.
func head(s string, room int) string { return terminalWidth.Truncate(s, room, "") }

// Error shows an error that has no place in a source. Lines after its first are kept, indents included.
func Error(w io.Writer, s Style, err error) {
	p := newPage(s)
	p.problem(0, 0, inked(removed, "Error:"), err.Error())
	p.flush(w)
}

// problem prints an error after a mark: what happened and, if known, what to do. Every screen prints errors and
// advice through it. Lines after the first are printed at their own indent.
func (p *page) problem(indent, rest int, mark line, message string) {
	first, more, _ := strings.Cut(p.known(message), "\n")
	p.flow(indent, indent+2, join(mark, text(" "+first)))
	p.paragraphs(rest, more)
}
