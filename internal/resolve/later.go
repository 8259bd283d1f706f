package resolve

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/resource"
)

// Refused is the refusal of sessions that do not fit, the Extra of its diagnostic.
type Refused struct {
	place.Refusal
	Later bool // they would fit if the other projects on the hosts left
	Waits bool // and that may happen without the user of this command
}

// OnlyRoom reports whether diagnostics have errors, and only such as end when other users of the hosts leave.
func OnlyRoom(diags hcl.Diagnostics) bool {
	return diags.HasErrors() && !slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool {
		refused, is := d.Extra.(Refused)
		return d.Severity == hcl.DiagError && !(is && refused.Later)
	})
}

// NoRoom is why sessions do not fit, for a command that has waited.
func NoRoom(diags hcl.Diagnostics) string {
	for _, d := range diags {
		if _, is := d.Extra.(Refused); is {
			return strings.TrimSuffix(d.Detail, waitHint)
		}
	}
	return "Others wait, and were there first."
}

// later adds to refusals whether others are the cause.
func (r *resolver) later(refusals []place.Refusal) []Refused {
	if len(refusals) == 0 {
		return nil
	}
	fits := r.without(func(resource.Holder) bool { return false })
	waits := r.without(r.persists)
	var all []Refused
	for _, refused := range refusals {
		later := fits(refused.Addresses)
		all = append(all, Refused{refused, later, later && waits(refused.Addresses)})
	}
	return all
}

// without returns whether sessions fit on the hosts without all that is not the project's, but for the holders that stay.
func (r *resolver) without(stays func(resource.Holder) bool) func([]resource.Address) bool {
	alone := resolver{intent: r.intent, person: r.person, prior: r.prior, placements: r.placements, live: r.alone(stays), scope: r.scope}
	alone.gpus()
	never := map[resource.Address]bool{}
	for _, refused := range place.Place(alone.cards, r.wanted).Refused {
		for _, a := range refused.Addresses {
			never[a] = true
		}
	}
	return func(all []resource.Address) bool {
		return !slices.ContainsFunc(all, func(a resource.Address) bool { return never[a] })
	}
}

// alone is the snapshot as it would be without others, but for the holders that stay.
func (r *resolver) alone(stays func(resource.Holder) bool) resource.Live {
	live := r.live
	live.Hosts = slices.Clone(live.Hosts)
	for i := range live.Hosts {
		h := &live.Hosts[i]
		h.GPUs, h.Ledger = slices.Clone(h.GPUs), slices.Clone(h.Ledger)
		for k := range h.GPUs {
			g := &h.GPUs[k]
			foreign, processes := diff.Foreign(*g, r.placements), diff.ForeignProcesses(*g, r.placements)
			for _, holder := range r.others(*g) {
				if !stays(holder) {
					continue
				}
				kept := heldBy(holder, foreign)
				foreign = slices.DeleteFunc(foreign, func(s resource.LiveSlice) bool { return slices.Contains(kept, s) })
				processes = slices.DeleteFunc(processes, func(p resource.Process) bool {
					return holder.Whole || slices.ContainsFunc(kept, func(s resource.LiveSlice) bool { return p.In(s.Handle) })
				})
			}
			g.Slices = slices.DeleteFunc(slices.Clone(g.Slices), func(s resource.LiveSlice) bool { return slices.Contains(foreign, s) })
			g.Processes = slices.DeleteFunc(slices.Clone(g.Processes), func(p resource.Process) bool {
				return slices.ContainsFunc(processes, func(o resource.Process) bool { return o.PID == p.PID })
			})
		}
		for k := range h.Ledger {
			h.Ledger[k].Holders = slices.DeleteFunc(slices.Clone(h.Ledger[k].Holders), func(o resource.Holder) bool { return o.Lineage != r.prior.Lineage && !stays(o) })
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
				return ok && s.MayBeOn(host.Name) && (want.GPU == "" || want.GPU == g.UUID)
			}) {
				all[host.Name] = append(all[host.Name], g.UUID)
			}
		}
	}
	return all
}
