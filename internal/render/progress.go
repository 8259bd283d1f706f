package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/plan"
	"cosplay/internal/terminal"
	"cosplay/internal/words"
)

// Progress shows a run: one line for each step that has ended and, on a terminal, the steps that are running.
// It is safe for concurrent use.
type Progress struct {
	Brief bool // shows only the running steps; set it before the first event

	mu      sync.Mutex
	w       io.Writer
	style   Style
	live    bool // the last line can be overwritten
	running []apply.Event
	shown   string // the live line on the screen
	closed  bool

	now   func() time.Time
	heard map[string]time.Time // by step: time of the last line about its progress
}

// quiet is the least time between two lines about the progress of a step, where lines stay: in logs.
const quiet = 10 * time.Second

// NewProgress makes a progress display for a run.
func NewProgress(w io.Writer, s Style) *Progress {
	_, isTerminal := descriptor(w)
	return &Progress{w: w, style: s, live: isTerminal && s.Color, now: time.Now, heard: map[string]time.Time{}}
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
	case apply.StepSays:
		p.says(e)
	case apply.StepDone:
		p.ended(e, seconds(e.Took))
	case apply.StepFailed:
		p.ended(e, "failed")
	case apply.UndoDone:
		p.record(inked(dim, "  undone: "+title(e)))
	case apply.UndoFailed:
		p.record(join(inked(removed, p.style.cross()+" not undone: "), text(title(e))))
	}
	p.refresh()
}

// says records the progress of a step: for the live line or, without one, as a line at intervals.
func (p *Progress) says(e apply.Event) {
	i := slices.IndexFunc(p.running, func(r apply.Event) bool { return r.Step.ID == e.Step.ID })
	if e.Text = saidOf(e); i < 0 || e.Text == "" || e.Text == p.running[i].Text {
		return
	}
	p.running[i].Text = e.Text
	last, spoke := p.heard[e.Step.ID]
	if now := p.now(); !p.live && (!spoke || now.Sub(last) >= quiet) {
		p.heard[e.Step.ID] = now
		p.print(inked(dim, head(p.describe(p.running[i], 0), p.style.width())))
	}
}

// saidOf is the progress of a step on one line, without the step's title and without control characters.
func saidOf(e apply.Event) string {
	said := strings.Join(strings.Fields(oneLine(e.Text)), " ")
	if op, ok := e.Step.Do.Op.(plan.EnsureImage); ok {
		said = strings.TrimPrefix(said, op.Image+": ")
	}
	return said
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

// Close takes the live line away. Steps that end later are not shown; what is said later still is.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.closed = true
}

// title is the title of the step of an event.
func title(e apply.Event) string { return words.Step(e.Step, e.Live) }

// counter is "[ 9/17]".
func (p *Progress) counter(e apply.Event) string {
	total := fmt.Sprint(e.Total)
	return fmt.Sprintf("[%*d/%s]", len(total), e.Number, total)
}

func (p *Progress) ended(e apply.Event, result string) {
	p.running = slices.DeleteFunc(p.running, func(r apply.Event) bool { return r.Step.ID == e.Step.ID })
	sign, took := text("  "), inked(dim, result)
	if e.Kind == apply.StepFailed {
		sign, took = inked(removed, p.style.cross()+" "), inked(removed, result)
	}
	const lastColumn = 80 // times are in one column on a wide screen too
	before := join(sign, inked(dim, p.counter(e)), text(" "+title(e)))
	room := min(lastColumn, p.style.width()) - before.width() - took.width()
	p.record(join(before, line{pad(max(2, room))}, took))
}

// record writes a line of what has happened.
func (p *Progress) record(l line) {
	if !p.Brief {
		p.print(l)
	}
}

// print writes a line in place of the live one.
func (p *Progress) print(l line) {
	p.erase()
	page := newPage(p.style)
	page.print(0, l)
	page.flush(p.w)
}

func (p *Progress) erase() {
	if p.shown != "" {
		_, _ = io.WriteString(terminal.Raw(p.w), "\r\x1b[K")
		p.shown = ""
	}
}

// refresh writes what is running, without an end of line: the step that began first of those that say how far they
// are, else of all.
func (p *Progress) refresh() {
	if !p.live || p.closed || len(p.running) == 0 {
		p.erase()
		return
	}
	first := p.running[max(0, slices.IndexFunc(p.running, func(e apply.Event) bool { return e.Text != "" }))]
	what := p.describe(first, len(p.running)-1)
	if what == p.shown {
		return
	}
	p.erase()
	_, _ = io.WriteString(terminal.Raw(p.w), p.style.paint(dim, terminal.Safe(what)))
	p.shown = what
}

// describe is a running step with its progress, on one line. It shortens the progress, not the number of others.
func (p *Progress) describe(e apply.Event, others int) string {
	what := "  " + p.counter(e) + " " + title(e) + " " + p.style.dots() + given(e.Text, " "+e.Text)
	more := given(others, fmt.Sprintf(" and %d more", others))
	return head(strings.ReplaceAll(what, "\n", " "), p.style.width()-1-columns(more)) + more
}
