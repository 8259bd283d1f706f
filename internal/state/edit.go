package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Selection is a part of a state, such as the meaning of an address.
type Selection struct {
	Sessions []resource.PriorSession
	GPUs     []resource.PriorGPU
	Block    bool // the name of a session block, which means all its instances
}

// Find finds one session by its address or container name, all sessions of a block, or a GPU by its UUID. It refuses
// an ambiguous name.
func Find(prior resource.Prior, typed string) (Selection, error) {
	if i := slices.IndexFunc(prior.GPUs, func(g resource.PriorGPU) bool { return g.UUID == typed }); i >= 0 {
		return Selection{GPUs: prior.GPUs[i : i+1]}, nil
	}
	sessions, block, err := matching(typed, prior.Sessions, func(s resource.PriorSession) (resource.Address, string) {
		return s.Address, resource.BodyName(s.ID)
	})
	if err == nil && sessions == nil {
		err = fmt.Errorf("the state has no %q; cosplay state list shows what it has", typed)
	}
	return Selection{Sessions: sessions, Block: block}, err
}

// Matching finds the matching address among others, or all addresses of a block.
func Matching(typed string, all []resource.Address) ([]resource.Address, error) {
	found, _, err := matching(typed, all, func(a resource.Address) (resource.Address, string) { return a, a.String() })
	if err == nil && found == nil {
		err = fmt.Errorf("there is no session %q, neither in the configuration nor in the state; cosplay state list and the session blocks show which exist", typed)
	}
	return found, err
}

// matching returns the element whose address or other name the user typed, or all elements of a block. worker-3,
// worker[3] and session.worker[3] are the same address.
func matching[T any](typed string, all []T, namesOf func(T) (resource.Address, string)) (found []T, block bool, err error) {
	var exact, ofBlock []T
	for _, one := range all {
		a, other := namesOf(one)
		mayBe := typed == other || strings.Contains(typed, a.Name) // most are not, and their text takes long to write
		if mayBe && slices.Contains([]string{a.String(), strings.TrimPrefix(a.String(), "session."), a.Short(), other}, typed) {
			exact = append(exact, one)
		}
		if a.Name == strings.TrimPrefix(typed, "session.") {
			ofBlock = append(ofBlock, one)
		}
	}
	if len(exact) > 1 {
		first, _ := namesOf(exact[0])
		second, _ := namesOf(exact[1])
		return exact, false, fmt.Errorf("%q could be %s or %s; write it in full", typed, first, second)
	}
	if exact != nil {
		return exact, false, nil
	}
	return ofBlock, ofBlock != nil, nil
}

// Move gives a session another address, or all sessions of a block another block name. Slice and container do not
// change: they belong to the session's ID, which stays. configured are the sessions of the configuration, which a
// short new address may mean.
func Move(prior resource.Prior, from, to string, configured []resource.Address) (resource.Prior, []resource.Renamed, error) {
	found, err := Find(prior, from)
	switch {
	case err != nil:
		return prior, nil, err
	case len(found.GPUs) > 0:
		return prior, nil, fmt.Errorf("%s is a GPU, which keeps its UUID; only sessions can be moved", from)
	}
	known := slices.Concat(configured, prior.Addresses())
	target, err := newAddress(to, found.Block, known)
	if err != nil {
		return prior, nil, err
	}
	var moves []resource.Renamed
	for _, s := range found.Sessions {
		move := resource.Renamed{From: s.Address, To: target}
		if found.Block {
			move.To.Key = s.Address.Key
		}
		if _, taken := prior.Session(move.To); taken {
			return prior, nil, fmt.Errorf("%s is in the state already; move or remove that one first", move.To)
		}
		moves = append(moves, move)
	}
	return prior.Rename(moves), moves, nil
}

// counted is a short address that may mean an instance of a block or a block.
var counted = pattern.Of(`-\d+$`)

// newAddress reads an address that the state need not have yet. A short one may mean one of the known addresses.
func newAddress(typed string, block bool, known []resource.Address) (resource.Address, error) {
	full := "session." + strings.TrimPrefix(typed, "session.")
	a, err := resource.ParseAddress(full)
	switch {
	case err != nil:
		return a, err
	case block && a.Key.Kind != resource.Single:
		return a, fmt.Errorf("all sessions of a block are to be moved, and %q is a single one; name another block", typed)
	case typed == full || block:
		return a, nil
	}
	if i := slices.IndexFunc(known, func(k resource.Address) bool { return k.Short() == typed }); i >= 0 {
		return known[i], nil
	}
	if counted().MatchString(typed) {
		dash := strings.LastIndex(typed, "-")
		if slices.ContainsFunc(known, func(k resource.Address) bool { return k.Name == typed[:dash] && k.Key.Kind == resource.ByCount }) {
			return resource.ParseAddress("session." + typed[:dash] + "[" + typed[dash+1:] + "]")
		}
		return a, fmt.Errorf("%q could be session.%s[%s] or session.%s; write it in full", typed, typed[:dash], typed[dash+1:], typed)
	}
	return a, nil
}

// Forget removes sessions, with the GPUs on which no session remains, and named GPUs without sessions. The baseline
// of such a GPU is lost. It also returns what it has removed.
func Forget(prior resource.Prior, typed []string) (resource.Prior, Selection, error) {
	var (
		forgot   Selection
		problems []error
		drop     = map[resource.Address]bool{}
		named    = map[string]bool{}
		touched  = map[resource.GPUKey]bool{} // GPUs that lose a session
	)
	for _, one := range typed {
		found, err := Find(prior, one)
		problems = append(problems, err)
		for _, s := range found.Sessions {
			drop[s.Address] = true
			for _, gpu := range s.On() {
				touched[gpu] = true
			}
		}
		for _, g := range found.GPUs {
			named[g.UUID] = true
		}
	}
	next := prior.Forget(slices.Collect(maps.Keys(drop))...)
	left, empty := next.Placements(), map[resource.GPUKey]bool{}
	for _, g := range prior.GPUs {
		stay := left[g.Key()]
		if len(stay) > 0 && named[g.UUID] {
			problems = append(problems, fmt.Errorf("%s cannot be forgotten while %s is on it; name that one too", g.UUID, stay[0].Address))
		}
		empty[g.Key()] = len(stay) == 0 && (named[g.UUID] || touched[g.Key()])
	}
	next = next.ForgetGPUs(empty)
	slices.Sort(next.Forgotten)
	if err := errors.Join(problems...); err != nil {
		return prior, forgot, err
	}
	maps.DeleteFunc(next.BootIDs, func(host, _ string) bool { return !next.Holds(host) })
	forgot.Sessions = prose.Only(prior.Sessions, func(s resource.PriorSession) bool { return drop[s.Address] })
	forgot.GPUs = prose.Only(prior.GPUs, func(g resource.PriorGPU) bool { return empty[g.Key()] })
	return next, forgot, nil
}
