package sim

import (
	"fmt"
	"strconv"
	"strings"

	"cosplay/internal/pattern"
)

// Part is a number of equal GPUs of a simulated host.
type Part struct {
	Count int
	Key   string // of the catalog's host: "h200"
}

// maxGPUs is SIM_MAX_GPUS of the driver's state.h.
const maxGPUs = 2048

var partPattern = pattern.Of(`^(?:(\d+)\s*[xX*]?\s+|(\d+)\s*[xX*]\s*)?([A-Za-z][\w .+-]*|\d{3,4})$`)

// bareX is a part that begins with the sign between count and name.
var bareX = pattern.Of(`^[xX*](\s|$)`)

// ParseSpec reads what a host simulates: "8 x h200", "1 x h200, 2 x l40s", "1 x 4090"
// or "h200", which is one. Errors name the part that is wrong.
func ParseSpec(spec string) ([]Part, error) {
	var parts []Part
	for _, piece := range strings.Split(spec, ",") {
		piece = strings.TrimSpace(piece)
		m := partPattern().FindStringSubmatch(piece)
		if m == nil || bareX().MatchString(m[3]) {
			return nil, fmt.Errorf("%q does not say which GPUs to simulate; write it like \"8 x h200\" or \"1 x h200, 2 x l40s\"", piece)
		}
		count := 1
		if digits := m[1] + m[2]; digits != "" {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || n > maxGPUs {
				return nil, fmt.Errorf("%q: a host has 1 to %d GPUs, not %s", piece, maxGPUs, digits)
			}
			count = n
		}
		parts = append(parts, Part{Count: count, Key: strings.ToLower(m[3])})
	}
	return parts, nil
}
