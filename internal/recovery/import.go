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

// FindImport finds the object that an import names, for a session that is in the configuration
// and not in the state. Its ID is the UUID of a MIG slice, the name or ID of a container,
// or the name of a session on its host. Nothing is written. The caller continues with the
// prior that FindImport returns: a lost state gets back the lineage and the key that prove
// the object. With ErrOnlyRoot it returns the object nevertheless: nothing else prevents its import. also are the sessions
// that other blocks import: their slices are not foreign.
func FindImport(ctx context.Context, p *project.Project, prior resource.Prior, live resource.Live, one config.Import, also []resource.PriorSession) (*project.Import, resource.Prior, error) {
	f, to := finder{Project: p, prior: prior, live: live, id: one.ID, baseline: one.Baseline, inFile: one.Range.Filename != "", alsoImported: also}, one.To
	wanted := p.Intent.Session(to)
	if wanted == nil {
		return nil, prior, fmt.Errorf("the configuration has no %s. Fix: write its block first, since the next apply removes a session that only the state has", to)
	}
	f.wanted = *wanted
	if was, there := prior.Session(to); there {
		return nil, prior, fmt.Errorf("%s is in the state already, with %s. To import another object for it, remove the session from the state first: cosplay state rm %s", to, bodyOf(was), to.Short())
	}
	found, err := f.find(ctx)
	if err != nil {
		return nil, prior, err
	}
	if found.GPU.UUID != "" {
		found.Stated = one.Baseline
	}
	return found, f.prior, f.rootOnly
}

// bodyOf names the slice or the body of a session.
func bodyOf(s resource.PriorSession) string {
	switch {
	case s.Handle != nil && s.Handle.UUID != "":
		return "the slice " + s.Handle.UUID
	case s.Body != nil:
		return "a " + resource.RuntimeNamed(s.Runtime).Body
	}
	return "another object"
}

// BeginImport finds the object to import. The caller has the lock.
func BeginImport(ctx context.Context, p *project.Project, to resource.Address, id string) (*project.Import, project.Outlook, error) {
	var (
		o   project.Outlook
		err error
	)
	// FoldJournal and not Refresh, which would add all objects that an older state lacks;
	// the user named one.
	if o.Prior, o.Live, err = p.FoldJournal(ctx); err != nil {
		return nil, o, err
	}
	one := config.Import{To: to, ID: id}
	found, next, err := FindImport(ctx, p, o.Prior, o.Live, one, nil)
	if err != nil {
		return nil, o, err
	}
	stated, also, err := statedFor(ctx, p, o, to, found)
	if err != nil {
		return nil, o, err
	}
	if one.Baseline = stated; stated != (resource.Settings{}) || len(also) > 0 {
		found, next, err = FindImport(ctx, p, o.Prior, o.Live, one, also)
	}
	o.Prior = next
	return found, o, err
}

// statedFor is what import blocks state of the GPU of an object: that of its session, and those of other objects there.
// also are the sessions of these others.
func statedFor(ctx context.Context, p *project.Project, o project.Outlook, to resource.Address, found *project.Import) (stated resource.Settings, also []resource.PriorSession, err error) {
	var all []project.Statement
	for _, block := range p.Intent.Imports {
		on := found
		if block.To != to {
			var err error
			if on, _, err = FindImport(ctx, p, o.Prior, o.Live, block, nil); err != nil {
				continue // it is imported already, or the next plan reports it
			}
		}
		if on.Session.Slice.On() == found.Session.Slice.On() {
			all = append(all, project.Statement{Import: block, Found: on})
			if block.To != to {
				also = append(also, on.Session)
			}
		}
	}
	of, diags := project.Stated(all, o.Prior, o.Live)
	return of[found.Session.Slice.On()], also, inWords(diags)
}

// CarryOutImport adds the object to the state and, if necessary, to the host's ledger.
func CarryOutImport(ctx context.Context, p *project.Project, i *project.Import, o project.Outlook) (resource.Prior, error) {
	todo := &plan.Plan{Basis: plan.NewBasis(o.Prior, o.Live), Steps: i.Steps, Key: o.Prior.Key}
	result, err := p.Apply(ctx, todo, o.Prior, o.Live, project.ApplyOptions{Parallelism: 1, Partial: true})
	for _, f := range result.Failures {
		err = errors.Join(err, f.Err)
	}
	if err == nil && len(result.NotTried) > 0 {
		err = fmt.Errorf("the import was interrupted. Fix: run cosplay import again")
	}
	return result.Prior, err
}

// adopting are the steps that add a session with its slice and body to the state. take is
// the entry that the host's ledger needs first; nil if it has it. doubt says that the GPU's clock may be locked.
func adopting(prior resource.Prior, boot string, s resource.PriorSession, gpus []resource.PriorGPU, take *plan.TakeGPU, doubt bool) []plan.Step {
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
		if doubt { // the other tool may have locked the clock, which cannot be read: it is set and restored in any case
			add("import/"+s.Address.String()+"/doubt", take.GPU, plan.DoubtClock{Host: take.Host, GPU: take.GPU})
		}
	}
	adopt := plan.Adopt{Session: s}
	if len(gpus) > 0 {
		adopt.GPU, adopt.MoreGPUs = &gpus[0], gpus[1:]
	}
	add("import/"+s.Address.String(), s.Address.String(), adopt)
	return steps
}
