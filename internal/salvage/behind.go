package salvage

import (
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Behind reports whether a state is older than the records of its project on its hosts, for example because it was
// restored from a backup. It then lacks an object that a later run created and that no run has given up since, or has
// one that a later run removed.
func Behind(prior resource.Prior, live resource.Live) bool {
	if prior.Lineage == "" {
		return false
	}
	placements, byID := prior.Placements(), sessionsByID(prior)
	for i := range live.Hosts {
		host := &live.Hosts[i]
		if len(host.Released) > 0 {
			return true
		}
		for _, page := range host.Ledger {
			if holder, holds := page.Holder(prior.Lineage); holds && pageAhead(prior, placements, live, host.Name, page, holder) {
				return true
			}
		}
		if slices.ContainsFunc(host.Bodies, func(c resource.Body) bool { return bodyAhead(prior, byID, host, c) }) {
			return true
		}
	}
	return false
}

// pageAhead reports whether the page of a GPU has a slice or settings that the state lacks, or the state lacks the GPU.
func pageAhead(prior resource.Prior, placements resource.Placements, live resource.Live, host string, page resource.Page, holder resource.Holder) bool {
	g, there := live.GPU(host, page.UUID)
	if !there || holder.Serial == 0 {
		return false
	}
	held, known := prior.GPU(host, page.UUID)
	if !known && !prior.HasForgotten(page.UUID) {
		return true
	}
	if known && holder.Serial > prior.LastRun && page.Set.Over(held.Applied) != held.Applied {
		return true
	}
	removed := func(s *resource.PriorSession) bool { return !exists(*s, live, nil) }
	if later(prior, page) && slices.ContainsFunc(placements.On(g), removed) {
		return true
	}
	foreign := diff.Foreign(g, placements)
	return slices.ContainsFunc(holder.Slices, func(s resource.LiveSlice) bool {
		return sliceAhead(prior, page, s) && slices.ContainsFunc(foreign, func(l resource.LiveSlice) bool { return s.Match(l) != resource.OtherSlice })
	})
}

// sliceAhead reports whether a project's slice in the ledger proves a later run: the ledger has the slice's UUID and
// the run that created it, no other project has the slice, and the state has not given it up.
func sliceAhead(prior resource.Prior, page resource.Page, s resource.LiveSlice) bool {
	others := slices.ContainsFunc(page.Others(prior.Lineage), func(h resource.Holder) bool { return h.Has(s) })
	return s.Serial > 0 && s.UUID != "" && !others && !prior.HasForgotten(s.UUID)
}

// bodyAhead reports whether a run later than the state created a container. The caller has checked that the
// container belongs to this state.
func bodyAhead(prior resource.Prior, byID sessions, host *resource.Host, c resource.Body) bool {
	leftover := slices.ContainsFunc(host.Leftovers, func(o resource.Body) bool { return o.Session == c.Session && o.Runtime == c.Runtime })
	if c.Serial == 0 || leftover || prior.HasForgottenBody(c) {
		return false
	}
	s, known := byID[[3]string{host.Name, c.Runtime, c.Session}]
	return !known || c.Serial > prior.LastRun && (s.Body == nil || s.Body.ID != c.ID || s.Body.Hash != c.Hash)
}

// sessions returns those of a state by host, runtime and ID.
type sessions map[[3]string]*resource.PriorSession

func sessionsByID(prior resource.Prior) sessions {
	all := make(sessions, len(prior.Sessions))
	for i := range prior.Sessions {
		s := &prior.Sessions[i]
		all[[3]string{s.Slice.Host, s.Runtime, s.ID}] = s
	}
	return all
}

// Ahead reduces a world to the objects that later runs of a state's project have certainly created. It also lists the
// doubtful ones: objects with a slice of that kind whose owner is not proven.
func Ahead(prior resource.Prior, live resource.Live, remains []resource.Remains) (ahead resource.Live, certainly, doubtful []resource.Remains) {
	owner, byID := prior.Owner(), sessionsByID(prior)
	slice, used := map[string]bool{}, map[[2]string]bool{}
	for _, r := range remains {
		if host, _ := live.Host(r.Body.Host); r.Proven && bodyAhead(prior, byID, &host, r.Body) {
			for _, slice := range r.Session.Slices() {
				used[[2]string{host.Name, slice.GPU}] = true
			}
		}
	}
	hosts := slices.Clone(live.Hosts)
	for i := range hosts {
		hosts[i].Ledger = slices.Clone(hosts[i].Ledger)
		for n := range hosts[i].Ledger {
			page := certain(prior, hosts[i].Name, hosts[i].Ledger[n], used)
			holder, _ := page.Holder(prior.Lineage)
			for _, s := range holder.Slices {
				slice[s.UUID] = true
			}
			hosts[i].Ledger[n] = page
		}
	}
	for _, r := range remains {
		c := r.Body
		host, _ := live.Host(c.Host)
		switch {
		case slices.Contains(owner.Bodies, c.ID) && !bodyAhead(prior, byID, &host, c), prior.HasForgottenBody(c):
		case r.Proven && (bodyAhead(prior, byID, &host, c) || slice[c.SliceID]):
			certainly = append(certainly, r)
		case slice[c.SliceID]:
			doubtful = append(doubtful, r)
		}
	}
	return resource.Live{Hosts: hosts}, certainly, doubtful
}

// certain drops from a page everything that does not prove a later run. A GPU that the state gave up counts again if
// a later run created a slice or uses the GPU.
func certain(prior resource.Prior, host string, page resource.Page, used map[[2]string]bool) resource.Page {
	holder, _ := page.Holder(prior.Lineage)
	holder.Slices = slices.DeleteFunc(slices.Clone(holder.Slices), func(s resource.LiveSlice) bool { return !sliceAhead(prior, page, s) })
	held, known := prior.GPU(host, page.UUID)
	if known && holder.Serial <= prior.LastRun {
		page.Baseline, page.LockBefore, page.Set = held.Baseline, held.LockBefore, resource.Settings{}
	}
	givenUp := prior.HasForgotten(page.UUID) && len(holder.Slices) == 0 && !used[[2]string{host, page.UUID}]
	if !known && (holder.Serial == 0 || givenUp) {
		page.Holders = page.Others(prior.Lineage)
		return page
	}
	page.Holders = slices.Clone(page.Holders)
	for i := range page.Holders {
		if page.Holders[i].Lineage == prior.Lineage {
			page.Holders[i] = holder
		}
	}
	return page
}

// Regained returns a state together with the GPUs that it gave up and that its hosts still hold for it, because only
// this project can restore their settings. Slices and containers stay given up.
func Regained(prior resource.Prior, live resource.Live) resource.Prior {
	b := builder{Sources: Sources{Lineage: prior.Lineage, Known: prior, Live: live}, prior: prior.Clone()}
	for _, host := range live.Hosts {
		for _, page := range host.Ledger {
			if _, holds := page.Holder(prior.Lineage); holds && prior.HasForgotten(page.UUID) {
				b.gpu(host, page)
			}
		}
	}
	slices.SortFunc(b.prior.GPUs, resource.PriorGPU.Compare)
	return b.prior.Remembering()
}
