package render

import (
	"fmt"
	"io"

	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// ImportedView is what is taken into the state.
type ImportedView struct {
	Session  resource.PriorSession
	GPU      resource.GPU       // without a UUID where the session has none yet
	Name     string             // of the body, where bodies have names
	Foreign  bool               // cosplay did not make it
	Unproven bool               // only its labels say that cosplay made it
	Users    []resource.Process // that run in it
	Notes    []resource.Note
	State    string
	Serial   int
	Live     resource.Live
	Flags    []string
}

// Importing shows what was found, and what becomes of it.
func Importing(w io.Writer, s Style, v ImportedView) {
	p := newPage(s)
	p.print(0, join(inked(strong, v.Session.Address.String()), text("  is to have")))
	t := &table{indent: 2, columns: []column{{}, {prose: true}}}
	if h := v.Session.Handle; h != nil {
		t.add(text("slice"), text(fmt.Sprintf("%s on %s, %s", v.Session.Slice, words.GPU(v.Live, v.Session.Slice.Host, v.Session.Slice.GPU), h.UUID)))
	}
	if c := v.Session.Container; c != nil {
		what := c.ID
		if v.Name != "" {
			what = fmt.Sprintf("%s (%s), %s", v.Name, shortID(*c), c.State)
		}
		t.add(text(resource.RuntimeNamed(c.Runtime).Body), text(what))
	}
	p.table(t)
	if v.Foreign {
		p.flow(2, 4, join(inked(drifted, "Not made by cosplay: "), text(v.fate())))
	}
	if len(v.Users) > 0 {
		p.flow(2, 4, join(inked(drifted, "In use: "), text(resource.ProcessNames(v.Users)+" in the slice.")))
	}
	if v.Unproven {
		p.unproven([]resource.Container{*v.Session.Container})
		p.flow(2, 4, text("The next apply replaces it: what runs in there ends."))
	}
	for _, n := range words.Notes(v.Notes, v.Live) {
		p.flow(2, 4, text("note: "+prose.Stop(n)))
	}
	p.flush(w)
}

// fate says what becomes of a thing that somebody else has made.
func (v ImportedView) fate() string {
	if v.Session.Container != nil {
		return "from now on it is this project's. The next apply removes it and makes the session's own in its place; so does destroy, without making another."
	}
	return "from now on it is this project's, for this session alone. Destroy removes it, and so does an apply that wants the session elsewhere."
}

// Imported is the last line.
func Imported(w io.Writer, s Style, v ImportedView) {
	p := newPage(s)
	p.flow(0, 2, join(inked(strong, "Imported: "), text(fmt.Sprintf("%s has %s, with serial %d. It was left as it is; the next plan shows what differs.", v.State, v.Session.Address, v.Serial))))
	p.next(suggest("plan", v.Flags))
	p.flush(w)
}

// ImportedJSON writes the same as data.
func ImportedJSON(w io.Writer, v ImportedView) error {
	users := each(v.Users, func(p resource.Process) public.Process { return public.Process(p) })
	return JSON(w, public.Imported{Format: public.V1, State: v.State, Serial: v.Serial, Address: v.Session.Address.String(), Slice: public.Slice(v.Session.Slice),
		Handle: (*public.Handle)(v.Session.Handle), Container: some(v.Session.Container, containerOf), Foreign: v.Foreign, Unproven: v.Unproven,
		Users: list(users), Notes: words.Notes(v.Notes, v.Live)})
}
