package render

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Of more GPUs on a host than gpuCards each has a row instead of a card.
const (
	gpuCards = 4
	gpuRows  = 16 // not folded
)

// sheetHost is a host with its GPUs.
type sheetHost struct {
	Words string
	Notes []block // GPUs that do not answer
	Cards []sheetGPU
	Rows  folded[sheetGPU]
}

// sheetGPU is a GPU with its slot map.
type sheetGPU struct {
	Name, Model, UUID string
	Facts             []sheetFact
	Map               sheetMap
	Notes             []block // what is wrong with it, and who else holds it
}

// Fact is the value of a reading; "" without one.
func (g sheetGPU) Fact(name string) string {
	for _, f := range g.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// sheetFact is a reading; with a whole of which it is a part.
type sheetFact struct {
	Name, Value string
	Part        bar
}

// bar is a part of a whole, in percent.
type bar struct {
	Has  bool
	Part int
}

// barOf fills a bar so that a part that is not 0 can be seen.
func barOf(part, whole int) bar {
	if whole <= 0 {
		return bar{}
	}
	return bar{true, min(100, (100*max(part, 0)+whole-1)/whole)}
}

// sheetMap is a slot map.
type sheetMap struct {
	Slots int
	Ruler []int // the numbers of slots, on a GPU that has any
	Cells []sheetCell
	Bare  string // instead of cells
}

// sheetCell is a slice, or a free slot.
type sheetCell struct {
	Size                int
	Class, Label, Title string
}

// legendItem explains a label of slot maps.
type legendItem struct{ Class, Label, Text string }

// hues is the number of colours of session blocks; further blocks repeat them.
const hues = 8

// hue is the class that colours the sessions of a block.
func (f fleet) hue(block string) string { return fmt.Sprintf("h%d", f.hues[block]%hues) }

// gpuSheets are the GPUs of all hosts, and what explains their slots.
func (f fleet) gpuSheets(s Style) ([]sheetHost, []legendItem) {
	var drawn []slotCell
	hosts := each(f.Live.Hosts, func(h resource.Host) sheetHost {
		host := sheetHost{Words: hostWords(h), Notes: s.blocks(func(p *page) { p.unusable(h) })}
		gpus := each(h.GPUs, func(g resource.GPU) sheetGPU {
			m := f.slotMap(g)
			if !m.bare() {
				drawn = append(drawn, m.cells()...)
			}
			return f.gpuSheet(s, g, m)
		})
		if len(gpus) <= gpuCards || s.Verbose && len(gpus) <= gpuRows {
			host.Cards = gpus
			return host
		}
		for i := range gpus {
			gpus[i].Map.Ruler = nil
		}
		host.Rows = foldWrong(s, gpus, gpuRows, func(g sheetGPU) bool { return len(g.Notes) > 0 })
		return host
	})
	return hosts, f.legendItems(drawn)
}

func (f fleet) gpuSheet(s Style, g resource.GPU, m slotMap) sheetGPU {
	out := sheetGPU{Name: fmt.Sprintf("GPU %d", g.Index), Model: g.Model.Name, UUID: words.ShortUUID(g.UUID), Map: f.mapSheet(s, g, m)}
	fact := func(name, value string, part bar) {
		if value != "" {
			out.Facts = append(out.Facts, sheetFact{name, value, part})
		}
	}
	fact("MIG mode", given(g.Model.MIG() || g.MIGCapable, strings.TrimPrefix(migWords(g), "MIG ")), bar{})
	fact("SM clock", strings.TrimPrefix(clockWords(f.StatusView, g), "SM clock "), bar{})
	fact("Power", strings.TrimPrefix(drawWords(g), "power "), either(g.Unread(resource.ReadingDraw) || g.Unread(resource.FeaturePower), bar{}, barOf(g.DrawMW, g.PowerMW)))
	fact("Temperature", strings.TrimPrefix(temperatureWords(g), "temperature "), bar{})
	fact("Memory", memoryWords(g), either(g.Unread(resource.FigureMemory), bar{}, barOf(g.MemoryUsedMiB, g.Model.MemoryMiB)))
	taken, _, _ := strings.Cut(m.computeWords(), " compute")
	fact("Compute slices", taken, bar{})
	fact("Compute mode", given(g.ComputeMode != resource.DefaultMode, resource.ComputeMode.Text(g.ComputeMode)), bar{})
	out.Notes = s.blocks(func(p *page) {
		p.mpsDaemons(f, g)
		p.statusDrift(f.Drift, g)
		p.degraded(g)
		p.holders(f, g)
	})
	return out
}

// mapSheet has the cells of a screen's slot map.
func (f fleet) mapSheet(s Style, g resource.GPU, m slotMap) sheetMap {
	if m.bare() {
		return sheetMap{Bare: bareWords(g)}
	}
	out := sheetMap{Slots: m.slots()}
	if m.mig {
		for slot := range m.slots() {
			out.Ruler = append(out.Ruler, slot)
		}
	}
	out.Cells = each(m.cells(), func(c slotCell) sheetCell {
		label, _ := s.cellLabel(c, 2)
		cell := sheetCell{Size: c.size, Label: label, Title: cellSigns[c.kind].meaning, Class: cellClasses[c.kind]}
		switch c.kind {
		case cellTaken:
			cell.Class = f.hue(c.session.Name)
			names := append([]string{c.session.String()}, addresses(c.others)...)
			cell.Title = prose.And(prose.Few(names, maxParts)) + given(m.mig, ", "+c.slice.String())
		case cellForeign:
			cell.Title += " " + c.slice.String()
		case cellFree, cellUnusable:
		}
		return cell
	})
	return out
}

// cellClasses style the cells that no session has.
var cellClasses = map[cellKind]string{cellForeign: "foreign", cellFree: "free", cellUnusable: "unusable"}

// mostLabels is the number of labels that the legend explains; the cells and the table of sessions name each session.
const mostLabels = 24

// legendItems explain the labels of cells that are drawn, by block.
func (f fleet) legendItems(drawn []slotCell) (all []legendItem) {
	var sessions []resource.Address
	kinds := map[cellKind]bool{}
	for _, c := range drawn {
		if kinds[c.kind] = true; c.session != nil {
			sessions = append(append(sessions, *c.session), c.others...)
		}
	}
	slices.SortFunc(sessions, resource.Address.Compare)
	known := map[string]bool{}
	for _, a := range sessions {
		entry := f.labels.legend([]resource.Address{a})[0]
		if !known[entry] {
			known[entry] = true
			label, text, _ := strings.Cut(entry, " = ")
			all = append(all, legendItem{f.hue(a.Name), label, text})
		}
	}
	if more := len(all) - mostLabels; more > 0 {
		all = append(all[:mostLabels], legendItem{"", "", fmt.Sprintf("%d more, named with the sessions below", more)})
	}
	for _, kind := range []cellKind{cellForeign, cellFree, cellUnusable} {
		if kinds[kind] {
			all = append(all, legendItem{cellClasses[kind], cellSigns[kind].unicode, cellSigns[kind].meaning})
		}
	}
	return all
}

// numberBlocks gives each block of sessions a number, in order.
func numberBlocks(sessions []resource.PriorSession) map[string]int {
	numbers := map[string]int{}
	for _, s := range sessions {
		if _, known := numbers[s.Address.Name]; !known {
			numbers[s.Address.Name] = len(numbers)
		}
	}
	return numbers
}
