package render

import (
	"cmp"
	"slices"
	"strings"
)

// table aligns cells in columns. Where it is wider than the screen it is squeezed as far as that helps; where that
// does not suffice, its last columns go to a second line under the first, as columns too: nothing is cut and nothing
// is broken apart, but for a last column of prose, which wraps.
type table struct {
	indent  int
	gap     int // blanks between columns; 0 is three
	columns []column
	rows    []row
	spare   []string // titles of columns that a narrow screen can do without, the first to go first
}

// column is how the cells of one column are set.
type column struct {
	title string
	right bool // figures
	tight bool // one blank before it instead of the table's gap
	prose bool // may wrap; the last column only

	name   string // its heading in HTML, where a screen has none
	screen bool   // on a screen alone

	brief func(string) string // what its cells become on a narrow screen; nil leaves them
}

// textColumns are columns of text with these titles.
func textColumns(titles ...string) []column {
	return each(titles, func(title string) column { return column{title: title} })
}

// figureColumns are columns of figures with these titles.
func figureColumns(titles ...string) []column {
	return each(titles, func(title string) column { return column{title: title, right: true} })
}

// proseColumn is a last column of prose.
func proseColumn(title string) []column { return []column{{title: title, prose: true}} }

// row is a line of cells, or one line across all columns.
type row struct {
	cells  []line
	across line
	indent int // of across, from the table's
}

// leastProse is the room, in columns, below which prose goes to its own line.
const leastProse = 24

func (t *table) add(cells ...line) { t.rows = append(t.rows, row{cells: cells}) }

// texts adds a row of plain cells.
func (t *table) texts(cells ...string) { t.add(each(cells, text)...) }

// fact adds a row with a name and a value, unless the value is empty.
func (t *table) fact(name, value string) {
	if value != "" {
		t.add(inked(dim, name), text(value))
	}
}

func (t *table) across(indent int, l line) {
	t.rows = append(t.rows, row{across: l, indent: indent})
}

// table writes a table.
func (p *page) table(t *table) {
	if len(t.rows) == 0 {
		return
	}
	if p.paper != nil {
		*p.paper = append(*p.paper, block{table: t})
		return
	}
	t = t.squeezed(p.width())
	widths := t.widths()
	bands := t.bands(widths, p.width())
	for _, r := range t.headed() {
		if r.cells == nil {
			p.flow(t.indent+r.indent, t.indent+r.indent+2, r.across)
			continue
		}
		for _, b := range bands {
			p.band(t, b, r, widths)
		}
	}
}

// headed returns the rows with the headings before them.
func (t *table) headed() []row {
	if !slices.ContainsFunc(t.columns, func(c column) bool { return c.title != "" }) {
		return t.rows
	}
	head := row{cells: each(t.columns, func(c column) line { return inked(dim, c.title) })}
	return append([]row{head}, t.rows...)
}

// squeezed is the table with one line a row: where it is too wide its gaps shrink and cells become brief, then the
// spare columns go. Where all that does not help it is the table as it was.
func (t *table) squeezed(screen int) *table {
	if t.fits(screen) {
		return t
	}
	narrow := t.narrow()
	if narrow.fits(screen) {
		return narrow
	}
	for _, title := range t.spare {
		if narrow = narrow.without(title); narrow.fits(screen) {
			return narrow
		}
	}
	return t
}

func (t *table) fits(screen int) bool {
	return len(t.bands(t.widths(), screen)) == 1
}

// narrow is the table with small gaps and brief cells.
func (t *table) narrow() *table {
	out := &table{indent: t.indent, gap: 2, columns: t.columns}
	for _, r := range t.rows {
		r.cells = slices.Clone(r.cells)
		for i, cell := range r.cells {
			if brief := t.columns[i].brief; brief != nil && len(cell) > 0 {
				r.cells[i] = inked(cell[0].ink, brief(cell.text()))
			}
		}
		out.rows = append(out.rows, r)
	}
	return out
}

// without is the table without the column of a title.
func (t *table) without(title string) *table {
	at := slices.IndexFunc(t.columns, func(c column) bool { return c.title == title })
	out := &table{indent: t.indent, gap: t.gap, columns: slices.Delete(slices.Clone(t.columns), at, at+1)}
	for _, r := range t.rows {
		if at < len(r.cells) {
			r.cells = slices.Delete(slices.Clone(r.cells), at, at+1)
		}
		out.rows = append(out.rows, r)
	}
	return out
}

// widths is the width of each column; 0 for an empty column, whatever its title.
func (t *table) widths() []int {
	widths := make([]int, len(t.columns))
	for _, r := range t.rows {
		for i, c := range r.cells {
			widths[i] = max(widths[i], c.width())
		}
	}
	for i, c := range t.columns {
		if widths[i] > 0 {
			widths[i] = max(widths[i], columns(c.title))
		}
	}
	return widths
}

// band is a run of columns on one line.
type band struct {
	indent     int
	start, end int
}

// bands cuts the columns into lines that the screen is wide enough for.
func (t *table) bands(widths []int, screen int) []band {
	all := []band{{indent: t.indent}}
	used := t.indent
	for i, w := range widths {
		b := &all[len(all)-1]
		need := w
		if t.columns[i].prose {
			need = min(w, leastProse)
		}
		if w > 0 && used > b.indent {
			need += t.gapBefore(i)
		}
		signOnly := i > 0 && i-b.start == 1 && t.columns[i].tight
		if i > b.start && w > 0 && used+need > screen && !signOnly {
			all = append(all, band{indent: t.indent + 6, start: i, end: i})
			b, used, need = &all[len(all)-1], t.indent+6, w
		}
		used += need
		b.end = i + 1
	}
	return all
}

func (t *table) gapBefore(i int) int {
	if t.columns[i].tight {
		return 1
	}
	return cmp.Or(t.gap, 3)
}

// band writes the cells of one row in one band.
func (p *page) band(t *table, b band, r row, widths []int) {
	out := p.row[:0]
	used := 0
	for i := b.start; i < b.end && i < len(r.cells); i++ {
		if widths[i] == 0 {
			continue
		}
		if used > 0 {
			out, used = append(out, pad(t.gapBefore(i))), used+t.gapBefore(i)
		}
		cell := r.cells[i]
		room := p.width() - b.indent - used
		if t.columns[i].prose && cell.width() > room {
			p.prose(b.indent, used, out, cell)
			return
		}
		fill := pad(widths[i] - cell.width())
		if t.columns[i].right {
			out = append(append(out, fill), cell...)
		} else {
			out = append(append(out, cell...), fill)
		}
		used += widths[i]
	}
	if p.row = out; trimmed(out) != nil {
		p.print(b.indent, out)
	}
}

// prose ends a row with a cell that takes several lines.
func (p *page) prose(indent, used int, before, cell line) {
	room := p.width() - indent - used
	lines := wrap(cell, room, room)
	p.print(indent, join(before, lines[0]))
	for _, l := range lines[1:] {
		p.print(indent+used, l)
	}
}

func pad(n int) piece { return piece{plain, strings.Repeat(" ", max(0, n))} }
