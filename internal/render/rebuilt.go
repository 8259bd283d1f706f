package render

import (
	"fmt"
	"io"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// RebuiltView is a state that was made anew.
type RebuiltView struct {
	State    string
	Fault    string // what was wrong with the old one; "" where there was none
	Prior    resource.Prior
	Live     resource.Live
	Unproven []resource.Container // which the next apply replaces
	Notes    []resource.Note
	Aside    []string // where what there was of the state was moved
	Flags    []string
}

// Rebuilt shows what the new state would know.
func Rebuilt(w io.Writer, s Style, v RebuiltView) {
	p := newPage(s)
	if v.Fault != "" {
		p.flow(0, 2, join(inked(drifted, "The state cannot be used:"), text(" "+prose.Stop(v.Fault))))
	} else {
		p.flow(0, 2, text("There is no state "+v.State+"."))
	}
	p.flow(0, 2, text(fmt.Sprintf("Rebuilt from ledgers, labels and hardware, with lineage %s, it knows %s on %s:",
		resource.ShortLineage(v.Prior.Lineage), prose.Count(len(v.Prior.Sessions), "session"), prose.Count(len(v.Prior.GPUs), "GPU"))))
	t := &table{indent: 2, columns: []column{{title: "SESSION", brief: inBlock}, {title: "SLICE"}, {title: "GPU"}, {title: "RUNS IN", prose: true}}}
	for _, one := range v.Prior.Sessions {
		runs := "-"
		if one.Container != nil {
			runs = resource.RuntimeNamed(one.Runtime).Body
		}
		t.add(text(one.Address.String()), text(one.Slice.String()), text(words.GPU(v.Live, one.Slice.Host, one.Slice.GPU)), text(runs))
	}
	p.table(t)
	p.unproven(v.Unproven)
	if len(v.Unproven) > 0 {
		p.flow(2, 4, text(fmt.Sprintf("The next apply replaces %s: what runs in there ends.", prose.Count(len(v.Unproven), "container"))))
	}
	for _, n := range words.Notes(v.Notes, v.Live) {
		p.flow(2, 4, text("note: "+prose.Stop(n)))
	}
	p.flush(w)
}

// RebuiltDone is the last line.
func RebuiltDone(w io.Writer, s Style, v RebuiltView) {
	p := newPage(s)
	p.flow(0, 2, join(inked(strong, "Rebuilt: "), text(fmt.Sprintf("%s has serial %d. No GPU, slice or container was touched.", v.State, v.Prior.Serial))))
	for _, path := range v.Aside {
		p.flow(0, 2, text("moved aside: "+path))
	}
	p.next(suggest("plan", v.Flags))
	p.flush(w)
}

// RebuiltJSON writes the same as data.
func RebuiltJSON(w io.Writer, v RebuiltView) error {
	out := public.Rebuilt{Format: public.V1, State: v.State, Fault: v.Fault, Lineage: v.Prior.Lineage, Serial: v.Prior.Serial, Sessions: []string{}, GPUs: []string{},
		Unproven: list(each(v.Unproven, containerOf)), Notes: words.Notes(v.Notes, v.Live), Aside: list(v.Aside)}
	for _, one := range v.Prior.Sessions {
		out.Sessions = append(out.Sessions, one.Address.String())
	}
	for _, g := range v.Prior.GPUs {
		out.GPUs = append(out.GPUs, g.UUID)
	}
	return JSON(w, out)
}
