package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// permit limits each session to what its host permits. A session that asks for anything else is refused and left out;
// one that does not say keeps what it has, if that is permitted.
func (r *resolver) permit() {
	limits := func(h config.Host) bool { return len(h.Sharing) > 0 }
	if !slices.ContainsFunc(r.intent.Hosts, limits) {
		return
	}
	intent := *r.intent
	intent.Sessions = make([]config.Session, 0, len(r.intent.Sessions))
	for _, s := range r.intent.Sessions {
		if r.permits(&s) {
			intent.Sessions = append(intent.Sessions, s)
		}
	}
	r.intent = &intent
}

func (r *resolver) permits(s *config.Session) bool {
	i := slices.IndexFunc(r.intent.Hosts, func(h config.Host) bool { return h.Name == s.Host })
	if i < 0 || len(r.intent.Hosts[i].Sharing) == 0 {
		return true
	}
	may := r.intent.Hosts[i].Sharing
	was, made := r.prior.Session(s.Address)
	asked := s.Sharing
	if s.Slice != "" && asked == resource.SharingAuto {
		asked = resource.SharingMIG // and stays so
	}
	switch {
	case asked == resource.SharingAuto && made && was.Request.Sharing == resource.SharingAuto && slices.Contains(may, kindOf(was.Slice)):
	case asked == resource.SharingAuto:
		s.Sharing = unsaid(may, s.Fraction > 0)
		if s.Fraction > 0 && s.Sharing == resource.SharingExclusive {
			r.report(hcl.DiagError, rangeOf(s.Ranges, "fraction"), fmt.Sprintf("host %q does not permit to share a GPU", s.Host),
				fmt.Sprintf("A fraction needs a share of a GPU, and %s permits whole GPUs alone. Write a target, or use another host.", line(r.intent.Hosts[i])))
			return false
		}
	case !slices.Contains(may, asked):
		words := prose.Each(may, func(kind resource.Sharing) string { return fmt.Sprintf("%q", kind) })
		r.report(hcl.DiagError, rangeOf(s.Ranges, "sharing"), fmt.Sprintf("host %q does not permit sharing = %q", s.Host, asked),
			fmt.Sprintf("%s limits it to %s. Write one of these, or use another host.", prose.Capital(line(r.intent.Hosts[i])), strings.Join(words, ", ")))
		return false
	}
	return true
}

// line is where a host states what it permits.
func line(h config.Host) string {
	at := h.Ranges.At("sharing")
	return fmt.Sprintf("line %d of %s", at.Start.Line, at.Filename)
}

// unsaid is what a session gets that does not say which part of a GPU it may have. One with a fraction has no whole GPU;
// where MIG has no room, it shares one by time slices.
func unsaid(may []resource.Sharing, fraction bool) resource.Sharing {
	mig, whole := slices.Contains(may, resource.SharingMIG), slices.Contains(may, resource.SharingExclusive) && !fraction
	switch {
	case mig && (whole || fraction && slices.Contains(may, resource.SharingTime)):
		return resource.SharingAuto
	case mig:
		return resource.SharingMIG
	case whole:
		return resource.SharingExclusive
	}
	return may[0]
}

// kindOf is how a session has its slice.
func kindOf(s resource.Slice) resource.Sharing {
	switch {
	case s.Sharing != "":
		return s.Sharing
	case s.Whole():
		return resource.SharingExclusive
	}
	return resource.SharingMIG
}
