package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// EventsView are events, one line each, which no screen breaks: programs read them, too.
type EventsView []public.Event

func (events EventsView) draw(p *page) {
	p.Width = math.MaxInt
	t := &table{gap: 2, columns: make([]column, 5)}
	for _, e := range events {
		what := text(p.eventWords(e))
		if e.Outcome != "done" {
			what = join(what, text("; "), inked(removed, e.Outcome+given(e.Why, ":")), text(given(e.Why, " "+e.Why)))
		}
		t.add(text(secondOf(e.Time)), text(actorWords(e)), text(cmp.Or(e.Project, "-")), text(gpuWords(e)), what)
	}
	p.table(t)
	if len(events) == 0 {
		p.print(0, text("Nothing is on record."))
	}
}

func (events EventsView) data() any {
	return public.History{Format: public.V1, Events: list[public.Event](events)}
}

// secondOf is a time in RFC 3339 without fractions.
func secondOf(stamp string) string {
	if second, _, has := strings.Cut(stamp, "."); has {
		return second + "Z"
	}
	return cmp.Or(stamp, "-")
}

func actorWords(e public.Event) string {
	if e.For != "" {
		return e.User + " for " + e.For
	}
	return cmp.Or(e.User, fmt.Sprint("uid ", e.UID))
}

func gpuWords(e public.Event) string {
	switch {
	case e.Index != nil:
		return fmt.Sprint("GPU ", *e.Index)
	case e.GPU != "":
		return words.ShortUUID(e.GPU)
	}
	return "-"
}

// eventWords says what was done, or tried.
func (p *page) eventWords(e public.Event) string {
	what := e.New
	setting, isSetting := resource.SettingNamed(strings.TrimPrefix(e.Op, "set-"))
	switch {
	case e.Op == "take":
		what = "acquire the GPU"
	case e.Op == "leave":
		what = "begin to leave the GPU"
	case e.Op == "release":
		what = strings.TrimSpace("release the GPU " + e.New)
	case e.Op == "queue":
		what = "turn in the queue"
	case e.Op == "create-slice":
		what = "create slice " + e.New
	case e.Op == "destroy-slice":
		what = "destroy slice " + e.Old
	case isSetting && strings.HasPrefix(e.Op, "set-"):
		what = setting.Words() + " " + p.fromTo(e)
	case e.Op == "prepare" && e.Old == "":
		what = "create " + e.New
	case e.Op == "unprepare":
		what = "remove " + e.Old
	case e.Old != "" || e.New == "":
		what = strings.TrimSpace(e.Op + " " + p.fromTo(e))
	}
	if a, err := resource.ParseAddress(e.Session); err == nil {
		return a.Short() + ": " + what
	}
	return what
}

// fromTo is the value before and after, as far as they are known.
func (p *page) fromTo(e public.Event) string {
	if e.Old == "" || e.New == "" {
		return e.Old + e.New
	}
	return e.Old + " " + p.arrow() + " " + e.New
}

// WatchEvent writes a line of the log of watch.
func WatchEvent(w io.Writer, e public.WatchEvent) {
	subject, class := given(e.Subject, e.Subject+": "), given(e.Class, " ("+e.Class+")")
	fmt.Fprintf(w, "%s  %-14s  %s%s%s\n", e.Time, e.Kind, subject, oneLine(e.Text), class)
}

// WatchEventJSON writes an event as one line of JSON.
func WatchEventJSON(w io.Writer, e public.WatchEvent) error {
	return json.NewEncoder(w).Encode(e)
}
