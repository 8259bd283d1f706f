package render

import (
	"fmt"
	"io"
	"slices"

	"cosplay/internal/resource"
)

// Map shows the slot maps alone, one GPU a line.
func Map(w io.Writer, s Style, v StatusView) {
	p := newPage(s)
	var (
		f    = look(v)
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
