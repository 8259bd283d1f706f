package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// History shows events, one line each, which no screen breaks: programs read them, too.
func History(w io.Writer, s Style, events []public.Event) {
	p := newPage(s)
	rows := each(events, func(e public.Event) [4]string {
		return [4]string{e.Time, actorWords(e), cmp.Or(e.Project, "-"), gpuWords(e)}
	})
	widths := [4]int{}
	for i := range rows {
		rows[i][0] = secondOf(rows[i][0])
		for j, cell := range rows[i] {
			widths[j] = max(widths[j], text(cell).width())
		}
	}
	for i, e := range events {
		var out line
		for j, cell := range rows[i] {
			c := text(cell)
			out = join(out, c, text(strings.Repeat(" ", widths[j]-c.width()+2)))
		}
		out = join(out, text(p.eventWords(e)))
		switch {
		case e.Outcome != "done" && e.Why != "":
			out = join(out, text("; "), inked(removed, e.Outcome+":"), text(" "+e.Why))
		case e.Outcome != "done":
			out = join(out, text("; "), inked(removed, e.Outcome))
		}
		p.print(0, out)
	}
	if len(events) == 0 {
		p.print(0, text("Nothing is on record."))
	}
	p.flush(w)
}

// HistoryJSON is the same as data.
func HistoryJSON(w io.Writer, events []public.Event) error {
	return JSON(w, public.History{Format: public.V1, Events: each(events, func(e public.Event) public.Event { return e })})
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
