package project

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Import is an existing object that an import adds to the state.
type Import struct {
	ID       string // as the user typed it
	Session  resource.PriorSession
	GPU      resource.GPU       // that it is on; without a UUID where there is none yet
	Name     string             // of a container in Docker
	Foreign  bool               // cosplay did not create it, but removes it from now on
	Kept     bool               // a container with its slice: it stays as it is until its block changes
	Unproven bool               // only its labels name cosplay as its creator
	Users    []resource.Process // in a foreign slice
	Notes    []resource.Note
	Stated   resource.Settings // what import blocks state of the GPU's baseline, which destroy restores

	Steps []plan.Step // before all others of a plan
}

// Into is a state with the imported object.
func (i *Import) Into(prior resource.Prior) resource.Prior {
	for _, s := range i.Steps {
		prior = plan.Fold(prior, s.Do.Op, plan.Made{})
	}
	return prior
}

// Finder finds the object that an import block names. It also returns the state
// to continue with: a lost state gets back the lineage and the key that prove the object. also are the
// sessions that other blocks import: their slices are not foreign.
type Finder func(ctx context.Context, p *Project, prior resource.Prior, live resource.Live, one config.Import, also []resource.PriorSession) (*Import, resource.Prior, error)

// imports finds the objects that import blocks name, for sessions that the state does not
// have. It returns the state with them, and the steps that add them; live gets the containers.
func (p *Project) imports(ctx context.Context, prior resource.Prior, live *resource.Live, o *diff.Options) (resource.Prior, []plan.Step, hcl.Diagnostics) {
	blocks := prose.Only(p.Intent.Imports, func(one config.Import) bool {
		_, there := prior.Session(one.To)
		return !there && !o.Left[one.To]
	})
	next, seen, found, diags := p.findImports(ctx, blocks, prior, *live, nil)
	stated, wrong := Stated(found, prior, *live)
	if !wrong.HasErrors() && len(found) > 1 { // the first import on a GPU acquires it, with the statements of all
		for _, one := range found {
			i := slices.IndexFunc(blocks, func(b config.Import) bool { return b.To == one.To })
			if key, on := one.On(); on {
				blocks[i].Baseline = stated[key]
			}
		}
		also := prose.Each(found, func(one Statement) resource.PriorSession { return one.Found.Session })
		next, seen, found, diags = p.findImports(ctx, blocks, prior, *live, also)
	}
	o.Imported = map[resource.Address]string{}
	for _, one := range found {
		if one.Found.Foreign || one.Found.Unproven {
			diags = append(diags, foreignImport(one.Import, one.Found))
		}
		o.Imported[one.To] = one.ID
	}
	*live = seen
	return next, inTurn(found), append(diags, wrong...)
}

// inTurn are the steps of imports. Each import waits for those before it that acquire its GPU and note the boot of its host:
// the ledger takes the baseline that import blocks state from the first alone.
func inTurn(found []Statement) (all []plan.Step) {
	noted, taken := map[string][]string{}, map[resource.GPUKey][]string{} // the steps to wait for
	for _, one := range found {
		on := one.Found.Session.Slice.On()
		before := slices.Concat(noted[on.Host], taken[on])
		for _, s := range one.Found.Steps {
			s.Needs = slices.Concat(before, s.Needs)
			all = append(all, s)
			switch s.Do.Op.(type) {
			case plan.NoteBoot:
				noted[on.Host] = append(noted[on.Host], s.ID)
			case plan.TakeGPU, plan.DoubtClock:
				taken[on] = append(taken[on], s.ID)
			default:
			}
		}
	}
	return all
}

// findImports finds the objects of import blocks, in turn.
func (p *Project) findImports(ctx context.Context, blocks []config.Import, prior resource.Prior, live resource.Live, also []resource.PriorSession) (resource.Prior, resource.Live, []Statement, hcl.Diagnostics) {
	var (
		all   []Statement
		diags hcl.Diagnostics
	)
	for _, one := range blocks {
		found, next, err := p.options.Find(ctx, p, prior, live, one, also)
		if err == nil && next.Lineage != prior.Lineage {
			err = fmt.Errorf("the state was lost. Fix: cosplay state rebuild")
		}
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("%s cannot be imported", one.ID), Detail: prose.Sentence(err.Error()), Subject: &one.IDRange})
			continue
		}
		prior, live = found.Into(next), found.in(live)
		all = append(all, Statement{Import: one, Found: found})
	}
	return prior, live, all, diags
}

// in adds a container that stays to the bodies of its host, where the runtime lists it once it is in the state.
func (i *Import) in(live resource.Live) resource.Live {
	if !i.Kept {
		return live
	}
	live.Hosts = slices.Clone(live.Hosts)
	for n := range live.Hosts {
		h := &live.Hosts[n]
		if h.Name != i.Session.Slice.Host {
			continue
		}
		h.Bodies = append(slices.Clone(h.Bodies), *i.Session.Body)
		slices.SortFunc(h.Bodies, resource.Body.Compare)
	}
	return live
}

// withImported is a state with what a plan imports. The runtimes of a run identify imported bodies by it: nothing in
// these bodies names their sessions.
func withImported(prior resource.Prior, planned *plan.Plan) resource.Prior {
	for _, s := range planned.Steps {
		if adopt, is := s.Do.Op.(plan.Adopt); is {
			prior = plan.Fold(prior, adopt, plan.Made{})
		}
	}
	return prior
}

// foreignImport warns of an object that cosplay did not create, or not provably.
func foreignImport(one config.Import, found *Import) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s was not created by cosplay", one.ID), Subject: &one.IDRange,
		Detail: "After this apply it belongs to cosplay: a change may replace it, and destroy removes it."}
	if found.Kept {
		d.Detail = "It stays as it is, without cosplay's disguise, until its block changes. After this apply it belongs to cosplay: destroy removes it, and cosplay apply --replace " + one.To.Short() + " recreates it as a session of cosplay."
	}
	if !found.Foreign {
		d.Summary = fmt.Sprintf("only its labels name cosplay as the creator of %s", one.ID)
	}
	if restores := found.Restores(); restores != "" {
		d.Detail += fmt.Sprintf(" When the GPU is released, cosplay restores what import blocks state, and not what it finds: %s.", restores)
	}
	if len(found.Users) > 0 {
		d.Detail += " It is used by " + resource.ProcessNames(found.Users) + "."
	}
	return d
}
