package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cosplay/internal/render"
	"cosplay/internal/resource"
)

// keys are messages of key presses: names, or the letters of a text.
func keys(typed string) (all []tea.KeyPressMsg) {
	codes := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "end": tea.KeyEnd, "home": tea.KeyHome, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "back": tea.KeyBackspace}
	for _, word := range strings.Fields(typed) {
		switch code, named := codes[word]; {
		case named:
			all = append(all, tea.KeyPressMsg{Code: code})
		case word == "ctrl+c":
			all = append(all, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
		default:
			for _, r := range word {
				all = append(all, tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
	return all
}

// paper is a screen of a test.
type paper struct{ text string }

func (p *paper) Draw(text string) error   { p.text = text; return nil }
func (*paper) Size() (columns, lines int) { return 80, 24 }
func (*paper) Forget()                    {}
func (*paper) Suspend() error             { return nil }
func (*paper) ClosePanicking()            {}

func newTop() topModel {
	var s render.StatusView
	for i := range 5 {
		s.Prior.Sessions = append(s.Prior.Sessions, resource.PriorSession{Session: resource.Session{Address: resource.Nth("worker", i)}})
	}
	m := topModel{view: render.TopView{Order: render.BySession}, screen: new(paper)}
	m.view.Update(render.TopReading{StatusView: s})
	return m
}

// TestTopKeys: what keys change, and which end the table.
func TestTopKeys(t *testing.T) {
	for typed, want := range map[string]struct {
		check func(v render.TopView) bool
		quits bool
	}{
		"down":                   {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 0) }, false},
		"down down j up":         {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 1) }, false},
		"up up":                  {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 0) }, false},
		"end down":               {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 4) }, false},
		"end home":               {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 0) }, false},
		"enter":                  {func(v render.TopView) bool { return v.Detail && *v.Selected == resource.Nth("worker", 0) }, false},
		"enter down":             {func(v render.TopView) bool { return v.Detail && *v.Selected == resource.Nth("worker", 1) }, false},
		"enter esc":              {func(v render.TopView) bool { return !v.Detail }, false},
		"enter enter":            {func(v render.TopView) bool { return !v.Detail }, false},
		"g":                      {func(v render.TopView) bool { return v.AllGPUs }, false},
		"g esc":                  {func(v render.TopView) bool { return !v.AllGPUs }, false},
		"s":                      {func(v render.TopView) bool { return v.Order == render.ByMemory }, false},
		"ssssss r":               {func(v render.TopView) bool { return v.Order == render.BySession && v.Reverse }, false},
		"/q-3":                   {func(v render.TopView) bool { return v.Typing && v.Filter == "q-3" }, false},
		"/r-3 back back 4 enter": {func(v render.TopView) bool { return !v.Typing && v.Filter == "r4" }, false},
		"/x back back esc":       {func(v render.TopView) bool { return !v.Typing && v.Filter == "" }, false},
		"/r-3 enter end":         {func(v render.TopView) bool { return *v.Selected == resource.Nth("worker", 3) }, false},
		"/nothing enter down":    {func(v render.TopView) bool { return v.Selected == nil }, false},
		"/x enter esc":           {func(v render.TopView) bool { return v.Filter == "" }, false},
		"x":                      {func(v render.TopView) bool { return v.Selected == nil }, false},
		"q":                      {func(render.TopView) bool { return true }, true},
		"esc":                    {func(render.TopView) bool { return true }, true},
		"ctrl+c":                 {func(render.TopView) bool { return true }, true},
	} {
		var m tea.Model = newTop()
		quits := false
		for _, key := range keys(typed) {
			var next tea.Cmd
			if m, next = m.Update(key); next != nil {
				_, quits = next().(tea.QuitMsg)
			}
		}
		if v := m.(topModel).view; !want.check(v) || quits != want.quits {
			t.Errorf("%s: quits %v, selected %v, detail %v, all GPUs %v, by %s, filter %q, typing %v", typed, quits, v.Selected, v.Detail, v.AllGPUs, v.Order, v.Filter, v.Typing)
		}
	}
}

// TestTopProblem: a reading that fails is shown beside the last good one, until the next good one.
func TestTopProblem(t *testing.T) {
	var m tea.Model = newTop()
	m, _ = m.Update(topRead{err: errors.New("no answer")})
	if text := m.(topModel).screen.(*paper).text; !strings.Contains(text, "no answer") || !strings.Contains(text, "worker-4") {
		t.Errorf("%s", text)
	}
	m, _ = m.Update(topRead{TopReading: render.TopReading{StatusView: m.(topModel).view.StatusView}})
	if text := m.(topModel).screen.(*paper).text; strings.Contains(text, "no answer") {
		t.Errorf("%s", text)
	}
}

// TestTopFollow: it reads again and again, also after a reading that failed.
func TestTopFollow(t *testing.T) {
	m, reads := newTop(), 0
	m.interval = time.Millisecond
	m.read = func(context.Context) (render.TopReading, error) {
		if reads++; reads == 1 {
			return render.TopReading{}, errors.New("no answer")
		}
		return render.TopReading{}, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	var failed []bool
	m.follow(ctx, func(message tea.Msg) {
		if failed = append(failed, message.(topRead).err != nil); len(failed) == 3 {
			stop()
		}
	})
	if !slices.Equal(failed, []bool{true, false, false}) {
		t.Errorf("readings failed: %v", failed)
	}
}

// TestTopIdle: a reading that changes nothing is drawn with its time.
func TestTopIdle(t *testing.T) {
	var m tea.Model = newTop()
	read := func(at time.Time) string {
		s := m.(topModel).view.StatusView
		s.Live.Hosts = live
		m, _ = m.Update(topRead{TopReading: render.TopReading{StatusView: s, TopTimes: render.TopTimes{At: at, GPUsAt: at, AllAt: at}}})
		return m.(topModel).screen.(*paper).text
	}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before, after := read(noon), read(noon.Add(time.Second))
	if before == after || strings.ReplaceAll(before, "12:00:00", "12:00:01") != after || !strings.Contains(after, "worker-4") {
		t.Errorf("one second later:\n%s\n%s", before, after)
	}
}

// live are the same hosts at each reading.
var live = []resource.Host{{Name: "lab"}}
