package resolve

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Spread chooses the hosts of the sessions whose blocks leave the choice to cosplay, and writes them into the intent. A
// session stays on its host while that has room; the others go where placement over all hosts puts them. A host that does
// not answer is not chosen. There is an error at the line of each session that fits on no host.
func Spread(intent *config.Intent, prior resource.Prior, live resource.Live, scope Scope) hcl.Diagnostics {
	var open []*config.Session
	for i := range intent.Sessions {
		s := &intent.Sessions[i]
		if s.Hosts == nil {
			continue
		}
		if s.Host = ""; scope.Left[s.Address] { // an earlier round may have chosen one
			continue
		}
		if was, made := prior.Session(s.Address); made && slices.Contains(s.Hosts, was.Slice.Host) {
			s.Host = was.Slice.Host
		}
		open = append(open, s)
	}
	if len(open) == 0 {
		return nil
	}
	result, diags := spreading(intent, prior, live, scope)
	if moving := movable(open, result); len(moving) > 0 {
		for _, s := range moving {
			s.Host = ""
		}
		result, diags = spreading(intent, prior, live, scope)
	}
	for _, s := range open {
		at, placed := slices.BinarySearchFunc(result.Placed, s.Address, func(p place.Placed, a resource.Address) int { return p.Address.Compare(a) })
		if placed {
			s.Host = result.Placed[at].Slice.Host
		}
	}
	return diags
}

// spreading places all sessions, those without a host on any that they may have.
func spreading(intent *config.Intent, prior resource.Prior, live resource.Live, scope Scope) (place.Result, hcl.Diagnostics) {
	all := *intent
	all.Sessions = slices.Clone(intent.Sessions)
	for i := range all.Sessions {
		if s := &all.Sessions[i]; s.Host == "" {
			permitting(intent, s)
		}
	}
	r := resolver{intent: &all, prior: prior, placements: prior.Placements(), live: live, scope: scope}
	r.gpus()
	r.permit()
	r.fractions()
	before := len(r.diags) // what Desired reports, too
	r.requests()
	r.diags = r.diags[:before]
	result := r.place()
	r.diags = nil
	r.refuse(place.Result{Refused: prose.Only(result.Refused, func(refused place.Refusal) bool {
		return slices.ContainsFunc(refused.Addresses, func(a resource.Address) bool { s := all.Session(a); return s != nil && s.Host == "" })
	})})
	return result, r.diags
}

// permitting limits a session to the hosts that permit how it shares a GPU. Where that is left to the hosts, it is those that
// permit everything, or else those that permit what the first one does.
func permitting(intent *config.Intent, s *config.Session) {
	asked := s.Sharing
	if s.Slice != "" && asked == resource.SharingAuto {
		asked = resource.SharingMIG
	}
	type permitted struct {
		host string
		as   resource.Sharing
	}
	var may []permitted
	for _, name := range s.Hosts {
		switch h := intent.Host(name); {
		case h == nil:
		case asked == resource.SharingAuto:
			may = append(may, permitted{name, h.Unsaid(*s)})
		case len(h.Sharing) == 0 || slices.Contains(h.Sharing, asked):
			may = append(may, permitted{name, asked})
		}
	}
	if len(may) == 0 {
		return // it is refused
	}
	common := may[0].as
	if slices.ContainsFunc(may, func(one permitted) bool { return one.as == asked }) {
		common = asked
	}
	may = prose.Only(may, func(one permitted) bool { return one.as == common })
	s.Hosts, s.Sharing = prose.Each(may, func(one permitted) string { return one.host }), common
}

// movable are the sessions that have no room on their hosts any more, for which another host may have it.
func movable(open []*config.Session, result place.Result) (all []*config.Session) {
	refused := map[resource.Address]bool{}
	for _, one := range result.Refused {
		for _, a := range one.Addresses {
			refused[a] = true
		}
	}
	return prose.Only(open, func(s *config.Session) bool { return refused[s.Address] && s.Host != "" && len(s.Hosts) > 1 })
}
