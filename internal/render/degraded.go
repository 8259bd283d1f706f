package render

import (
	"fmt"

	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// degraded lists what cosplay does without on a GPU whose driver does not offer it.
func (p *page) degraded(g resource.GPU) {
	for _, d := range g.Degraded {
		what := "unknown:"
		switch {
		case d.Feature.Managed():
			what = "not managed:"
		case d.Feature.Figure():
			what = "from the catalog:"
		}
		p.flow(4, 6, join(inked(drifted, what), text(fmt.Sprintf(" %s (%s)", d.Feature.Words(), d))))
	}
	if missing, unfit := g.Unfit(); unfit {
		p.flow(4, 6, join(inked(drifted, "not used:"), text(fmt.Sprintf(" cosplay does not know %s", missing.Words()))))
	}
}

// unusable lists the GPUs of a host that do not answer.
func (p *page) unusable(h resource.Host) {
	for _, u := range h.Unusable {
		p.gap()
		name := fmt.Sprintf("GPU %d", u.Index)
		if u.UUID != "" {
			name += "  " + words.ShortUUID(u.UUID)
		}
		p.flow(0, 4, join(inked(strong, name), inked(drifted, "  unusable:"), text(" "+u.String())))
	}
}
