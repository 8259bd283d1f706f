package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cosplay/internal/fullscreen"
	"cosplay/internal/prose"
	"cosplay/internal/render"
)

// topModel is a live table on a full screen.
type topModel struct {
	view     render.TopView
	style    render.Style
	interval time.Duration
	read     topReader
	screen   surface

	body string // of the screen, as it was drawn last
	from int    // its first line
}

// surface is what a live table is drawn on. Bubble Tea's renderer keeps two megabytes of cells and reads them all for
// each changed letter, which is more than a reading may cost.
type surface interface {
	Draw(text string) error
	Size() (columns, lines int)
	Forget()
	Suspend() error
	ClosePanicking()
}

// Messages of the model: a reading, and a terminal on which everything has to be drawn again.
type (
	topRead struct {
		render.TopReading
		err error
	}
	topChanged struct{}
)

// topScreen shows a live table until the user quits or a signal ends it. The terminal is then as before, also if this
// process is killed.
func (inv *invocation) topScreen(ctx context.Context, o topOptions, view render.TopView, read topReader) (err error) {
	keys := os.Stdin
	if !isTerminal(keys) {
		tty, err := os.Open("/dev/tty")
		if err != nil {
			return fmt.Errorf("top reads keys from a terminal, and standard input is none: %w. Fix: cosplay top --once", err)
		}
		defer func() { _ = tty.Close() }()
		keys = tty
	}
	screen, err := fullscreen.Open(keys, inv.stdout.(fullscreen.Terminal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, screen.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer func() { // a reading that hangs is not waited for
		stop()
		for _, p := range inv.projects {
			p.Machine.Abandon()
		}
	}()
	m := topModel{view: view, style: inv.style(inv.Out), interval: o.interval, read: read, screen: screen}
	if err := m.draw(true); err != nil {
		return err
	}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(keys), tea.WithoutRenderer(), tea.WithFPS(1), tea.WithoutSignalHandler(), tea.WithoutCatchPanics())
	// One thread at a time: others that wake for a moment cost more than they do. Nor does Go then look each second how
	// many processors there are.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer fullscreen.Changed(func() { program.Send(topChanged{}) })()
	go m.follow(ctx, program.Send)
	_, err = program.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return exit(exitInterrupted)
	}
	return err
}

// Init starts nothing: see follow.
func (topModel) Init() tea.Cmd { return nil }

// follow reads at each interval, while keys are answered: a driver can hang. One goroutine does: the stack of a new one
// would grow at each reading. It keeps the phase of Bubble Tea's ticker, which was started with it: to wake a processor
// twice a second costs more than once.
func (m topModel) follow(ctx context.Context, send func(tea.Msg)) {
	defer m.screen.ClosePanicking()
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.interval - time.Since(begun)%m.interval):
		}
		r, err := m.read(ctx)
		send(topRead{r, err})
	}
}

// Update is what a message changes.
func (m topModel) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	redraw := true
	switch message := message.(type) {
	case topRead:
		switch {
		case message.err != nil:
			m.view.Problem = prose.Stop(message.err.Error())
		case !m.view.Update(message.TopReading):
			redraw = false
		}
	case topChanged:
		m.screen.Forget()
	case tea.KeyPressMsg:
		next = m.pressed(message)
	default:
		return m, nil
	}
	_ = m.draw(redraw) // without a terminal there will be no keys, which ends it
	return m, next
}

// draw shows the view. Its body is laid out again if it has changed.
func (m *topModel) draw(body bool) error {
	m.style.Width, m.view.Height = m.screen.Size()
	head := render.TopHead(m.style, m.view)
	if from := strings.Count(head, "\n"); body || from != m.from {
		m.body, m.from = render.TopBody(m.style, m.view, from), from
	}
	return m.screen.Draw(head + m.body)
}

// View is empty: see surface.
func (m topModel) View() tea.View { return tea.View{} }

func (m *topModel) pressed(key tea.KeyPressMsg) tea.Cmd {
	v := &m.view
	if v.Typing {
		m.typed(key)
		return nil
	}
	switch key.String() {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		_ = m.screen.Suspend()
	case "esc":
		switch {
		case v.Detail || v.AllGPUs:
			v.Detail, v.AllGPUs = false, false
		case v.Filter != "":
			v.Filter = ""
		default:
			return tea.Quit
		}
	case "s":
		at := slices.Index(render.TopOrders, v.Order)
		v.Order = render.TopOrders[(at+1)%len(render.TopOrders)]
	case "r":
		v.Reverse = !v.Reverse
	case "/":
		v.Typing, v.Detail, v.AllGPUs = true, false, false
	case "g":
		v.AllGPUs, v.Detail = !v.AllGPUs, false
	case "enter":
		if v.Selected == nil {
			m.move(1)
		}
		v.Detail = !v.Detail && v.Selected != nil
	default:
		if by := topMoves(v.Height)[key.String()]; by != 0 {
			m.move(by)
		}
	}
	return nil
}

// topMoves is by how many lines a key moves the selection.
func topMoves(height int) map[string]int {
	page, end := max(1, height/2), 1<<30
	return map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "space": page, "home": -end, "end": end}
}

// move selects another session.
func (m *topModel) move(by int) {
	all := render.TopSessions(m.view)
	if len(all) == 0 {
		m.view.Selected = nil
		return
	}
	at := -1 // before the first
	if m.view.Selected != nil {
		at = slices.Index(all, *m.view.Selected)
	}
	m.view.Selected = &all[min(max(0, at+by), len(all)-1)]
}

// typed is a key of the filter.
func (m *topModel) typed(key tea.KeyPressMsg) {
	v := &m.view
	switch key.String() {
	case "enter":
		v.Typing = false
	case "esc", "ctrl+c":
		v.Typing, v.Filter = false, ""
	case "backspace":
		if letters := []rune(v.Filter); len(letters) > 0 {
			v.Filter = string(letters[:len(letters)-1])
		}
	default:
		v.Filter += key.Text
	}
}
