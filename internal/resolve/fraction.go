package resolve

import (
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// fractions gives each session with a fraction that part of its host's own GPU as its target. A session for which there
// is none is refused and left out.
func (r *resolver) fractions() {
	if !slices.ContainsFunc(r.intent.Sessions, func(s config.Session) bool { return s.Fraction > 0 }) {
		return
	}
	r.anyWay = map[resource.Address]bool{}
	r.only(func(s *config.Session) bool { return s.Fraction == 0 || r.ownCard(s) })
}

// ownCard sets the target of a session with a fraction, and how it shares the GPU.
func (r *resolver) ownCard(s *config.Session) bool {
	was, made := r.prior.Session(s.Address)
	if made && was.Request.Fraction == s.Fraction && (s.Sharing == resource.SharingAuto || s.Sharing == was.Request.Sharing) {
		s.Target, s.Sharing = was.Target, was.Request.Sharing // also while its GPU cannot be read
		return true
	}
	refuse := func(summary, detail string) bool {
		r.add(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: s.Ranges.Of("fraction")})
		return false
	}
	models := r.models(*s)
	if len(models) != 1 {
		names := prose.Each(models, func(m resource.Model) string { return m.ShortModel() })
		if len(names) == 0 {
			return refuse(fmt.Sprintf("host %q has no GPU of which %s could have a part", s.Host, s.Address), "Use another host, or more GPUs in the host's gpus list.")
		}
		return refuse(fmt.Sprintf("host %q has several models of GPU", s.Host), "A fraction is of one model. The host has "+prose.And(names)+". Name a GPU with gpu, or limit the host's gpus.")
	}
	model := models[0]
	card, err := catalog.Target(model.Name)
	if err != nil {
		return refuse("the catalog does not have "+model.Name, "cosplay has no figures for it. Write a target instead of the fraction.")
	}
	if s.Sharing == resource.SharingAuto {
		s.Sharing = resource.SharingTime
		if model.MIG() && s.GPUs == 0 {
			s.Sharing = resource.SharingMIG
			r.anyWay[s.Address] = true
		}
	}
	divided := s.Sharing == resource.SharingMIG || s.Sharing == resource.SharingMPS && model.DividesSMs()
	s.Target = card.Part(s.Fraction, model.MemoryMiB, divided)
	if s.Target.MemoryMiB < leastFractionMiB {
		return refuse(fmt.Sprintf("%g of %s has %d MiB, which is too little for a CUDA program", s.Fraction, model.ShortModel(), s.Target.MemoryMiB),
			fmt.Sprintf("A context alone takes some hundred MiB. Write at least %.2g.", math.Ceil(1000*leastFractionMiB/float64(model.MemoryMiB))/1000))
	}
	return true
}

// leastFractionMiB is the memory of the smallest session: less than any card of the catalog.
const leastFractionMiB = 512

// place places the sessions. If MIG has no room for all that have a fraction, those that may share a GPU in any way share
// it by time slices: as few blocks as possible, and none that has its slice already.
func (r *resolver) place() place.Result {
	result := place.Place(r.cards, r.wanted)
	refused := map[string]bool{} // blocks
	for _, refusal := range result.Refused {
		for _, a := range refusal.Addresses {
			if r.anyWay[a] {
				refused[a.Name] = true
			}
		}
	}
	if len(refused) == 0 {
		return result
	}
	for _, all := range []bool{false, true} {
		wanted, turned := r.byTurns(func(a resource.Address) bool { return all || refused[a.Name] })
		if again := place.Place(r.cards, wanted); len(again.Refused) == 0 {
			r.wanted = wanted
			r.take(turned)
			return again
		}
	}
	return result
}

// byTurns are the requests, with those of some blocks for time slices, and the sessions of which that is so.
func (r *resolver) byTurns(blocks func(resource.Address) bool) (wanted []place.Request, turned []place.Request) {
	wanted = slices.Clone(r.wanted)
	for i := range wanted {
		w := &wanted[i]
		card, err := catalog.Target(w.Target.Name)
		if w.Kept != nil || !r.anyWay[w.Address] || !blocks(w.Address) || err != nil {
			continue
		}
		memory := w.Target.MemoryMiB
		w.Want.Sharing, w.Target = resource.SharingTime, card.Part(w.Want.Fraction, 0, false)
		w.Target.MemoryMiB = memory
		turned = append(turned, *w)
	}
	return wanted, turned
}

// take gives sessions of the configuration what was chosen for them, and says so.
func (r *resolver) take(chosen []place.Request) {
	for _, w := range chosen {
		s := r.intent.Session(w.Address)
		s.Sharing, s.Target = w.Want.Sharing, w.Target
		r.add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("session %q shares a whole GPU by time slices", w.Address.Name), Subject: s.Ranges.Of("fraction"),
			Detail: "MIG has no slices for all parts of the GPU, so that its memory alone is divided. With sharing = \"mig\", what does not fit is refused."})
	}
}

// models are the different models of GPU that a session may have.
func (r *resolver) models(s config.Session) (all []resource.Model) {
	shown, _ := r.live.Host(s.Host)
	host := r.intent.Host(s.Host)
	for _, g := range shown.GPUs {
		if host != nil && !selected(*host, g) || s.GPU != nil && !s.GPU.Matches(g) {
			continue
		}
		if !slices.ContainsFunc(all, func(m resource.Model) bool { return m.Name == g.Model.Name && m.MemoryMiB == g.Model.MemoryMiB }) {
			all = append(all, g.Model)
		}
	}
	return all
}
