package resource

import (
	"cmp"
	"fmt"
	"strings"
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

// ShortLineage is as much of a lineage as people need to type.
func ShortLineage(lineage string) string {
	const enough = 8
	return lineage[:min(enough, len(lineage))]
}

// String names a slice: "1g.18gb, slot 3".
func (s Slice) String() string {
	if s.Whole() {
		return "whole GPU"
	}
	return fmt.Sprintf("%s, slot %d", s.Profile, s.Start)
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
	for _, p := range processes[:min(shown, len(processes))] {
		memory := ""
		if p.MemoryMiB > 0 { // else it is not known
			memory = fmt.Sprintf(", %d MiB", p.MemoryMiB)
		}
		names = append(names, fmt.Sprintf("%s (pid %d%s)", cmp.Or(p.Name, "a process"), p.PID, memory))
	}
	if more := len(processes) - shown; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
