// Package ledger keeps the ledger of a host: the baseline of each GPU, from before cosplay first changed it, and its
// holders, across all projects and users. Only the agent writes it; every user of the host can read it.
package ledger

import (
	"fmt"
	"slices"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// RefusedError is a change that the ledger does not allow.
type RefusedError struct {
	prose.Advice
	Overtaken bool // another project was faster: a new plan may do better
}

// Unwrap returns the advice, so that prose.AdviceOf finds it.
func (e *RefusedError) Unwrap() error { return e.Advice }

func refuse(fix, format string, args ...any) error {
	return &RefusedError{Advice: prose.Advice{What: fmt.Sprintf(format, args...), Fix: fix}}
}

func overtaken(fix, format string, args ...any) error {
	return &RefusedError{Advice: prose.Advice{What: fmt.Sprintf(format, args...), Fix: fix}, Overtaken: true}
}

const planAgain = "run cosplay plan, which reads the GPU again"

// Take is the request of a project to acquire a GPU.
type Take struct {
	Baseline   resource.Settings `json:"baseline"` // that its plan saw, or that its state has
	LockBefore bool              `json:"lock_before,omitempty"`
	FromState  bool              `json:"from_state,omitempty"` // the baseline is that of its state: the ledger was lost
	Whole      bool              `json:"whole,omitempty"`      // without MIG
	Others     []string          `json:"others"`               // lineages of the holders that its plan counted on

	// Slices are those that the project has created, by its state. The ledger has them too, unless it was lost.
	Slices []resource.LiveSlice `json:"slices,omitempty"`

	// Stated says that the configuration states the baseline: another tool changed the GPU before cosplay came.
	Stated bool `json:"stated,omitempty"`

	// Changed are the settings that this tool has set. They count as set by cosplay, so that the last holder restores them.
	Changed resource.Settings `json:"changed,omitzero"`

	// Trusted requests come from root, or are about a ledger that belongs to the user: the
	// agent trusts what they state about the past. Never part of a request.
	Trusted bool `json:"-"`
}

// Found is a GPU as the agent has read it.
type Found struct {
	GPU      resource.GPU
	Settings resource.Settings // nil where the GPU does not have one or does not report it
	BootID   string
	Now      string // RFC 3339
}

// still are the settings that the GPU has now.
func (f *Found) still(s resource.Settings) resource.Settings {
	for setting, value := range s.All() {
		if f == nil || !f.Settings.Is(setting, value) {
			s = s.Without(setting)
		}
	}
	return s
}

// Hold adds a holder. It fails if there is a holder that the plan did not count on, since
// one would harm the other. The first holder's baseline is what the agent found.
func Hold(g *resource.Page, who resource.Holder, t Take, found *Found) error {
	if g.Leaving != "" && g.Leaving != who.Lineage {
		return overtaken("run the same command again in a moment", "another project restores the baseline of the GPU now (%s)", describe(g.Holders))
	}
	for _, o := range g.Others(who.Lineage) {
		if !slices.Contains(t.Others, o.Lineage) {
			return overtaken(planAgain, "%s has taken the GPU since the plan was made", describe([]resource.Holder{o}))
		}
		if o.Whole || t.Whole {
			return overtaken(planAgain, "%s holds the GPU, and one without MIG has room for one project only", describe([]resource.Holder{o}))
		}
	}
	if len(t.Others) > 0 && len(g.Holders) == 0 {
		return overtaken(planAgain, "all who held the GPU have left it since the plan was made, and it has its baseline again")
	}
	if len(g.Holders) == 0 {
		if err := begin(g, t, found); err != nil {
			return err
		}
	}
	g.Leaving = ""
	for i := range g.Holders { // they joined before, whatever a clock that was ahead recorded
		if who.Since != "" {
			g.Holders[i].Since = min(g.Holders[i].Since, who.Since)
		}
	}
	who.Whole = t.Whole
	if i := slices.IndexFunc(g.Holders, func(o resource.Holder) bool { return o.Lineage == who.Lineage }); i >= 0 {
		who.Since, who.Slices, who.Serial = g.Holders[i].Since, g.Holders[i].Slices, max(who.Serial, g.Holders[i].Serial)
		if first := g.Holders[i]; first.UID != nil { // root may act for the first user
			who.User, who.UID = first.User, first.UID
		}
		g.Holders = slices.Delete(g.Holders, i, i+1)
	}
	if who.UID != nil && *who.UID != 0 && projectsOf(*who.UID, g.Holders) >= maxProjects {
		return refuse("", "%d projects of %s hold the GPU already; it has slices for fewer", maxProjects, who.User)
	}
	who.Slices = append(who.Slices, reclaim(g, who)...)
	for _, s := range t.Slices {
		if !noted(*g, who, s.Slice) {
			s.Imported = !t.FromState
			who.Slices = append(who.Slices, s)
		}
	}
	g.Holders = append(g.Holders, who)
	return nil
}

// maxProjects bounds the projects of one user on a GPU, since each makes the page longer
// that all users read. No GPU has more slices.
const maxProjects = 8

func projectsOf(uid int, holders []resource.Holder) (count int) {
	for _, h := range holders {
		if h.UID != nil && *h.UID == uid {
			count++
		}
	}
	return count
}

func begin(g *resource.Page, t Take, found *Found) error {
	*g = resource.Page{UUID: g.UUID, BootID: g.BootID, Departed: g.Departed, Changes: g.Changes}
	if found == nil || (t.FromState || t.Stated) && t.Trusted {
		g.Baseline, g.LockBefore, g.Set = t.Baseline, t.LockBefore, found.still(t.Changed)
		return nil
	}
	for setting, was := range t.Baseline.All() {
		now, known := found.Settings.Get(setting)
		switch {
		case !setting.Readable(), known && now == was, !known && t.FromState:
			continue
		case !known: // the plan changes it, and without its baseline nothing could restore it
			lacks, _ := found.GPU.Degradation(setting.Feature())
			return overtaken(planAgain, "the %s of the GPU cannot be read now (%s), and was %s when the plan was made", setting.Words(), lacks, Exact(t.Baseline, setting))
		}
		name, saw, is := setting.Words(), Exact(t.Baseline, setting), Exact(found.Settings, setting)
		if t.Stated {
			return refuse("sudo cosplay apply", "the configuration states that the baseline of the GPU is %s %s, where it is %s now: only root can confirm that", name, saw, is)
		}
		if t.FromState {
			return refuse("sudo cosplay apply, or sudo cosplay destroy", "the host's ledger does not have the GPU, and the project's state says that its baseline is %s %s, where it is %s now: only root can confirm that", name, saw, is)
		}
		return overtaken(planAgain, "the %s of the GPU is %s, and was %s when the plan was made", name, is, saw)
	}
	g.Baseline = found.Settings.Copy(resource.SMClock, t.Baseline) // the agent has made sure of it
	g.LockBefore = !g.Baseline.Has(resource.SMClock) && found.GPU.LooksLocked()
	g.Departed = existing(g.Departed, found)
	return nil
}

// at is a slice without the name of its host, which differs between projects.
func at(s resource.Slice) resource.Slice {
	s.Host = ""
	return s
}

// mayActFor refuses a user who acts for the project of another user. Root may act for each
// project, and so may a user without a uid, on a host that does not identify users.
func mayActFor(g *resource.Page, who resource.Holder) error {
	first, holds := g.Holder(who.Lineage)
	if !holds || who.UID == nil || *who.UID == 0 || (first.UID != nil && *first.UID == *who.UID) {
		return nil
	}
	return refuse("sudo cosplay apply, since root can act for both", "%s holds the GPU, and %s is another user", describe([]resource.Holder{first}), who.User)
}

// noted reports whether the page has a slice for any holder.
func noted(g resource.Page, who resource.Holder, s resource.Slice) bool {
	return slices.ContainsFunc(append(g.Others(who.Lineage), who), func(h resource.Holder) bool {
		return slices.ContainsFunc(h.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s) })
	})
}

func notHeld() error {
	return refuse(planAgain, "the project does not hold the GPU in the host's ledger")
}

// MaySet allows a setting to the only holder, and to each holder if the page has the value already, or had it before a reboot.
func MaySet(g *resource.Page, lineage string, s resource.Settings) error {
	if _, holds := g.Holder(lineage); !holds {
		return notHeld()
	}
	if g.Leaving != "" && g.Leaving == lineage && !within(s, g.Baseline.Over(unlocked)) {
		return refuse(planAgain, "the project restores the baseline of the GPU and may set nothing else")
	}
	others := g.Binding(lineage)
	if len(others) == 0 || within(s, g.Set) || within(s, g.Undone.Over(g.Set)) {
		return nil
	}
	return overtaken(planAgain, "%s holds the GPU too, and would be changed with it", describe(others))
}

// unlocked is the clock lock of a baseline that has none.
var unlocked = resource.Settings{}.With(resource.SMClock, 0)

// within reports whether all settings of s are the same in o.
func within(s, o resource.Settings) bool { return s.Over(o) == o }

// holderOf is the holder with a lineage in a page; nil if there is none.
func holderOf(g *resource.Page, lineage string) *resource.Holder {
	i := slices.IndexFunc(g.Holders, func(h resource.Holder) bool { return h.Lineage == lineage })
	if i < 0 {
		return nil
	}
	return &g.Holders[i]
}

// Lists reports whether a page has a slice for this holder.
func Lists(g resource.Page, who resource.Holder, s resource.Slice) bool {
	own, _ := g.Holder(who.Lineage)
	return slices.ContainsFunc(own.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s) })
}

// NoteSerial records which state of a holder will have the objects that the page lists now.
func NoteSerial(g *resource.Page, who resource.Holder) {
	if h := holderOf(g, who.Lineage); h != nil {
		h.Serial = max(h.Serial, who.Serial)
	}
}

// NoteSlice records a slice of a holder, or replaces its record.
func NoteSlice(g *resource.Page, lineage string, s resource.LiveSlice) error {
	h := holderOf(g, lineage)
	if h == nil {
		return notHeld()
	}
	DropSlice(g, lineage, s)
	h.Slices = append(h.Slices, s)
	return nil
}

// maySplit allows only the holder that created a slice to create another one in its GPU instance.
func maySplit(g resource.Page, lineage string, s resource.Slice, beside string) error {
	own, _ := g.Holder(lineage)
	if beside == "" || slices.ContainsFunc(own.Slices, func(o resource.LiveSlice) bool {
		return o.UUID == beside && at(o.Instance()) == at(s.Instance())
	}) {
		return nil
	}
	return refuse(planAgain, "the ledger knows of no slice %s at slot %d that this project made, so no %s is created in its GPU instance", beside, s.Start, s.Profile)
}

// MayDestroy allows only the holder that created a slice to destroy it.
func MayDestroy(g *resource.Page, lineage string, s resource.LiveSlice) error {
	h, holds := g.Holder(lineage)
	if !holds {
		return notHeld()
	}
	for _, o := range g.Others(lineage) {
		if slices.ContainsFunc(o.Slices, func(theirs resource.LiveSlice) bool {
			return theirs.UUID != "" && theirs.Match(s) != resource.OtherSlice
		}) {
			return refuse(planAgain, "the slice %s was made by %s; it is left alone", s.UUID, describe([]resource.Holder{o}))
		}
	}
	for _, own := range h.Slices {
		if at(own.Slice) == at(s.Slice) && (own.UUID == "" || s.UUID == "" || own.Match(s) != resource.OtherSlice) {
			return nil
		}
	}
	return refuse(planAgain, "the ledger knows of no %s slice at slot %d that this project made, so it is left alone", s.Profile, s.Start)
}

// DropSlice removes the record of a slice.
func DropSlice(g *resource.Page, lineage string, s resource.LiveSlice) {
	if h := holderOf(g, lineage); h != nil {
		h.Slices = slices.DeleteFunc(h.Slices, func(o resource.LiveSlice) bool { return at(o.Slice) == at(s.Slice) })
	}
}

func describe(holders []resource.Holder) string {
	if len(holders) == 0 {
		return "no project"
	}
	words := fmt.Sprintf("the project of %s with its state in %s", holders[0].User, holders[0].State)
	if more := len(holders) - 1; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}
