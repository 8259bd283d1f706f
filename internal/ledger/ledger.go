// Package ledger is a host's own book: what each GPU was like before cosplay
// first touched it, and who holds it, across all projects and users. Only the
// agent writes it; whoever can see the host can read it.
package ledger

import (
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// RefusedError is a change that the ledger does not allow.
type RefusedError struct {
	What      string
	Overtaken bool // by another project since the plan was made: a new plan may be allowed
}

func (e *RefusedError) Error() string { return e.What }

func refuse(format string, args ...any) error {
	return &RefusedError{What: fmt.Sprintf(format, args...)}
}

func overtaken(format string, args ...any) error {
	return &RefusedError{What: fmt.Sprintf(format, args...), Overtaken: true}
}

const planAgain = "run cosplay plan again to see the GPU as it is now"

// Take is what a project says when it takes a GPU in hand.
type Take struct {
	Baseline   resource.Settings `json:"baseline"` // as it finds the GPU; kept only by the first
	LockBefore bool              `json:"lock_before,omitempty"`
	Whole      bool              `json:"whole,omitempty"` // without MIG
	Others     []string          `json:"others"`          // lineages of the holders that its plan counted on

	// Slices are those that the project's state knows it has made. The book has
	// them too, unless it was lost.
	Slices []resource.LiveSlice `json:"slices,omitempty"`
}

// Hold adds a holder. What its plan did not know of refuses it: another holder
// would be harmed, or harm.
func Hold(g *resource.Held, who resource.Holder, t Take) error {
	if g.Leaving != "" && g.Leaving != who.Lineage {
		return overtaken("another project is putting the GPU back to its baseline right now (%s); try again in a moment", describe(g.Holders))
	}
	for _, o := range g.Others(who.Lineage) {
		if !slices.Contains(t.Others, o.Lineage) {
			return overtaken("%s has taken the GPU since the plan was made; %s", describe([]resource.Holder{o}), planAgain)
		}
		if o.Whole || t.Whole {
			return overtaken("%s holds the GPU, and one without MIG has room for one project only; %s", describe([]resource.Holder{o}), planAgain)
		}
	}
	if len(t.Others) > 0 && len(g.Holders) == 0 {
		return overtaken("all who held the GPU have left it since the plan was made, and it has its baseline again; %s", planAgain)
	}
	g.Leaving = ""
	if len(g.Holders) == 0 {
		g.Baseline, g.LockBefore = t.Baseline, t.LockBefore
	}
	who.Whole = t.Whole
	if i := slices.IndexFunc(g.Holders, func(o resource.Holder) bool { return o.Lineage == who.Lineage }); i >= 0 {
		who.Since, who.Slices, who.Serial = g.Holders[i].Since, g.Holders[i].Slices, max(who.Serial, g.Holders[i].Serial)
		if first := g.Holders[i]; first.UID != nil { // root on his behalf is still he
			who.User, who.UID = first.User, first.UID
		}
		g.Holders = slices.Delete(g.Holders, i, i+1)
	}
	for _, s := range t.Slices {
		if !noted(*g, who, s.Slice) {
			who.Slices = append(who.Slices, s)
		}
	}
	g.Holders = append(g.Holders, who)
	return nil
}

// at is a slice without the name of its host: each project has its own for it.
func at(s resource.Slice) resource.Slice {
	s.Host = ""
	return s
}

// mayActFor refuses one user to act for the project of another. Root may, and so
// may who does not say who he is: on a host where that is not asked.
func mayActFor(g *resource.Held, who resource.Holder) error {
	first, holds := g.Holder(who.Lineage)
	if !holds || who.UID == nil || *who.UID == 0 || (first.UID != nil && *first.UID == *who.UID) {
		return nil
	}
	return refuse("it is %s that holds the GPU, and %s is another user; root can act for both: sudo cosplay apply", describe([]resource.Holder{first}), who.User)
}

// noted reports whether somebody is known to have made a slice.
func noted(g resource.Held, who resource.Holder, s resource.Slice) bool {
	return slices.ContainsFunc(append(g.Others(who.Lineage), who), func(h resource.Holder) bool {
		return slices.ContainsFunc(h.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s) })
	})
}

// Leave announces that the last holder restores the baseline: until it is done,
// nobody else may take the GPU.
func Leave(g *resource.Held, lineage string) error {
	if _, holds := g.Holder(lineage); !holds {
		return notHeld()
	}
	if others := g.Others(lineage); len(others) > 0 {
		return overtaken("%s has taken the GPU since the plan was made, so its settings stay; %s", describe(others), planAgain)
	}
	g.Leaving = lineage
	return nil
}

// Release removes a holder; a GPU that nobody holds leaves the book. Where it is
// left as it is, somebody has to be there who puts it back later.
func Release(g *resource.Held, lineage string, asItIs bool) error {
	if _, holds := g.Holder(lineage); holds && asItIs && len(g.Holders) == 1 {
		return overtaken("the others have left the GPU since the plan was made, so that its baseline is for this project to restore; %s", planAgain)
	}
	g.Holders = g.Others(lineage)
	if g.Leaving == lineage {
		g.Leaving = ""
	}
	return nil
}

func notHeld() error {
	return refuse("the project does not hold the GPU in the host's ledger; %s", planAgain)
}

// MaySet allows a setting to the only holder, and to any who repairs what was
// set before.
func MaySet(g *resource.Held, lineage string, s resource.Settings) error {
	if _, holds := g.Holder(lineage); !holds {
		return notHeld()
	}
	others := g.Others(lineage)
	if len(others) == 0 || within(s, g.Set) {
		return nil
	}
	return overtaken("%s holds the GPU too, and would be changed with it; %s", describe(others), planAgain)
}

// within reports whether every setting that is given is the same in the other.
func within(s, o resource.Settings) bool {
	return same(s.MIG, o.MIG) && same(s.Persistence, o.Persistence) && same(s.ClockMHz, o.ClockMHz) && same(s.PowerMW, o.PowerMW)
}

func same[T comparable](given, other *T) bool {
	return given == nil || (other != nil && *given == *other)
}

// NoteSet remembers what is set. It is noted before it is done: what may have
// been done has to be undone.
func NoteSet(g *resource.Held, s resource.Settings) {
	if s.MIG != nil {
		g.Set.MIG = s.MIG
	}
	if s.Persistence != nil {
		g.Set.Persistence = s.Persistence
	}
	if s.ClockMHz != nil {
		g.Set.ClockMHz = s.ClockMHz
	}
	if s.PowerMW != nil {
		g.Set.PowerMW = s.PowerMW
	}
}

// NoteSerial remembers which state of a holder will know of what is noted here.
func NoteSerial(g *resource.Held, who resource.Holder) {
	for i := range g.Holders {
		if h := &g.Holders[i]; h.Lineage == who.Lineage {
			h.Serial = max(h.Serial, who.Serial)
		}
	}
}

// NoteSlice remembers a slice of a holder, or knows it better than before.
func NoteSlice(g *resource.Held, lineage string, s resource.LiveSlice) error {
	for i := range g.Holders {
		h := &g.Holders[i]
		if h.Lineage != lineage {
			continue
		}
		h.Slices = slices.DeleteFunc(h.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s.Slice) })
		h.Slices = append(h.Slices, s)
		return nil
	}
	return notHeld()
}

// MayDestroy allows to destroy a slice to the holder that made it.
func MayDestroy(g *resource.Held, lineage string, s resource.LiveSlice) error {
	h, holds := g.Holder(lineage)
	if !holds {
		return notHeld()
	}
	for _, o := range g.Others(lineage) {
		if slices.ContainsFunc(o.Slices, func(theirs resource.LiveSlice) bool { return theirs.UUID != "" && theirs.UUID == s.UUID }) {
			return refuse("the slice %s was made by %s; it is left alone; %s", s.UUID, describe([]resource.Holder{o}), planAgain)
		}
	}
	for _, own := range h.Slices {
		if at(own.Slice) == at(s.Slice) && (own.UUID == s.UUID || own.UUID == "" || s.UUID == "") {
			return nil
		}
	}
	return refuse("the ledger knows of no %s slice at slot %d that this project made, so it is left alone; %s", s.Profile, s.Start, planAgain)
}

// DropSlice forgets a slice that is gone.
func DropSlice(g *resource.Held, lineage string, s resource.LiveSlice) {
	for i := range g.Holders {
		if h := &g.Holders[i]; h.Lineage == lineage {
			h.Slices = slices.DeleteFunc(h.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s.Slice) })
		}
	}
}

// describe names holders for people.
func describe(holders []resource.Holder) string {
	if len(holders) == 0 {
		return "nobody"
	}
	words := fmt.Sprintf("the project of %s with its state in %s", holders[0].User, holders[0].State)
	if more := len(holders) - 1; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}
