package render

import (
	"io"
	"strings"

	"cosplay/internal/public"
)

// VersionView is what this build is.
type VersionView struct {
	Version  string
	Go       string
	Revision string   // of the source; "" if unknown
	Lacks    []string // embedded libraries that the build does not have
}

// Version shows what this build is and what it lacks.
func Version(w io.Writer, s Style, v VersionView) {
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
func VersionJSON(w io.Writer, v VersionView) error {
	return JSON(w, public.Version{Format: public.V1, Version: v.Version, Go: v.Go, Revision: v.Revision, Lacks: list(v.Lacks)})
}
