package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/resource"
)

// FindImport finds what an ID means, for a session that is in the configuration
// and not in the state: the UUID of a MIG slice, the name or ID of a container,
// or the name of a session on its host. Nothing is changed, but that a state
// which was lost gets the lineage and the key back that prove what was found:
// the prior that is returned is the one to go on with.
func FindImport(ctx context.Context, p *project.Project, prior resource.Prior, live resource.Live, to resource.Address, id string) (*project.Import, resource.Prior, error) {
	f := finder{Project: p, prior: prior, live: live, id: id}
	i := slices.IndexFunc(p.Intent.Sessions, func(s config.Session) bool { return s.Address == to })
	if i < 0 {
		return nil, prior, fmt.Errorf("the configuration has no %s: write its block there first, for what is in the state alone is removed by the next apply", to)
	}
	f.wanted = p.Intent.Sessions[i]
	if was, there := prior.Session(to); there {
		return nil, prior, fmt.Errorf("%s is in the state already, with %s. To give it another, forget it first: cosplay state rm %s", to, things(was), to.Short())
	}
	found, err := f.find(ctx)
	if err != nil {
		return nil, prior, err
	}
	return found, f.prior, nil
}

// things are what a session has, in words.
func things(s resource.PriorSession) string {
	switch {
	case s.Handle != nil && s.Handle.UUID != "":
		return "the slice " + s.Handle.UUID
	case s.Container != nil:
		return "a " + resource.RuntimeNamed(s.Runtime).Body
	}
	return "something of its own"
}

// BeginImport finds what is to be imported. The caller has the lock.
func BeginImport(ctx context.Context, p *project.Project, to resource.Address, id string) (*project.Import, project.Outlook, error) {
	var (
		o   project.Outlook
		err error
	)
	// What the state lacks is not taken up by itself: one thing is asked for.
	if o.Prior, o.Live, err = p.FoldJournal(ctx); err != nil {
		return nil, o, err
	}
	var found *project.Import
	found, o.Prior, err = FindImport(ctx, p, o.Prior, o.Live, to, id)
	return found, o, err
}

// CarryOutImport takes it into the state and, where that did not have it, into
// the host's ledger.
func CarryOutImport(ctx context.Context, p *project.Project, i *project.Import, o project.Outlook) (resource.Prior, error) {
	todo := &plan.Plan{Basis: plan.NewBasis(o.Prior, o.Live), Steps: i.Steps}
	result, err := p.Apply(ctx, todo, o.Prior, o.Live, project.ApplyOptions{Parallelism: 1, Partial: true})
	for _, f := range result.Failures {
		err = errors.Join(err, f.Err)
	}
	if err == nil && len(result.NotTried) > 0 {
		err = fmt.Errorf("it was stopped before it was done; cosplay import does it again")
	}
	return result.Prior, err
}

// adopting are the steps that take a session with what it has into the state.
// take is what the host's ledger has to be told first; nil for nothing.
func adopting(prior resource.Prior, boot string, s resource.PriorSession, gpu *resource.PriorGPU, take *plan.TakeGPU) []plan.Step {
	var (
		steps []plan.Step
		needs []string
	)
	add := func(id, group string, op plan.Op) {
		steps = append(steps, plan.Step{ID: id, Group: group, Needs: slices.Clone(needs), Do: plan.OpJSON{Op: op}})
		needs = append(needs, id)
	}
	if host := s.Slice.Host; !prior.Holds(host) && prior.BootIDs[host] != boot {
		add("import/host."+host+"/boot", "host."+host, plan.NoteBoot{Host: host, BootID: boot})
	}
	if take != nil {
		take.For = s.Address.String()
		add("import/"+s.Address.String()+"/take", take.GPU, *take)
	}
	add("import/"+s.Address.String(), s.Address.String(), plan.Adopt{Session: s, GPU: gpu})
	return steps
}
