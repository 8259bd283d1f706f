package resolve

import (
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/resource"
)

// Refused is the refusal of sessions that do not fit, the Extra of its diagnostic.
type Refused struct {
	place.Refusal
	Later bool // they would fit if the other users of the hosts left
}

// OnlyRoom reports whether diagnostics have errors, and only such as end when other users of the hosts leave.
func OnlyRoom(diags hcl.Diagnostics) bool {
	return diags.HasErrors() && !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool {
		refused, is := d.Extra.(Refused)
		return d.Severity == hcl.DiagError && !(is && refused.Later)
	})
}

// later adds to refusals whether others are the cause.
func (r *resolver) later(refusals []place.Refusal) []Refused {
	if len(refusals) == 0 {
		return nil
	}
	alone := resolver{intent: r.intent, person: r.person, prior: r.prior, placements: r.placements, live: r.alone(), scope: r.scope}
	alone.gpus()
	never := map[resource.Address]bool{}
	for _, refused := range place.Place(alone.cards, r.wanted).Refused {
		for _, a := range refused.Addresses {
			never[a] = true
		}
	}
	var all []Refused
	for _, refused := range refusals {
		waits := !slices.ContainsFunc(refused.Addresses, func(a resource.Address) bool { return never[a] })
		all = append(all, Refused{refused, waits})
	}
	return all
}

// alone is the snapshot as it would be without other users.
func (r *resolver) alone() resource.Live {
	live := r.live
	live.Hosts = slices.Clone(live.Hosts)
	for i := range live.Hosts {
		h := &live.Hosts[i]
		h.GPUs, h.Ledger = slices.Clone(h.GPUs), slices.Clone(h.Ledger)
		for k := range h.GPUs {
			g := &h.GPUs[k]
			foreign, processes := diff.Foreign(*g, r.placements), diff.ForeignProcesses(*g, r.placements)
			g.Slices = slices.DeleteFunc(slices.Clone(g.Slices), func(s resource.LiveSlice) bool { return slices.Contains(foreign, s) })
			g.Processes = slices.DeleteFunc(slices.Clone(g.Processes), func(p resource.Process) bool {
				return slices.ContainsFunc(processes, func(o resource.Process) bool { return o.PID == p.PID })
			})
		}
		for k := range h.Ledger {
			h.Ledger[k].Holders = slices.DeleteFunc(slices.Clone(h.Ledger[k].Holders), func(o resource.Holder) bool { return o.Lineage != r.prior.Lineage })
		}
	}
	return live
}

// Candidates are the UUIDs of the GPUs on which the sessions of an intent may be, by host.
func Candidates(intent *config.Intent, live resource.Live) map[string][]string {
	r := resolver{intent: intent, live: live}
	all := map[string][]string{}
	for _, host := range intent.Hosts {
		shown, _ := live.Host(host.Name)
		for _, g := range shown.GPUs {
			if !selected(host, g) {
				continue
			}
			if slices.ContainsFunc(intent.Sessions, func(s config.Session) bool {
				want, ok := r.request(s)
				return ok && s.Host == host.Name && (want.GPU == "" || want.GPU == g.UUID)
			}) {
				all[host.Name] = append(all[host.Name], g.UUID)
			}
		}
	}
	return all
}
