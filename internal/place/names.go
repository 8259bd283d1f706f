package place

import (
	"fmt"
	"strings"

	"cosplay/internal/resource"
)

// Names joins session addresses for output and writes consecutive indices as a range: "session.worker[2] to [6],
// session.big". If there are more than limit parts, it counts the rest; limit 0 shows all.
func Names(addresses []resource.Address, shown int) string {
	var parts []string
	for len(addresses) > 0 {
		if len(parts) == shown && shown > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(addresses))
		}
		n := run(addresses)
		parts = append(parts, rangeOf(addresses[:n]))
		addresses = addresses[n:]
	}
	return strings.Join(parts, ", ")
}

// run returns how many addresses at the beginning have consecutive indices.
func run(addresses []resource.Address) int {
	n := 1
	for n < len(addresses) {
		a, b := addresses[n-1], addresses[n]
		if b != resource.Nth(a.Name, a.Key.Index+1) || a.Key.Kind != resource.ByCount {
			break
		}
		n++
	}
	return n
}

func rangeOf(addresses []resource.Address) string {
	first, last := addresses[0], addresses[len(addresses)-1]
	switch len(addresses) {
	case 1:
		return first.String()
	case 2:
		return fmt.Sprintf("%s and [%d]", first, last.Key.Index)
	}
	return fmt.Sprintf("%s to [%d]", first, last.Key.Index)
}
