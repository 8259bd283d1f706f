package render

import (
	"strings"

	"cosplay/internal/resource"
)

// history is the memory in use at the last readings of a live table. A reading adds a mark for the sessions that have
// changed, and costs nothing for the others.
type history struct {
	readings int
	marks    map[resource.Address][]mark // the oldest first
	moving   int                         // the reading up to which the readings of a session that are kept can differ
}

// mark is what a session had in use from a reading on.
type mark struct {
	reading int
	bytes   int64 // 0 also for a session that no longer counts its memory
}

// historyKept is the number of readings that are kept: those of a wide screen.
const historyKept = 240

func (h *history) add(used map[resource.Address]resource.Use, changed []resource.Address) {
	if h.marks == nil {
		h.marks = map[resource.Address][]mark{}
	}
	h.readings++
	for _, a := range changed {
		if _, counted := used[a]; !counted && h.marks[a] == nil {
			continue
		}
		if h.marks[a] != nil || used[a].NowBytes > 0 {
			h.moving = h.readings + historyKept
		}
		kept := append(h.marks[a], mark{h.readings, used[a].NowBytes})
		h.marks[a] = kept[max(0, len(kept)-historyKept):]
	}
}

// moves reports whether what is drawn differs from that of the reading before, though no session may have changed.
func (h history) moves() bool { return h.readings <= h.moving }

// last are the bytes at so many readings or fewer, the oldest first.
func (h history) last(a resource.Address, readings int) (all []int64) {
	marks := h.marks[a]
	for n := h.readings - min(readings, historyKept) + 1; n <= h.readings; n++ {
		for len(marks) > 1 && marks[1].reading <= n {
			marks = marks[1:]
		}
		if len(marks) > 0 && marks[0].reading <= n {
			all = append(all, marks[0].bytes)
		}
	}
	return all
}

// spark draws the last readings of a session against its limit, one column each.
func (s Style) spark(h history, r topRow, width int) string {
	readings := h.last(r.address, width)
	if len(readings) == 0 {
		return ""
	}
	levels := []rune(s.pick(" ▁▂▃▄▅▆▇█", " _.-=+*#@"))
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(readings)))
	for _, bytes := range readings {
		at := (max(0, bytes)*int64(len(levels)-1) + r.limit() - 1) / r.limit() // 0 is for nothing at all
		b.WriteRune(levels[min(int(at), len(levels)-1)])
	}
	return b.String()
}
