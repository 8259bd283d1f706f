package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// TopView is a status as a live table, as the user has arranged it.
type TopView struct {
	StatusView
	TopTimes
	Problem  string // why there is no later reading; "" for none
	Height   int    // lines of the screen; 0 shows everything, without the lines for the keys
	Order    TopOrder
	Reverse  bool
	Filter   string // shows the sessions of which a cell contains it
	Typing   bool   // the filter is being typed
	Selected *resource.Address
	Detail   bool // shows the selected session alone
	AllGPUs  bool // shows the GPUs alone

	fleet   fleet
	tally   statusTally
	all     []topRow // as the state has them
	gpus    []gpuLine
	history history
}

// TopReading is what a live table has read.
type TopReading struct {
	StatusView
	TopTimes
	Changed []resource.Address // the sessions whose use differs from that of the reading before
}

// TopTimes are when the parts of a live table were read: the use of memory, the GPUs, and the rest.
type TopTimes struct{ At, GPUsAt, AllAt time.Time }

// Update shows another reading. It looks at the sessions that have changed, and at all of them only where the hosts were
// read again: a thousand sessions fill the caches of a processor. It reports whether the body of the screen may change.
func (v *TopView) Update(r TopReading) bool {
	failed := v.Problem != ""
	same := len(r.Live.Hosts) > 0 && len(v.Live.Hosts) > 0 && &r.Live.Hosts[0] == &v.Live.Hosts[0]
	if v.StatusView, v.TopTimes, v.Problem = r.StatusView, r.TopTimes, ""; !same {
		v.arrange()
	}
	v.fleet.StatusView = r.StatusView
	v.history.add(r.Used, r.Changed)
	return !same || failed || len(r.Changed) > 0 || len(r.Ends) > 0 || v.history.moves()
}

// arrange computes what follows from the hosts.
func (v *TopView) arrange() {
	v.fleet = newFleet(v.StatusView)
	v.tally, v.all, v.gpus = v.fleet.tally(), nil, nil
	programs, sessions := diff.ProgramsOf(v.Live), map[resource.GPUKey]int{}
	for i := range v.Prior.Sessions {
		s := &v.Prior.Sessions[i]
		v.all = append(v.all, topRow{PriorSession: s, address: s.Address, programs: programs.Of(*s), state: v.fleet.states[i]})
		for _, at := range s.On() {
			sessions[at]++
		}
	}
	for _, h := range v.Live.Hosts {
		for i := range h.GPUs {
			g := &h.GPUs[i]
			v.gpus = append(v.gpus, gpuLine{g, sessions[resource.GPUKey{Host: h.Name, UUID: g.UUID}]})
		}
	}
}

// gpuLine is a GPU of the table.
type gpuLine struct {
	*resource.GPU
	sessions int
}

// draw shows everything, as --once does.
func (v TopView) draw(p *page) {
	v.Height, v.history = 0, history{}
	p.topGPUs(v, len(v.gpus))
	p.gap()
	p.topSessions(v, v.rows())
	p.gap()
	p.statusSummary(v.fleet)
}

// TopScreen is a live table as the lines of a screen.
func TopScreen(s Style, v TopView) string {
	head := TopHead(s, v)
	return head + TopBody(s, v, strings.Count(head, "\n"))
}

// TopHead is the first lines of a screen, which say when it was read.
func TopHead(s Style, v TopView) string {
	p := newPage(s)
	p.topHead(v)
	lines := strings.SplitAfter(p.out.String(), "\n")
	return strings.Join(lines[:min(len(lines)-1, max(0, v.Height-1))], "")
}

// TopBody is a screen from a line on.
func TopBody(s Style, v TopView, from int) string {
	p, rows := newPage(s), v.rows()
	v.Height -= from
	i := slices.IndexFunc(rows, func(r topRow) bool { return v.Selected != nil && r.address == *v.Selected })
	room := v.Height - 1 // for the keys
	switch {
	case v.Detail && i >= 0:
		p.topDetail(v, rows[i])
	case v.AllGPUs:
		p.topGPUs(v, room-1)
	default:
		p.topGPUs(v, max(1, (room-3)/3))
		p.gap()
		visible := max(1, v.Height-p.lines()-2)
		first := max(0, i) / visible * visible
		p.topSessions(v, rows[first:min(len(rows), first+visible)])
	}
	return p.screen(v.Height-1) + p.topKeys(v)
}

// lines is the number of lines so far.
func (p *page) lines() int { return strings.Count(p.out.String(), "\n") }

// screen is what was drawn, as so many lines.
func (p *page) screen(height int) string {
	lines := strings.SplitAfter(p.out.String(), "\n")
	lines = lines[:min(len(lines)-1, max(0, height))]
	return strings.Join(lines, "") + strings.Repeat("\n", max(0, height-len(lines)))
}

func (p *page) topHead(v TopView) {
	p.flow(0, 2, p.topTitle(v))
	if v.Problem != "" {
		p.lead(0, removed, "Not read since "+v.At.Format(time.TimeOnly)+":", v.Problem)
	}
	p.gap()
}

// topTitle says when what is older was read, as far as the line has room for it.
func (p *page) topTitle(v TopView) line {
	title := func(times string) line {
		return join(inked(strong, "cosplay top"), text(" at "+v.At.Format(time.TimeOnly)+times+": "), v.tally.words())
	}
	const old = 2 * time.Second
	var gpus, all string
	if v.At.Sub(v.GPUsAt) >= old {
		gpus = ", GPUs at " + v.GPUsAt.Format(time.TimeOnly)
	}
	switch {
	case v.At.Sub(v.AllAt) < old:
		all = gpus
	case v.AllAt.Equal(v.GPUsAt):
		all = ", GPUs and states at " + v.AllAt.Format(time.TimeOnly)
	default:
		all = gpus + ", states at " + v.AllAt.Format(time.TimeOnly)
	}
	for _, times := range []string{all, gpus} {
		if full := title(times); full.width() <= p.width() {
			return full
		}
	}
	return title("")
}

// topGPUs shows as many GPUs as there is room for, and what cannot be read.
func (p *page) topGPUs(v TopView, room int) {
	t := &table{gap: 2, columns: slices.Concat(textColumns("GPU", "NAME"), figureColumns("UTIL", "SM CLOCK"), textColumns("LOCK"),
		figureColumns("POWER", "TEMP", "MEMORY", "PROC", "SESSIONS")), spare: []string{"SESSIONS", "NAME", "PROC", "UTIL", "LOCK"}}
	shown := v.gpus[:min(len(v.gpus), either(len(v.gpus) > room, max(1, room-1), room))]
	for _, one := range shown {
		g := *one.GPU
		t.add(inked(strong, words.GPU(v.Live, g.Host, g.UUID)), text(g.Model.Name), utilizationCell(g.UtilizationPercent), text(clockCell(g)), lockCell(v.StatusView, g), text(drawWords(g)),
			text(temperatureWords(g)), p.gpuMemoryCell(g), text(fmt.Sprint(len(g.Processes))), text(fmt.Sprint(one.sessions)))
	}
	p.table(t)
	if hidden := len(v.gpus) - len(shown); hidden > 0 {
		p.print(0, inked(dim, fmt.Sprintf("%s %d more GPUs", p.dots(), hidden)+given(!v.AllGPUs && v.Height > 0, " (g shows them)")))
	}
	for _, h := range v.Live.Hosts {
		if h.Unreachable != "" {
			p.lead(0, drifted, "host "+h.Name+" is not read:", prose.Stop(h.Unreachable))
		}
		p.unusable(h)
	}
}

// utilizationCell is empty where the driver does not report it, as of a GPU in MIG mode.
func utilizationCell(percent *int) line {
	if percent == nil {
		return nil
	}
	return text(fmt.Sprintf("%d %%", *percent))
}

// gaugedFrom is the width of a screen, in columns, with room for wide gauges, and those of GPUs.
const gaugedFrom = 100

func (p *page) gpuMemoryCell(g resource.GPU) line {
	if g.Unread(resource.FigureMemory) {
		return text("unknown")
	}
	cell := text(fmt.Sprintf(" %d of %s", g.MemoryUsedMiB, mib(g.Model.MemoryMiB)))
	if p.width() < gaugedFrom {
		return cell
	}
	return join(p.gauge(float64(g.MemoryUsedMiB)/float64(max(1, g.Model.MemoryMiB))), cell)
}

func clockCell(g resource.GPU) string {
	if g.Unread(resource.ReadingClock) {
		return "unknown"
	}
	return fmt.Sprintf("%d MHz", g.SMClockMHz)
}

// lockCell is the clock to which cosplay has locked a GPU.
func lockCell(v StatusView, g resource.GPU) line {
	switch state, mhz := v.lock(g); state {
	case lockHeld:
		return text(fmt.Sprintf("%d MHz", mhz))
	case lockLifted, lockUnknown:
		return inked(drifted, string(state))
	case noLock, lockUnlocked:
	}
	return inked(dim, "-")
}

// gaugeWidth is the number of cells of a gauge.
func (s Style) gaugeWidth() int { return either(s.width() >= gaugedFrom, 10, 6) }

// gauge draws a part of a whole.
func (s Style) gauge(part float64) line {
	width := s.gaugeWidth()
	full := min(width, int(part*float64(width)+0.5))
	i := plain
	switch {
	case part >= 0.95:
		i = removed
	case part >= 0.8:
		i = changed
	}
	return join(inked(i, strings.Repeat(s.pick("█", "#"), full)), inked(dim, strings.Repeat(s.pick("░", "-"), width-full)))
}

func (p *page) topSessions(v TopView, rows []topRow) {
	t := &table{gap: 2, columns: slices.Concat([]column{{}}, textColumns("SESSION", "TARGET", "GPU", "STATE"), figureColumns("UTIL", "MEMORY", "PEAK"),
		textColumns("HISTORY"), figureColumns("PROC"), textColumns("LEFT"), proseColumn("")),
		spare: []string{"LEFT", "GPU", "PROC", "TARGET", "HISTORY", "PEAK", "UTIL"}}
	for _, r := range rows {
		chosen := v.Selected != nil && *v.Selected == r.Address && v.Height > 0
		t.add(text(either(chosen, ">", "")), inked(either(chosen, strong, plain), r.Address.Short()), text(r.Target.ShortName()),
			text(strings.TrimPrefix(words.GPUs(v.Live, r.Session), "GPU ")), stateCell(r.state), utilizationCell(v.busy(r)), p.memoryCell(v, r), peakCell(v.Used[r.address]),
			text(p.spark(v.history, r, p.historyWidth())), text(fmt.Sprint(len(r.programs))), v.fleet.leftCell(*r.PriorSession), p.driftCell(r.state, v.fleet.drift[r.Address]))
	}
	p.table(t)
	switch {
	case len(rows) == 0 && v.Filter != "":
		p.say("No session matches the filter.")
	case len(rows) == 0:
		p.say("There is no session.")
	}
}

// limit is the memory that a session's programs may use on all devices, in bytes.
func (r topRow) limit() int64 { return int64(r.Target.MemoryMiB*len(r.Slices())) << 20 }

func (p *page) memoryCell(v TopView, r topRow) line {
	limit := int(r.limit() >> 20)
	use, counted := v.Used[r.address]
	if !counted {
		return inked(dim, "- of "+mib(limit))
	}
	used := fmt.Sprintf(" %*d of %s", len(fmt.Sprint(limit)), bytesMiB(use.NowBytes), mib(limit))
	return join(p.gauge(float64(use.NowBytes)/float64(r.limit())), text(used))
}

// historyWidth is the number of readings that a line shows.
func (s Style) historyWidth() int { return either(s.width() >= 140, 40, 10) }

// topDetail shows one session.
func (p *page) topDetail(v TopView, r topRow) {
	p.print(0, join(inked(strong, r.Address.String()), text("  "), stateCell(r.state)))
	t, use := &table{indent: 2, columns: []column{{}, {prose: true}}}, v.Used[r.address]
	t.fact("target", r.Target.Name+", "+mib(r.Target.MemoryMiB))
	t.fact("on", words.GPUs(v.Live, r.Session)+given(r.PlaceWords(), ", "+r.PlaceWords()))
	t.add(inked(dim, "utilization"), utilizationCell(v.busy(r)))
	t.add(inked(dim, "memory"), join(p.memoryCell(v, r), text(given(use.PeakMiB, ", peak "+mib(use.PeakMiB)))))
	t.fact("history", strings.TrimLeft(p.spark(v.history, r, p.width()-16), " "))
	t.fact("ran out", given(use.RanOut(), prose.Count(use.RanOut(), "time")+" of memory"))
	if end, ends := v.Ends[r.Address]; ends {
		t.fact("expires", end.At.String())
	}
	if at := v.fleet.sshCell(*r.PriorSession); at != nil {
		t.add(inked(dim, "ssh"), at)
	}
	if drift := p.driftCell(r.state, v.fleet.drift[r.Address]); drift.width() > 0 {
		t.add(inked(dim, "drift"), drift)
	}
	p.table(t)
	p.gap()
	programs := &table{indent: 2, columns: slices.Concat(figureColumns("PID"), figureColumns("MEMORY"), textColumns("PROGRAM"))}
	for _, one := range r.programs {
		programs.add(text(fmt.Sprint(one.PID)), text(mib(one.MemoryMiB)), text(one.Name))
	}
	p.table(programs)
	if len(r.programs) == 0 {
		p.detail("No program uses its GPU.")
	}
}

// topKeys is the last line.
func (p *page) topKeys(v TopView) string {
	keys := fmt.Sprintf("q quit  s sort: %s  r reverse  / filter%s  enter details  g GPUs", v.Order, given(v.Filter, ": "+v.Filter))
	if columns(keys) > p.width() {
		keys = strings.NewReplacer("  r reverse", "", "enter ", "").Replace(keys)
	}
	switch {
	case v.Typing:
		keys = "filter: " + v.Filter + "_   enter keep, esc clear"
	case v.Detail:
		keys = "q quit  esc back  up, down: another session"
	case v.AllGPUs:
		keys = "q quit  g sessions"
	}
	return p.paint(dim, text(keys).text())
}
