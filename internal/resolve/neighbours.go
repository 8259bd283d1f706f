package resolve

import (
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/place"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Neighbour is another project of the user that has acquired a GPU.
type Neighbour struct {
	Name     string // "project /home/ada/lab", "cosplay run in /home/ada"
	Sessions []resource.PriorSession
	Ends     bool   // it leaves by itself: a cosplay run
	Frees    string // what takes it down, for the user to type; "" if cosplay cannot say
}

// mine reports whether another holder of a GPU is a project of the same user.
func (r *resolver) mine(h resource.Holder) bool {
	return r.scope.Neighbour != nil && h.UID != nil && *h.UID == r.person.User.UID
}

// persists reports whether a holder is a project of the user that does not leave by itself.
func (r *resolver) persists(h resource.Holder) bool {
	return r.mine(h) && !r.scope.Neighbour(h).Ends
}

// countMine counts the slices among foreign ones that belong to other projects of the user.
func (r *resolver) countMine(g resource.GPU, foreign []resource.LiveSlice) (n int) {
	for _, h := range r.others(g) {
		if r.mine(h) {
			n += len(heldBy(h, foreign))
		}
	}
	return n
}

// heldBy lists the slices that a holder has.
func heldBy(h resource.Holder, all []resource.LiveSlice) []resource.LiveSlice {
	return prose.Only(all, h.Has)
}

// blockers names the programs that prevent MIG mode on a GPU which the session could
// use, the GPUs whose MIG mode cosplay does not manage, and those that are whole another project's; and, where it
// would fit without others, the user's other projects.
func (r *resolver) blockers(a resource.Address, later bool) string {
	want := r.wanted[slices.IndexFunc(r.wanted, func(w place.Request) bool { return w.Address == a })].Want
	words := ""
	host, _ := r.live.Host(want.Host)
	for _, g := range host.GPUs {
		for _, h := range r.others(g) {
			if h.Whole && !r.mine(h) && (want.GPU == "" || want.GPU == g.UUID) {
				words += fmt.Sprintf("\nA project of user %s has the whole of GPU %d (state %s).", h.User, g.Index, h.State)
			}
		}
	}
	if later {
		words += r.neighbours(host, want.GPU)
	}
	for _, card := range r.cards {
		mine := card.Host == want.Host && (want.GPU == "" || want.GPU == card.UUID)
		if mine && card.Busy && card.Model.MIG() && !card.MIG {
			words += fmt.Sprintf("\nGPU %d is used by %s.", card.Index, resource.ProcessNames(diff.ForeignProcesses(card.GPU, r.placements)))
		}
		if lacks, without := card.Degradation(resource.FeatureMIG); mine && without {
			words += fmt.Sprintf("\nGPU %d has no slices: cosplay does not manage its MIG mode (%s).", card.Index, lacks)
		}
	}
	return words
}

// neighbours names the user's other projects on the GPUs that a session could use, and how to take them down.
func (r *resolver) neighbours(host resource.Host, gpu string) (words string) {
	var found []resource.Holder
	on := map[string][]resource.GPU{} // by lineage
	for _, g := range host.GPUs {
		for _, h := range r.others(g) {
			if !r.mine(h) || gpu != "" && gpu != g.UUID {
				continue
			}
			if on[h.Lineage] == nil {
				found = append(found, h)
			}
			on[h.Lineage] = append(on[h.Lineage], g)
		}
	}
	for _, h := range found {
		words += "\nYour " + r.scope.Neighbour(h).words(on[h.Lineage])
	}
	return words
}

// words says what a neighbour has on these GPUs, and how to take it down.
func (n Neighbour) words(on []resource.GPU) string {
	var sessions []resource.Address
	for _, s := range n.Sessions {
		if slices.ContainsFunc(s.On(), func(at resource.GPUKey) bool {
			return slices.ContainsFunc(on, func(g resource.GPU) bool { return g.UUID == at.UUID })
		}) {
			sessions = append(sessions, s.Address)
		}
	}
	has := "is"
	if len(sessions) > 0 {
		has = "has " + resource.AddressNames(sessions, 3)
	}
	words := fmt.Sprintf("%s %s on GPU %s", n.Name, has, prose.And(prose.Each(on, func(g resource.GPU) string { return fmt.Sprint(g.Index) })))
	switch {
	case n.Ends:
		return words + ", until it ends."
	case n.Frees != "":
		return words + ". To take it down: " + n.Frees
	}
	return words + ". To take it down, run cosplay destroy with the options of its apply."
}
