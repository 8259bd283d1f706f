package render

import (
	"strings"

	"cosplay/internal/public"
)

// VersionView is what this build is, and what it lacks.
type VersionView struct{ public.Version }

func (v VersionView) draw(p *page) {
	from := v.Go
	if v.Revision != "" {
		from = strings.TrimPrefix("revision "+v.Revision+", "+v.Go, ", ")
	}
	p.flow(0, 2, join(inked(strong, "cosplay "+v.Version.Version), inked(dim, " ("+from+")")))
	if len(v.Lacks) > 0 {
		p.flow(0, 2, join(inked(strong, "This build lacks "+strings.Join(v.Lacks, ", ")), text(": build with make instead of go build.")))
	}
}

func (v VersionView) data() any {
	v.Format, v.Lacks = public.V1, list(v.Lacks)
	return v.Version
}
