package resource

import (
	"cmp"
	"fmt"
	"strings"

	"cosplay/internal/prose"
)

// The words for values, the same wherever a person reads them.

// OnOff is a switch's state.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Watts writes a power in mW as W.
func Watts(mw int) string {
	if mw%1000 == 0 {
		return fmt.Sprintf("%d W", mw/1000)
	}
	return fmt.Sprintf("%.1f W", float64(mw)/1000)
}

// Clock writes a clock lock in MHz; 0 is none.
func Clock(mhz int) string {
	if mhz == 0 {
		return "unlocked"
	}
	return fmt.Sprintf("%d MHz", mhz)
}

// ShortLineage is the part of a lineage that a user has to type.
func ShortLineage(lineage string) string {
	const enough = 8
	return lineage[:min(enough, len(lineage))]
}

// String names a slice: "1g.18gb, slot 3", "1c.2g.35gb, slot 2.1" with the compute slice in its GPU instance.
func (s Slice) String() string {
	switch {
	case s.Percent > 0 && s.Whole():
		return fmt.Sprintf("%d %% of the SMs", s.Percent)
	case s.Percent > 0:
		return fmt.Sprintf("%d %% of %s, slot %d", s.Percent, s.Profile, s.Start)
	case s.Shared() && s.Whole():
		return "shared GPU"
	case s.Whole():
		return "whole GPU"
	case s.Divides():
		return fmt.Sprintf("%s, slot %d.%d", s.Profile, s.Start, s.ComputeStart)
	case s.Shared():
		return fmt.Sprintf("shared %s, slot %d", s.Profile, s.Start)
	}
	return fmt.Sprintf("%s, slot %d", s.Profile, s.Start)
}

// PlaceWords names the slice of a session, or its GPUs: "1g.18gb, slot 4", "2 whole GPUs".
func (s Session) PlaceWords() string {
	switch {
	case len(s.More) == 0:
		return s.Slice.String()
	case s.Slice.Percent > 0:
		return fmt.Sprintf("%d %% of %d GPUs", s.Slice.Percent, len(s.More)+1)
	case s.Slice.Shared():
		return fmt.Sprintf("%d shared GPUs", len(s.More)+1)
	}
	return fmt.Sprintf("%d whole GPUs", len(s.More)+1)
}

// WithArticle is "an RTX 2060", "a GTX 1660", "an H200": names of GPUs begin with
// letters that are spelt, or with a word that begins like them.
func WithArticle(name string) string {
	if strings.IndexAny(name, "AEFHILMNORSX") == 0 {
		return "an " + name
	}
	return "a " + name
}

// ProcessNames lists processes: "python (pid 4711, 1024 MiB) and 2 more".
func ProcessNames(processes []Process) string {
	const shown = 4
	var names []string
	for _, p := range processes {
		memory := ""
		if p.MemoryMiB > 0 { // else it is not known
			memory = fmt.Sprintf(", %d MiB", p.MemoryMiB)
		}
		names = append(names, fmt.Sprintf("%s (pid %d%s)", cmp.Or(p.Name, "a process"), p.PID, memory))
	}
	return prose.And(prose.Few(names, shown))
}

// AddressNames joins session addresses for output and writes consecutive indices as a range: "session.worker[2] to
// [6], session.big". If there are more than shown parts, it counts the rest; 0 shows all.
func AddressNames(addresses []Address, shown int) string {
	var parts []string
	for len(addresses) > 0 {
		if len(parts) == shown && shown > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(addresses))
		}
		first, n := addresses[0], 1
		for n < len(addresses) && first.Key.Kind == ByCount && addresses[n] == Nth(first.Name, first.Key.Index+n) {
			n++
		}
		switch last := addresses[n-1].Key.Index; n {
		case 1:
			parts = append(parts, first.String())
		case 2:
			parts = append(parts, fmt.Sprintf("%s and [%d]", first, last))
		default:
			parts = append(parts, fmt.Sprintf("%s to [%d]", first, last))
		}
		addresses = addresses[n:]
	}
	return strings.Join(parts, ", ")
}

// makers are the words that NVML puts before the part of a name that people use.
var makers = []string{"NVIDIA ", "GeForce ", "Tesla "}

func shortName(name string) string {
	for _, m := range makers {
		name = strings.TrimPrefix(name, m)
	}
	return name
}

// ShortModel is a GPU's product name without the maker's: "H200".
func (m Model) ShortModel() string { return shortName(m.Name) }
