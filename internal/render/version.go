package render

import (
	"io"
	"strings"

	"cosplay/internal/public"
)

// Version shows what this build is and what it lacks.
func Version(w io.Writer, s Style, v public.Version) {
	p := newPage(s)
	from := v.Go
	if v.Revision != "" {
		from = strings.TrimPrefix("revision "+v.Revision+", "+v.Go, ", ")
	}
	p.flow(0, 2, join(inked(strong, "cosplay "+v.Version), inked(dim, " ("+from+")")))
	if len(v.Lacks) > 0 {
		p.flow(0, 2, join(inked(strong, "This build lacks "+strings.Join(v.Lacks, ", ")), text(": build with make instead of go build.")))
	}
	p.flush(w)
}

// VersionJSON writes what this build is as data.
func VersionJSON(w io.Writer, v public.Version) error {
	v.Format, v.Lacks = public.V1, list(v.Lacks)
	return JSON(w, v)
}
