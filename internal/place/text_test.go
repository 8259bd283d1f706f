package place

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// String formats a placement with one line for each session.
func (r Result) String() string {
	var b strings.Builder
	for _, g := range r.GPUs {
		fmt.Fprintf(&b, "%s/%s: %s\n", g.Host, g.UUID, settingsText(g.Settings))
		for _, setting := range slices.Sorted(maps.Keys(g.Why)) {
			words, _ := json.Marshal(g.Why[setting]) // strings and numbers cannot fail to marshal
			fmt.Fprintf(&b, "  because %s\n", words)
		}
		for _, p := range r.Placed {
			if p.Slice.Host == g.Host && p.Slice.GPU == g.UUID {
				fmt.Fprintf(&b, "  %s\n", p)
			}
		}
	}
	for _, refusal := range r.Refused {
		fmt.Fprintf(&b, "refused %s: %s\n  What would help: %s\n", resource.AddressNames(refusal.Addresses, 3), refusal.What, refusal.Fix)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Text)
	}
	return b.String()
}

// String formats a session's placement in one line.
func (p Placed) String() string {
	where := "the whole GPU"
	if !p.Slice.Whole() {
		where = fmt.Sprintf("%s at slot %d", p.Slice.Profile, p.Slice.Start)
	}
	return fmt.Sprintf("%s: %s, FP32 %+.1f %%, bandwidth %+.0f %%", p.Address, where, 100*(p.Fit.FP32Ratio()-1), 100*(p.Fit.BandwidthRatio()-1))
}

func settingsText(s resource.Settings) string {
	var parts []string
	for setting, value := range s.All() {
		parts = append(parts, setting.Words()+" "+setting.Text(value))
	}
	if len(parts) == 0 {
		return "as it is"
	}
	return strings.Join(parts, ", ")
}
