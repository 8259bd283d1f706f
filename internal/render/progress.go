package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/apply"
)

// Progress shows a run while it goes: one line for each step that has ended
// and, on a terminal, what is running now. It is safe for concurrent use.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	style   Style
	live    bool // the last line may be written over
	running []apply.Event
	shown   bool // a live line stands
	closed  bool
}

// NewProgress makes a progress display for a run.
func NewProgress(w io.Writer, s Style) *Progress {
	_, isTerminal := terminal(w)
	return &Progress{w: w, style: s, live: isTerminal && s.Color}
}

// Event shows what happened to a step.
func (p *Progress) Event(e apply.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	switch e.Kind {
	case apply.StepStarted:
		p.running = append(p.running, e)
	case apply.StepDone:
		p.ended(e, p.counter(e), seconds(e.Took))
	case apply.StepFailed:
		p.ended(e, p.counter(e), "failed")
	case apply.UndoDone:
		p.print(inked(dim, "  undone: "+undoWords(e)))
	case apply.UndoFailed:
		p.print(join(inked(removed, p.style.cross()+" not undone: "), text(undoWords(e))))
	}
	p.refresh()
}

// Say shows a message in between.
func (p *Progress) Say(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	page := newPage(p.style)
	page.flow(0, 0, text(message))
	page.flush(p.w)
	p.refresh()
}

// Close takes the live line away. Steps that end later are not shown; what is
// said later still is.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.closed = true
}

// undoWords says what an undo takes back.
func undoWords(e apply.Event) string { return e.Step.Title }

// counter is "[ 9/17]".
func (p *Progress) counter(e apply.Event) string {
	total := fmt.Sprint(e.Total)
	return fmt.Sprintf("[%*d/%s]", len(total), e.Number, total)
}

func (p *Progress) ended(e apply.Event, counter, took string) {
	p.running = slices.DeleteFunc(p.running, func(r apply.Event) bool { return r.Step.ID == e.Step.ID })
	mark, sign := plain, "  "
	if e.Kind == apply.StepFailed {
		mark, sign = removed, p.style.cross()+" "
	}
	const lastColumn = 80 // times stand in one column also on a wide screen
	before := line{{mark, sign}, {dim, counter}, {plain, " " + e.Step.Title}}
	room := min(lastColumn, p.style.width()) - before.width() - columns(took)
	p.print(join(before, line{pad(max(2, room))}, inked(markOr(mark, dim), took)))
}

func markOr(mark, other ink) ink {
	if mark == plain {
		return other
	}
	return mark
}

// print writes a line in place of the live one.
func (p *Progress) print(l line) {
	p.erase()
	page := newPage(p.style)
	page.print(0, l)
	page.flush(p.w)
}

func (p *Progress) erase() {
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// refresh writes what is running, without an end of line.
func (p *Progress) refresh() {
	p.erase()
	if !p.live || p.closed || len(p.running) == 0 {
		return
	}
	oldest := p.running[0]
	what := "  " + p.counter(oldest) + " " + oldest.Step.Title + " " + p.style.dots()
	if n := len(p.running) - 1; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	what = strings.ReplaceAll(head(what, p.style.width()-1), "\n", " ")
	_, _ = io.WriteString(p.w, p.style.paint(dim, what))
	p.shown = true
}
