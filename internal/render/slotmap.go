package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/resource"
)

// slotMap has the slices of one GPU by their slots.
type slotMap struct {
	model resource.Model
	mig   bool // the GPU has slots; otherwise it is one cell
	taken []occupant
}

// occupant is a slice in a slot map: a session's, or a foreign one.
type occupant struct {
	slice   resource.Slice
	session *resource.Address  // nil for a foreign slice
	others  []resource.Address // with which it shares a MIG slice
	mib     int                // its memory on a GPU that sessions share
	label   string
	ink     ink
}

// slotCell is a run of slots of one slice, or a free slot.
type slotCell struct {
	size int
	kind cellKind
	occupant
}

type cellKind uint8

const (
	cellTaken cellKind = iota
	cellForeign
	cellFree
	cellUnusable // free, but no profile fits there
)

// cellSigns label the cells that no session has. The legend has their meanings.
var cellSigns = map[cellKind]struct{ unicode, ascii, meaning string }{
	cellForeign: {"##", "##", "foreign"}, cellFree: {"·", ".", "free"}, cellUnusable: {"×", "-", "no slice fits there"},
}

// undividedSlots is the width in slots of a GPU that has none.
const undividedSlots = 8

func (m slotMap) slots() int {
	if m.shared() {
		return max(undividedSlots, len(m.taken)+1)
	}
	return cmp.Or(m.model.MemorySlices, undividedSlots)
}

// shared reports whether sessions share the whole GPU.
func (m slotMap) shared() bool { return !m.mig && len(m.taken) > 0 && m.taken[0].slice.Shared() }

// shares are the parts of a GPU's memory that its sessions have, each at least a slot wide, and what is free unless that
// is less than half a slot.
func (m slotMap) shares() (cells []slotCell) {
	free := m.model.MemoryMiB
	parts := make([]int, 0, len(m.taken)+1) // MiB
	for _, o := range m.taken {
		parts, free = append(parts, o.mib), free-o.mib
		cells = append(cells, o.cell(1))
	}
	if 2*free*m.slots() >= m.model.MemoryMiB {
		parts, cells = append(parts, free), append(cells, slotCell{size: 1, kind: cellFree})
	}
	sum := 0
	for _, mib := range parts {
		sum += mib
	}
	missing := func(i int) int { return parts[i]*m.slots() - cells[i].size*sum }
	for range m.slots() - len(cells) { // to the part that has least for its memory
		narrow := 0
		for i := range parts {
			if missing(i) > missing(narrow) {
				narrow = i
			}
		}
		cells[narrow].size++
	}
	return cells
}

// slices returns what is taken of a GPU with slots. The sessions that share a slice, or that have compute instances in
// one GPU instance, have one cell, with a label in parts.
func (m slotMap) slices() (all []occupant) {
	if !slices.ContainsFunc(m.taken, func(o occupant) bool { return o.session == nil || o.slice.Shared() || o.slice.Divides() }) {
		return m.taken // each is alone
	}
	taken := slices.Clone(m.taken)
	place := func(o occupant) int {
		if o.session == nil { // foreign ones last
			return o.slice.ComputeStart + 1<<8
		}
		return o.slice.ComputeStart
	}
	slices.SortStableFunc(taken, func(a, b occupant) int { return place(a) - place(b) })
	for _, o := range taken {
		i := slices.IndexFunc(all, func(a occupant) bool {
			return a.session != nil && o.session != nil && a.slice.Beside(o.slice) || o.slice.Divides() && a.slice.Instance() == o.slice.Instance()
		})
		if i < 0 {
			all = append(all, o)
			continue
		}
		at := &all[i]
		if o.session == nil {
			if at.session != nil && !strings.HasSuffix(at.label, foreignPart) {
				at.label += foreignPart
			}
			continue
		}
		at.others = append(at.others, *o.session)
		switch first, _, _ := strings.Cut(at.label, partBorder); {
		case len(at.others) < maxParts:
			at.label += partBorder + o.label
		default:
			at.label = fmt.Sprintf("%s%s+%d", first, partBorder, len(at.others))
		}
	}
	return all
}

const (
	foreignPart = partBorder + "##" // a compute instance of another process in a GPU instance of the project

	maxParts   = 3   // of a cell's label
	partBorder = ":" // between them
)

// cells returns the taken and the free parts of the GPU.
func (m slotMap) cells() []slotCell {
	if !m.mig && len(m.taken) == 0 {
		return []slotCell{{size: m.slots(), kind: cellFree}}
	}
	if m.shared() {
		return m.shares()
	}
	if !m.mig {
		return []slotCell{m.taken[0].cell(m.slots())}
	}
	taken := m.slices()
	usable := m.usable(taken)
	cells := make([]slotCell, 0, m.slots())
	for slot := 0; slot < m.slots(); slot += cells[len(cells)-1].size {
		i := slices.IndexFunc(taken, func(o occupant) bool { return o.slice.Start <= slot && slot < o.slice.Start+o.slice.Size })
		switch {
		case i >= 0:
			cells = append(cells, taken[i].cell(min(taken[i].slice.Start+taken[i].slice.Size, m.slots())-slot))
		case usable[slot]:
			cells = append(cells, slotCell{size: 1, kind: cellFree})
		default:
			cells = append(cells, slotCell{size: 1, kind: cellUnusable})
		}
	}
	return cells
}

func (o occupant) cell(size int) slotCell {
	if o.session == nil {
		return slotCell{size, cellForeign, o}
	}
	return slotCell{size, cellTaken, o}
}

// usable reports for each slot whether a profile can still cover it: its placement is free and enough compute slices
// are left. A GPU with 8 memory slices has 7 compute slices, so no profile can use its last slot in many placements.
func (m slotMap) usable(taken []occupant) []bool {
	usable := make([]bool, m.slots())
	left := m.model.ComputeSlices - m.computeTaken(taken)
	for _, p := range m.model.Profiles {
		for _, start := range p.Starts {
			for slot := start; p.ComputeSlices <= left && m.free(start, p.MemorySlices) && slot < start+p.MemorySlices; slot++ {
				usable[slot] = true
			}
		}
	}
	return usable
}

func (m slotMap) free(start, size int) bool {
	return start+size <= m.slots() && !slices.ContainsFunc(m.taken, func(o occupant) bool {
		return o.slice.Start < start+size && start < o.slice.Start+o.slice.Size
	})
}

// computeTaken is the number of compute slices in use. A profile that the model does not list has the number that its
// name begins with.
func (m slotMap) computeTaken(taken []occupant) int {
	n := 0
	for _, o := range taken {
		if p, ok := m.model.Profile(o.slice.Profile); ok {
			n += p.ComputeSlices
		} else if digits, _, ok := strings.Cut(o.slice.Profile, "g."); ok {
			compute, _ := strconv.Atoi(digits)
			n += compute
		}
	}
	return n
}

// grid is the width of slots, equal for all maps on a screen.
type grid struct {
	label int // columns of a slot's label
	pad   int // blanks on both sides of it
}

// newGrid returns the widest grid for maps in a number of columns.
func newGrid(maps []slotMap, room int) grid {
	g, slots := grid{label: 2, pad: 1}, 1
	for _, m := range maps {
		slots = max(slots, m.slots())
		labels := m.slices()
		if m.shared() { // each has a cell
			labels = m.taken
		}
		for _, o := range labels {
			if o.slice.Size <= 1 {
				g.label = max(g.label, columns(o.label))
			}
		}
	}
	if g.columns(slots) > room {
		g.pad = 0
	}
	return g
}

// columns is the room that some slots take, borders included.
func (g grid) columns(slots int) int { return slots*(g.label+2*g.pad+1) + 1 }

// ruler numbers the slots.
func (g grid) ruler(slots int) line {
	var b strings.Builder
	for i := range slots {
		fmt.Fprintf(&b, " %s%-*d%s", strings.Repeat(" ", g.pad), g.label, i, strings.Repeat(" ", g.pad))
	}
	return inked(dim, b.String())
}

// bar draws the cells of one GPU, its wide slices as wide cells.
func (s Style) bar(g grid, cells []slotCell) line {
	border := piece{dim, s.pick("│", "|")}
	out := append(make(line, 0, 1+4*len(cells)), border)
	for _, c := range cells {
		inner := g.columns(c.size) - 2
		label, ink := s.cellLabel(c, inner-2*g.pad)
		before := either(c.size > 1, (inner-columns(label))/2, g.pad)
		out = append(out, pad(before), piece{ink, label}, pad(inner-before-columns(label)), border)
	}
	return out
}

func (s Style) cellLabel(c slotCell, room int) (string, ink) {
	switch c.kind {
	case cellTaken:
		return c.label, c.ink
	case cellForeign:
		return strings.Repeat("#", max(1, room)), dim
	default:
		return s.pick(cellSigns[c.kind].unicode, cellSigns[c.kind].ascii), dim
	}
}

// legend explains the labels of some cells.
func (s Style) legend(l labels, cells []slotCell) []string {
	var sessions []resource.Address
	shown := map[cellKind]bool{}
	for _, c := range cells {
		if shown[c.kind] = true; c.session != nil {
			sessions = append(append(sessions, *c.session), c.others...)
		}
	}
	all := l.legend(sessions)
	for _, kind := range []cellKind{cellForeign, cellFree, cellUnusable} {
		if sign := cellSigns[kind]; shown[kind] {
			all = append(all, s.pick(sign.unicode, sign.ascii)+" = "+sign.meaning)
		}
	}
	return all
}

// slotMap draws one GPU under a ruler, the legend beside it or below.
func (p *page) slotMap(indent int, m slotMap, l labels) {
	const lead = "slots  "
	var (
		g     = newGrid([]slotMap{m}, p.width()-indent-len(lead))
		cells = m.cells()
		bar   = p.bar(g, cells)
		items = p.Style.legend(l, cells)
		first = either(m.shared(), "shared ", "whole  ")
	)
	if m.mig {
		p.print(indent, join(inked(dim, lead), g.ruler(m.slots())))
		first = strings.Repeat(" ", len(lead))
	}
	row := join(inked(dim, first), bar)
	beside := inked(dim, "   "+strings.Join(items, "   "))
	if indent+row.width()+beside.width() <= p.width() {
		p.print(indent, join(row, beside))
		return
	}
	p.print(indent, row)
	p.legendLines(indent+len(lead), items)
}

func (p *page) legendLines(indent int, items []string) {
	var joined line
	for i, item := range items {
		if i > 0 {
			joined = append(joined, piece{dim, ", "})
		}
		if indent+columns(item) < p.width() {
			item = together(item)
		}
		joined = append(joined, piece{dim, item})
	}
	p.flow(indent, indent, joined)
}

// MapView is a status of which the slot maps alone are shown, one GPU a line.
type MapView struct{ StatusView }

func (v MapView) draw(p *page) {
	var (
		f     = newFleet(v.StatusView)
		maps  []slotMap
		drawn []slotCell
		name  int
	)
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			m := f.slotMap(g)
			if maps = append(maps, m); !m.bare() {
				drawn = append(drawn, m.cells()...)
			}
			name = max(name, columns(mapName(g))+2)
		}
	}
	if len(maps) == 0 {
		p.print(0, text("There is no GPU."))
		return
	}
	g, rest := newGrid(maps, p.width()-name), maps
	for _, h := range v.Live.Hosts {
		p.gap()
		if len(v.Live.Hosts) > 1 {
			p.print(0, join(inked(strong, "host "), text(h.Name+given(h.Unreachable, ": cannot be read"))))
		}
		p.mapHost(h, g, rest[:len(h.GPUs)], name)
		rest = rest[len(h.GPUs):]
	}
	p.gap()
	p.legendLines(0, p.Style.legend(f.labels, drawn))
}

// mapHost draws the GPUs of one host. A ruler precedes each run of GPUs with the same number of slots.
func (p *page) mapHost(h resource.Host, g grid, maps []slotMap, name int) {
	ruled := 0
	for i, m := range maps {
		label := mapName(h.GPUs[i])
		bar := p.bar(g, m.cells())
		if m.bare() {
			bar = inked(dim, bareWords(h.GPUs[i]))
		} else if m.mig && m.slots() != ruled {
			ruled = m.slots()
			p.print(0, join(line{pad(name)}, g.ruler(ruled)))
		}
		p.print(0, join(text(label), line{pad(name - columns(label))}, bar))
	}
}

// bare reports whether there is nothing to draw: no slots and no session.
func (m slotMap) bare() bool { return !m.mig && len(m.taken) == 0 }

// bareWords stand for the map of such a GPU.
func bareWords(g resource.GPU) string {
	return given(g.Model.MIG() || g.MIGCapable, "MIG off, ") + "free"
}

func mapName(g resource.GPU) string { return fmt.Sprintf("GPU %d  %s", g.Index, g.Model.ShortModel()) }
