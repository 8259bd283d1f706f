package render

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// fleetText is the HTML file with its style.
//
//go:embed fleet.html.tmpl
var fleetText string

// About is what an HTML file says besides its view.
type About struct {
	Project string // its name; "" for a machine without a project
	Version string // of cosplay
}

// Page is a view that can be an HTML file.
type Page interface {
	View
	sheet(s Style, about About) sheet
}

// HTML writes a view as one file that has no scripts and refers to nothing outside. Characters that control a terminal
// control a browser as well, for example the direction of text, so the file has the same escapes as a screen.
func HTML(w io.Writer, s Style, about About, v Page) error {
	s.Color, s.Unicode, s.Width = false, true, defaultWidth
	var b strings.Builder
	if err := template.Must(template.New("fleet").Parse(fleetText)).Execute(&b, v.sheet(s, about)); err != nil {
		return err
	}
	_, err := io.WriteString(terminal.Raw(w), terminal.Lines(b.String()))
	return err
}

// sheet is what an HTML file shows, from top to bottom.
type sheet struct {
	About
	At        string // when the hosts were read
	Hosts     string
	Simulated string  // the names of the hosts that are simulated
	Summary   []block // the lines that end a screen
	Tiles     []tile
	Drift     []block // what was changed outside of cosplay
	Attention []block // what else is wrong
	Tenants   []block // the projects that hold GPUs, on a machine without a project
	GPUs      []sheetHost
	Legend    []legendItem
	Kinds     folded[sheetKind]
	Verdicts  []block
	Shared    []string   // limits that all kinds of sessions have
	Limits    []disguise // the other ones
	Versions  []block
}

// tile is a count at the top of the file.
type tile struct {
	Name, Count, Note string
	Wrong             bool
}

// folded is a list of which a reader sees the first, and the others on demand.
type folded[T any] struct{ Shown, More []T }

// mostWrong is how many things with which something is wrong are not folded.
const mostWrong = 50

// foldWrong orders a list so that what is wrong comes first, and shows so many, or all that is wrong.
func foldWrong[T any](s Style, all []T, most int, wrong func(T) bool) folded[T] {
	place := func(one T) int { return either(wrong(one), 0, 1) }
	slices.SortStableFunc(all, func(a, b T) int { return place(a) - place(b) })
	if most = min(len(all), max(most, min(count(all, wrong), mostWrong))); s.Verbose {
		most = len(all)
	}
	return folded[T]{all[:most], all[most:]}
}

// block is a paragraph or a table of a screen that becomes HTML.
type block struct {
	indent int
	line   line
	table  *table
}

// blocks are what functions that draw a screen would print.
func (s Style) blocks(draw func(p *page)) (all []block) {
	p := newPage(s)
	p.paper = &all
	draw(p)
	return all
}

// The methods below are for the template.

func (b block) Line() line    { return b.line }
func (b block) Table() *table { return b.table }
func (b block) Detail() bool  { return b.indent > 0 }

func (p piece) Text() string { return p.text }

// Class is the ink of a piece, as the style of the file names it.
func (p piece) Class() string {
	return map[ink]string{strong: "strong", dim: "dim", added: "good", changed: "warn", removed: "bad", replaced: "warn", drifted: "warn"}[p.ink]
}

func (d disguise) Of() string       { return d.of }
func (d disguise) Limits() []string { return d.limits }

// paperCell is a cell of a table in HTML.
type paperCell struct {
	Line  line
	Right bool
}

// paperRow is a row of a table in HTML: cells, or a line across all of them.
type paperRow struct {
	Cells  []paperCell
	Across line
}

// shown are the columns of a table that HTML has: those with something in them, but for signs.
func (t *table) shown() []int {
	var all []int
	for i, width := range t.widths() {
		if width > 0 && !t.columns[i].screen {
			all = append(all, i)
		}
	}
	return all
}

// Heads are the headings of the columns.
func (t *table) Heads() []paperCell {
	return each(t.shown(), func(i int) paperCell {
		c := t.columns[i]
		return paperCell{text(either(c.name != "", c.name, c.title)), c.right}
	})
}

// Body are the rows below the headings.
func (t *table) Body() []paperRow {
	columns := t.shown()
	return each(t.rows, func(r row) paperRow {
		if r.cells == nil {
			return paperRow{Across: r.across}
		}
		return paperRow{Cells: each(columns, func(i int) (c paperCell) {
			if c.Right = t.columns[i].right; i < len(r.cells) {
				c.Line = r.cells[i]
			}
			return c
		})}
	})
}

// sheet is the status of a project as an HTML file.
func (v StatusView) sheet(s Style, about About) sheet {
	f := newFleet(v)
	out := f.common(s, about)
	out.Summary = s.blocks(func(p *page) { p.statusSummary(f) })
	out.Tiles = f.tiles()
	// The drift is drawn as drift draws it, which has a plan.
	drift := PlanView{Live: v.Live, Plan: &plan.Plan{Diff: diff.Diff{Drift: v.Drift}}}
	out.Drift = s.blocks(func(p *page) { p.drift(drift) })
	out.Attention = s.blocks(func(p *page) { p.attention(v) })
	out.Kinds = f.kinds(s)
	out.Verdicts = s.blocks(func(p *page) { p.verdicts(v.verdicts(), v.Reports) })
	all := disguises(v.Live, each(v.Prior.Sessions, func(s resource.PriorSession) resource.Session { return s.Session }))
	if out.Limits = all; len(all) > 1 {
		out.Shared, out.Limits = apart(all)
	}
	return out
}

// sheet is a machine without a project as an HTML file.
func (v MachineView) sheet(s Style, about About) sheet {
	f := newFleet(v.withLocks())
	out := f.common(s, about)
	out.Hosts = "" // the title says it
	for i, h := range v.Live.Hosts {
		h.Name = "This machine"
		out.GPUs[i].Words = hostWords(h)
	}
	if v.Unread != nil {
		out.GPUs, out.Simulated = nil, ""
	}
	out.Attention = s.blocks(func(p *page) { p.unread(v) })
	out.Tenants = s.blocks(func(p *page) {
		p.tenantTable(v)
		p.waiting(v)
	})
	out.Summary = s.blocks(func(p *page) { p.machineSummary(v) })
	return out
}

// common is what a project and a machine show alike.
func (f fleet) common(s Style, about About) sheet {
	names := func(hosts []resource.Host) string {
		return prose.And(prose.Few(each(hosts, func(h resource.Host) string { return h.Name }), mostHosts))
	}
	out := sheet{About: about, At: f.Now.String(), Hosts: given(len(f.Live.Hosts), prose.Choose(len(f.Live.Hosts), "host ", "hosts ")+names(f.Live.Hosts))}
	out.Simulated = names(prose.Only(f.Live.Hosts, func(h resource.Host) bool { return h.Simulated != "" }))
	out.GPUs, out.Legend = f.gpuSheets(s)
	out.Versions = s.blocks(func(p *page) { p.versions(f.StatusView, about) })
	return out
}

// mostHosts is the number of hosts that the head of the file names.
const mostHosts = 8

// tiles are the counts at the top.
func (f fleet) tiles() []tile {
	t, gpus, taken, slots := f.tally(), 0, 0, 0
	unread := count(f.Live.Hosts, func(h resource.Host) bool { return h.Unreachable != "" })
	unusable := 0
	for _, h := range f.Live.Hosts {
		gpus, unusable = gpus+len(h.GPUs), unusable+len(h.Unusable)
		for _, g := range h.GPUs {
			if m := f.slotMap(g); m.mig {
				taken, slots = taken+m.computeTaken(m.slices()), slots+m.model.ComputeSlices
			}
		}
	}
	all := []tile{
		{"Sessions", fmt.Sprint(t.all), fmt.Sprintf("%d running", t.running), t.running < t.all},
		{"Drift", fmt.Sprint(t.drift), either(t.drift == 0, "no drift", prose.Choose(t.drift, "place", "places")), t.drift > 0},
		{"GPUs", fmt.Sprint(gpus), "on " + prose.Count(len(f.Live.Hosts), "host") + given(unusable, fmt.Sprintf(", %d more unusable", unusable)) +
			given(unread, fmt.Sprintf(", %d not read", unread)), unusable+unread > 0},
	}
	if slots > 0 {
		all = append(all, tile{"Compute slices", fmt.Sprint(taken), fmt.Sprintf("of %d taken", slots), false})
	}
	return all
}

// attention lists what is wrong besides drift.
func (p *page) attention(v StatusView) {
	for _, h := range v.Live.Hosts {
		if h.Unreachable != "" {
			p.lead(0, drifted, "Host "+h.Name+" cannot be read:", prose.Sentence(h.Unreachable)+given(h.Remedy, " "+prose.Sentence(h.Remedy)))
		}
	}
	incomplete := prose.Only(v.Prior.Sessions, resource.PriorSession.Incomplete)
	unfinished := append(each(incomplete, func(s resource.PriorSession) resource.Address { return s.Address }), v.Prior.Missing...)
	p.unfinished(PlanView{Prior: v.Prior, Plan: &plan.Plan{Diff: diff.Diff{Unfinished: unfinished}}})
	p.orphans(v)
	p.leftovers(v.leftovers())
	p.down(v.Prior.Expired)
}

// leftovers are those of interrupted runs that are not among the orphans.
func (v StatusView) leftovers() (all []resource.Body) {
	for _, h := range v.Live.Hosts {
		orphans := v.orphans(h)
		all = append(all, prose.Only(h.Leftovers, func(c resource.Body) bool {
			return !slices.ContainsFunc(orphans, func(o resource.Body) bool { return o.Session == c.Session })
		})...)
	}
	return all
}

// versions lists cosplay, drivers, engines and images.
func (p *page) versions(v StatusView, about About) {
	t := &table{columns: []column{{name: "What"}, {name: "Version"}, {name: "Sessions run in", prose: true}}}
	t.texts("cosplay", about.Version)
	for _, h := range v.Live.Hosts {
		driver := either(h.Driver == "", "unknown", h.Driver) + given(h.Simulated, " (simulated)")
		t.texts("driver of host "+h.Name, driver, runtimeWords(h))
	}
	var images prose.Groups[resource.Address]
	for _, s := range v.Prior.Sessions {
		if s.Spec.Image != "" {
			images.Add(s.Spec.Image, s.Address)
		}
	}
	for _, image := range images.Texts {
		t.texts("image of "+prose.Count(len(images.Of[image]), "session"), image)
	}
	p.table(t)
}
