package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/public"
)

// DoctorView is what a check of the hosts found.
type DoctorView struct{ Findings []public.Finding }

// Missing counts the findings without which no session can run.
func (v DoctorView) Missing() int { return v.count("missing") }

// where are the hosts that lack something; "" for all.
func (v DoctorView) where() string {
	lack, all := map[string]bool{}, map[string]bool{}
	for _, f := range v.Findings {
		all[f.Host] = true
		if f.Grade == "missing" {
			lack[f.Host] = true
		}
	}
	if len(lack) == len(all) || lack[""] {
		return ""
	}
	return " on " + prose.And(slices.Sorted(maps.Keys(lack)))
}

func (v DoctorView) count(grade string) int {
	return count(v.Findings, func(f public.Finding) bool { return f.Grade == grade })
}

// Doctor shows what was found, host by host, with its fix.
func (v DoctorView) draw(p *page) {
	host := ""
	t := &table{indent: 2, columns: []column{{}, {tight: true}, {prose: true}}}
	for _, f := range v.Findings {
		if f.Host != host {
			p.table(t)
			p.gap()
			host, t.rows = f.Host, nil
			p.flow(0, 2, join(inked(dim, "host "), inked(strong, host)))
		}
		t.add(p.graded(f.Grade), text(f.Thing), text(f.Found))
		if f.Fix != "" {
			t.add(text(""), text(""), join(inked(dim, p.arrow()+" "), text(f.Fix)))
		}
		if f.Line != "" {
			t.across(4, text(together(f.Line)))
		}
	}
	p.table(t)
	p.gap()
	missing, notices := v.Missing(), v.count("notice")
	switch {
	case missing > 0:
		p.flow(0, 2, inked(removed, fmt.Sprintf("%d missing: no session can run%s until that is fixed.", missing, v.where())))
	case notices > 0:
		p.flow(0, 2, inked(strong, "Nothing is missing; ! marks what works with a restriction."))
	default:
		p.flow(0, 2, inked(added, "Nothing is missing."))
	}
}

// graded is the sign of a grade.
func (s Style) graded(grade string) line {
	switch grade {
	case "missing":
		return inked(removed, s.cross())
	case "notice":
		return inked(changed, "!")
	}
	return inked(added, s.pick("✓", "+"))
}

func (v DoctorView) data() any {
	return public.Doctor{Format: public.V1, Missing: v.Missing(), Findings: list(v.Findings)}
}

// VersionView is what this build is, and what it lacks.
type VersionView struct{ public.Version }

func (v VersionView) draw(p *page) {
	from := given(v.Revision, "revision "+v.Revision+", ") + v.Go
	p.flow(0, 2, join(inked(strong, "cosplay "+v.Version.Version), inked(dim, " ("+from+")")))
	if len(v.Lacks) > 0 {
		p.flow(0, 2, join(inked(strong, "This build lacks "+strings.Join(v.Lacks, ", ")), text(": build with make instead of go build.")))
	}
}

func (v VersionView) data() any {
	v.Format, v.Lacks = public.V1, list(v.Lacks)
	return v.Version
}
