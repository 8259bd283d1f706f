package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// PlanMarkdown writes a plan for a pull request: the line that counts first, then drift, the sessions with their fit,
// what changes in fences that are coloured as differences, and what sessions cannot hide. It has no width.
func PlanMarkdown(w io.Writer, s Style, v PlanView) error {
	v.sharers = resource.Sharers(v.Plan.Desired.Sessions)
	m := &markdown{PlanView: v, verbose: s.Verbose}
	m.summary()
	m.warnings()
	m.drift()
	if v.Plan.Diff.Changes() {
		m.sessions()
		m.changes()
		m.limits()
	}
	m.block(prose.Each(v.Plan.Diff.Down, func(e resource.Expired) string { return "* " + plainText(staysDown(e)) })...)
	m.outputs()
	_, err := io.WriteString(w, m.text.String())
	return err
}

// markdown is a page of Markdown as GitHub and others read it.
type markdown struct {
	PlanView
	verbose bool
	text    strings.Builder
}

// block adds a paragraph, list or table, apart from what is before it.
func (m *markdown) block(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if m.text.Len() > 0 {
		m.text.WriteByte('\n')
	}
	for _, l := range lines {
		m.text.WriteString(l + "\n")
	}
}

// eaten are the characters that Markdown, or the HTML in it, interprets anywhere in a line.
const eaten = "\\`*_{}[]<>|&~$@"

// plainText is a text that Markdown shows as it is.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		if strings.ContainsRune(eaten, r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is a name in the font of code.
func code(s string) string {
	if s = oneLine(s); strings.ContainsAny(s, "`|") {
		return "<code>" + plainText(s) + "</code>"
	}
	return "`" + s + "`"
}

// oneLine keeps a text on its line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// fence puts lines into a fence that no line can close.
func (m *markdown) fence(language string, lines []string) {
	ticks := "```"
	for strings.Contains(strings.Join(lines, "\n"), ticks) {
		ticks += "`"
	}
	m.block(slices.Concat([]string{ticks + language}, lines, []string{ticks})...)
}

// summary is the line that counts, and what it is about.
func (m *markdown) summary() {
	said := "no changes"
	switch t := tallyOf(m.Plan); {
	case m.Stale != "":
		said = "stale: " + m.Stale
	case !m.Plan.Diff.Changes() && len(m.Plan.Diff.Outputs) > 0:
		said = "outputs alone change"
	case m.Plan.Diff.Changes():
		said = plainSpaces(t.words().text())
	}
	stuck := m.Plan.Diff.Stuck
	if m.Destroy {
		stuck = nil
	}
	if len(stuck) > 0 {
		said += fmt.Sprintf("; %d unfinished", len(stuck))
	}
	m.block("### cosplay plan: " + plainText(said))
	about := []string{code(m.Config), plainText(stateWords(m.Prior))}
	for _, h := range m.Live.Hosts {
		about = append(about, plainText(plainSpaces(hostWords(h))))
	}
	m.block(strings.Join(about, " · "))
	if len(stuck) > 0 {
		m.block(plainText(stuckWords(m.Plan.Diff)))
	}
}

// plainSpaces puts common blanks in the place of those that keep words together on a screen.
func plainSpaces(s string) string { return strings.ReplaceAll(s, hard, " ") }

func (m *markdown) warnings() {
	for _, n := range words.Notes(m.Notes, m.Live) {
		m.block("> **The state was brought up to date:** " + plainText(n))
	}
	warnings, more := mergeEqual(m.Warnings)
	for _, d := range warnings {
		where := ""
		if d.Subject != nil && *d.Subject != (hcl.Range{}) {
			where = code(fmt.Sprintf("%s:%d", d.Subject.Filename, d.Subject.Start.Line))
			if n := len(more[d]); n > 0 {
				where += " and " + prose.Count(n, "more place")
			}
			where = " (" + where + ")"
		}
		lines := []string{fmt.Sprintf("> **Warning:** %s%s  ", plainText(d.Summary), where)}
		for _, l := range strings.Split(d.Detail, "\n") {
			if strings.TrimSpace(l) != "" {
				lines = append(lines, "> "+strings.ReplaceAll(plainText(l), "  ", "&nbsp; ")+"  ")
			}
		}
		m.block(lines...)
	}
}

func (m *markdown) drift() {
	var lines []string
	for _, g := range alike(m.Plan.Diff.Drift, driftReads, m.verbose) {
		for _, d := range g.shown {
			sign := "!"
			if d.Informational {
				sign = " "
			}
			line := fmt.Sprintf("%s %s: %s: %s -> %s", sign, driftName(m.Live, d), words.Drifted(d), driftFrom(d, m.Live), words.Value(d.To, m.Live))
			lines = append(lines, oneLine(line+"   # "+words.Cause(d)))
		}
		if len(g.hidden) > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more like it", len(g.hidden)))
		}
	}
	if len(lines) > 0 {
		m.block("**Drift:** changed outside of cosplay since the last apply.")
		m.fence("diff", lines)
	}
	if words := information(m.PlanView, true); words != "" {
		m.block(plainText(plainSpaces(words)))
	}
}

// markdownWords are the actions in words: a table has no colour.
var markdownWords = map[diff.Action]string{
	diff.NoOp: "stays", diff.Create: "create", diff.Update: "change", diff.Replace: "replace", diff.Delete: "destroy", diff.Move: "move", diff.Import: "import", diff.Forget: "forget",
}

// sessions is the table of all that happens to sessions, with their fit.
func (m *markdown) sessions() {
	rows := []string{"| | Session | Target | GPU | Slice | VRAM | FP32 | Bandwidth | Tensor |", "|---|---|---|---|---|--:|--:|--:|--:|"}
	groups, staying := changesAlike(m.Live, m.Plan.Diff.Sessions, m.verbose)
	var busy prose.Groups[resource.Address]
	for _, g := range groups {
		for _, c := range g.shown {
			rows = append(rows, m.row(c))
			if n := m.sharers[c.Address]; c.After != nil && n > 1 {
				busy.Add(busyWords(m.Live, *c.After, n), c.Address)
			}
		}
		if len(g.hidden) > 0 {
			rows = append(rows, fmt.Sprintf("| %s | and %d more like it: %s | | | | | | | |", markdownWords[g.hidden[0].Action], len(g.hidden), plainText(resource.AddressNames(addressesOf(g.hidden), 0))))
		}
	}
	if len(rows) > 2 {
		m.block(rows...)
	}
	for _, words := range busy.Texts {
		m.block(plainText(resource.AddressNames(busy.Of[words], 3)+": these figures are for one session "+words) + ".")
	}
	if staying > 0 {
		m.block(plainText(prose.Capital(stayWords(staying))) + ".")
	}
}

func (m *markdown) row(c diff.SessionChange) string {
	s := subject(c)
	cells := []string{markdownWords[c.Action], code(c.Address.String()), plainText(s.Target.ShortName()), plainText(words.GPUs(m.Live, s)), plainText(s.PlaceWords())}
	for _, figure := range figures(plain, s) {
		if c.Action == diff.Delete {
			figure = nil
		}
		cells = append(cells, plainText(figure.text()))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// changes are what becomes different, line by line. In a fence for differences green is +, red is - and orange is !.
func (m *markdown) changes() {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, oneLine(fmt.Sprintf(format, args...))) }
	for _, image := range imagesOf(m.PlanView) {
		add("+ image %s on %s: to be %s", image.Image, image.Host, pulledOrBuilt(image.How))
	}
	for _, c := range sortedByGPU(m.Live, m.Plan.Diff.GPUs, diff.GPUChange.Key) {
		fate := ""
		if c.GiveBack && c.Action != diff.NoOp {
			fate = "   # given back"
		}
		for _, f := range c.Fields {
			add("! %s: %s: %s -> %s%s", words.GPU(m.Live, c.Host, c.UUID), words.Field(f), words.Value(f.From, m.Live), words.Value(f.To, m.Live), fate)
		}
	}
	groups, _ := changesAlike(m.Live, m.Plan.Diff.Sessions, m.verbose)
	for _, g := range groups {
		for _, c := range g.shown {
			lines = append(lines, m.change(c)...)
		}
		if len(g.hidden) > 0 {
			add("  and %d more like it", len(g.hidden))
		}
	}
	if len(lines) > 0 {
		m.fence("diff", lines)
	}
}

var fenceSigns = map[diff.Action]string{diff.Create: "+", diff.Update: "!", diff.Replace: "!", diff.Delete: "-", diff.Move: "!", diff.Import: "+", diff.Forget: "-"}

func (m *markdown) change(c diff.SessionChange) []string {
	if c.Action == diff.NoOp {
		return nil
	}
	sign := fenceSigns[c.Action]
	var about []string
	if c.MovedFrom != nil {
		about = append(about, movedWord(c))
	}
	if c.Imported != "" {
		about = append(about, "will be imported: "+c.Imported)
	}
	if reason := words.Session(c); reason != "" {
		about = append(about, reason)
	}
	head := fmt.Sprintf("%s %s", sign, c.Address)
	if len(about) > 0 {
		head += "   # " + strings.Join(about, "; ")
	}
	lines := []string{oneLine(head)}
	for _, f := range c.Fields {
		lines = append(lines, oneLine(fmt.Sprintf("%s     %s: %s -> %s", sign, words.Field(f), words.Value(f.From, m.Live), words.Value(f.To, m.Live))))
	}
	return lines
}

func (m *markdown) limits() {
	var lines []string
	for _, d := range disguises(m.PlanView) {
		lines = append(lines, fmt.Sprintf("- %s: %s", plainText(d.of), plainText(prose.Stop(strings.Join(d.limits, "; ")))))
	}
	if len(lines) > 0 {
		m.block("<details><summary>Cannot be hidden</summary>")
		m.block(lines...)
		m.block("</details>")
	}
}
