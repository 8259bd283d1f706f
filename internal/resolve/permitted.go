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
	if slices.ContainsFunc(r.intent.Hosts, func(h config.Host) bool { return len(h.Sharing) > 0 }) {
		r.only(r.permits)
	}
}

func (r *resolver) permits(s *config.Session) bool {
	host := r.intent.Host(s.Host)
	if host == nil || len(host.Sharing) == 0 {
		return true
	}
	may := host.Sharing
	was, made := r.prior.Session(s.Address)
	asked := s.Sharing
	if s.Slice != "" && asked == resource.SharingAuto {
		asked = resource.SharingMIG // and stays so
	}
	switch {
	case asked == resource.SharingAuto && made && was.Request.Sharing == resource.SharingAuto && slices.Contains(may, kindOf(was.Slice)):
	case asked == resource.SharingAuto:
		s.Sharing = host.Unsaid(*s)
		if s.Fraction > 0 && (s.Sharing == resource.SharingExclusive || s.Sharing == resource.SharingCompute) {
			r.report(hcl.DiagError, s.Ranges.Of("fraction"), fmt.Sprintf("host %q permits no fraction of a GPU", s.Host),
				fmt.Sprintf("A fraction is a MIG slice, a share by time slices or a share by MPS, and %s permits none of these. Write a target, or use another host.", line(*host)))
			return false
		}
	case !slices.Contains(may, asked):
		words := prose.Each(may, func(kind resource.Sharing) string { return fmt.Sprintf("%q", kind) })
		r.report(hcl.DiagError, s.Ranges.Of("sharing"), fmt.Sprintf("host %q does not permit sharing = %q", s.Host, asked),
			fmt.Sprintf("%s limits it to %s. Write one of these, or use another host.", prose.Capital(line(*host)), strings.Join(words, ", ")))
		return false
	}
	return true
}

// line is where a host states what it permits.
func line(h config.Host) string {
	at := h.Ranges.At("sharing")
	return fmt.Sprintf("line %d of %s", at.Start.Line, at.Filename)
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
