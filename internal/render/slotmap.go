package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/resource"
)

// slotMap is what sits where on one GPU.
type slotMap struct {
	model resource.Model
	mig   bool // cut into slots; else the GPU is one cell
	taken []occupant
}

// occupant is a slice in a slot map: a session's, or a foreign one.
type occupant struct {
	slice   resource.Slice
	session *resource.Address // nil for a foreign slice
	label   string
	ink     ink
}

// slotCell is a run of slots that belong together.
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
	cellUnusable // free, but no profile fits there any more
)

// undividedSlots is how wide a GPU is drawn that has no slots.
const undividedSlots = 8

func (m slotMap) slots() int {
	if m.model.MemorySlices > 0 {
		return m.model.MemorySlices
	}
	return undividedSlots
}

// cells cuts the GPU into what is taken and what is free.
func (m slotMap) cells() []slotCell {
	if !m.mig {
		whole := slotCell{size: m.slots(), kind: cellFree}
		if len(m.taken) > 0 {
			whole.kind, whole.occupant = kindOf(m.taken[0]), m.taken[0]
		}
		return []slotCell{whole}
	}
	var cells []slotCell
	usable := m.usable()
	for slot := 0; slot < m.slots(); {
		if o, ok := m.at(slot); ok {
			end := min(o.slice.Start+o.slice.Size, m.slots())
			cells = append(cells, slotCell{size: max(1, end-slot), kind: kindOf(o), occupant: o})
			slot = max(end, slot+1)
			continue
		}
		kind := cellUnusable
		if usable[slot] {
			kind = cellFree
		}
		cells = append(cells, slotCell{size: 1, kind: kind})
		slot++
	}
	return cells
}

func kindOf(o occupant) cellKind {
	if o.session == nil {
		return cellForeign
	}
	return cellTaken
}

func (m slotMap) at(slot int) (occupant, bool) {
	for _, o := range m.taken {
		if o.slice.Start <= slot && slot < o.slice.Start+o.slice.Size {
			return o, true
		}
	}
	return occupant{}, false
}

// usable tells for each slot whether some profile could still cover it: its placement is free and enough compute
// slices are left. A board with 8 memory slices has 7 compute slices, so its last slot is often free and of no use.
func (m slotMap) usable() []bool {
	usable := make([]bool, m.slots())
	left := m.model.ComputeSlices - m.computeTaken()
	for _, p := range m.model.Profiles {
		if p.ComputeSlices > left {
			continue
		}
		for _, start := range p.Starts {
			if m.free(start, p.MemorySlices) {
				for slot := start; slot < start+p.MemorySlices; slot++ {
					usable[slot] = true
				}
			}
		}
	}
	return usable
}

func (m slotMap) free(start, size int) bool {
	if start+size > m.slots() {
		return false
	}
	return !slices.ContainsFunc(m.taken, func(o occupant) bool {
		return o.slice.Start < start+size && start < o.slice.Start+o.slice.Size
	})
}

// computeTaken adds up the compute slices in use. A profile that the model does not list counts by the number that
// its name begins with.
func (m slotMap) computeTaken() int {
	n := 0
	for _, o := range m.taken {
		if p, ok := m.model.Profile(o.slice.Profile); ok {
			n += p.ComputeSlices
		} else if digits, _, ok := strings.Cut(o.slice.Profile, "g."); ok {
			compute, _ := strconv.Atoi(digits)
			n += compute
		}
	}
	return n
}

// grid is how wide slots are drawn, the same for all maps that stand together.
type grid struct {
	label int // columns of a slot's label
	pad   int // blanks on both sides of it
}

// newGrid finds the widest grid for maps that have to stand in some columns.
func newGrid(maps []slotMap, room int) grid {
	g, slots := grid{label: 2, pad: 1}, 1
	for _, m := range maps {
		slots = max(slots, m.slots())
		for _, o := range m.taken {
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

// bar draws one GPU, its wide slices as wide cells.
func (s Style) bar(g grid, m slotMap) line {
	border := piece{dim, s.pick("│", "|")}
	out := line{border}
	for _, c := range m.cells() {
		inner := g.columns(c.size) - 2
		label, ink := s.cellLabel(c, inner-2*g.pad)
		before := g.pad
		if c.size > 1 {
			before = (inner - columns(label)) / 2
		}
		out = append(out, pad(before), piece{ink, label}, pad(inner-before-columns(label)), border)
	}
	return out
}

func (s Style) cellLabel(c slotCell, room int) (string, ink) {
	switch c.kind {
	case cellForeign:
		return strings.Repeat("#", max(1, room)), dim
	case cellFree:
		return s.freeSign(), dim
	case cellUnusable:
		return s.unusableSign(), dim
	default:
		return c.label, c.ink
	}
}

func (s Style) freeSign() string     { return s.pick("·", ".") }
func (s Style) unusableSign() string { return s.pick("×", "-") }

// legend explains all that stands in some maps.
func (s Style) legend(l labels, maps ...slotMap) []string {
	var (
		sessions                []resource.Address
		foreign, free, unusable bool
	)
	for _, m := range maps {
		for _, c := range m.cells() {
			switch c.kind {
			case cellTaken:
				sessions = append(sessions, *c.session)
			case cellForeign:
				foreign = true
			case cellFree:
				free = true
			case cellUnusable:
				unusable = true
			}
		}
	}
	all := l.legend(sessions)
	if foreign {
		all = append(all, "## = foreign")
	}
	if free {
		all = append(all, s.freeSign()+" = free")
	}
	if unusable {
		all = append(all, s.unusableSign()+" = no slice fits there")
	}
	return all
}

// slotMap draws one GPU under a ruler, the legend beside it or below.
func (p *page) slotMap(indent int, m slotMap, l labels) {
	const lead = "slots  "
	var (
		g     = newGrid([]slotMap{m}, p.width()-indent-len(lead))
		bar   = p.bar(g, m)
		items = p.Style.legend(l, m)
		first = "whole  "
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

// Map shows the slot maps alone, one GPU a line.
func Map(w io.Writer, s Style, v StatusView) {
	p := newPage(s)
	var (
		f    = newFleet(v)
		maps []slotMap
		name int
	)
	for _, h := range v.Live.Hosts {
		for _, g := range h.GPUs {
			maps = append(maps, f.slotMap(g))
			name = max(name, columns(mapName(g))+2)
		}
	}
	if len(maps) == 0 {
		p.print(0, text("There is no GPU."))
		p.flush(w)
		return
	}
	g, rest := newGrid(maps, p.width()-name), maps
	for _, h := range v.Live.Hosts {
		p.gap()
		if len(v.Live.Hosts) > 1 {
			p.print(0, join(inked(strong, "host "), text(h.Name)))
		}
		p.mapHost(h, g, rest[:len(h.GPUs)], name)
		rest = rest[len(h.GPUs):]
	}
	p.gap()
	p.legendLines(0, p.Style.legend(f.labels, slices.DeleteFunc(maps, slotMap.bare)...))
	p.flush(w)
}

// mapHost draws the GPUs of one host, under a ruler for as long as they have as many slots.
func (p *page) mapHost(h resource.Host, g grid, maps []slotMap, name int) {
	ruled := 0
	for i, m := range maps {
		label := mapName(h.GPUs[i])
		if m.bare() {
			p.print(0, join(text(label), line{pad(name - columns(label))}, inked(dim, uncutWords(h.GPUs[i]))))
			continue
		}
		if m.mig && m.slots() != ruled {
			ruled = m.slots()
			p.print(0, join(line{pad(name)}, g.ruler(ruled)))
		}
		p.print(0, join(text(label), line{pad(name - columns(label))}, p.bar(g, m)))
	}
}

// bare reports whether there is nothing to draw: no slots and nobody on it.
func (m slotMap) bare() bool { return !m.mig && len(m.taken) == 0 }

// uncutWords stand for the slots of a GPU that has none now.
func uncutWords(g resource.GPU) string {
	if g.Model.MIG() || g.MIGCapable {
		return "MIG off, free"
	}
	return "free"
}

func mapName(g resource.GPU) string { return fmt.Sprintf("GPU %d  %s", g.Index, g.Model.ShortModel()) }
