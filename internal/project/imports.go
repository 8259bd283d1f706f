package project

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Import is something that exists and is to be in the state from now on.
type Import struct {
	ID       string // as it was asked for
	Session  resource.PriorSession
	GPU      resource.GPU       // that it is on; without a UUID where there is none yet
	Name     string             // of a container in Docker
	Foreign  bool               // cosplay did not make it, but removes it from now on
	Unproven bool               // only labels say that cosplay made it
	Users    []resource.Process // that run in a foreign slice
	Notes    []resource.Note

	Steps []plan.Step // they come before all others of a plan
}

// Into is a state as it will be with it.
func (i *Import) Into(prior resource.Prior) resource.Prior {
	for _, s := range i.Steps {
		prior = plan.Fold(prior, s.Do.Op, plan.Made{})
	}
	return prior
}

// Finder finds what the ID of an import block means, and returns with it the state to go on
// with: one that was lost gets the lineage and the key back that prove what was found.
type Finder func(ctx context.Context, p *Project, prior resource.Prior, live resource.Live, to resource.Address, id string) (*Import, resource.Prior, error)

// imports finds what import blocks name, for sessions that the state does not
// have; the prior has them from then on. The steps make it so.
func (p *Project) imports(ctx context.Context, prior resource.Prior, live resource.Live, o *diff.Options) (resource.Prior, []plan.Step, hcl.Diagnostics) {
	var (
		steps []plan.Step
		diags hcl.Diagnostics
	)
	o.Imported = map[resource.Address]string{}
	for _, one := range p.Intent.Imports {
		if _, there := prior.Session(one.To); there || o.Left[one.To] {
			continue
		}
		found, next, err := p.find(ctx, p, prior, live, one.To, one.ID)
		if err == nil && next.Lineage != prior.Lineage {
			err = fmt.Errorf("the state was lost; bring it back first: cosplay state rebuild")
		}
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprintf("%s cannot be imported", one.ID), Detail: prose.Sentence(err.Error()), Subject: &one.IDRange})
			continue
		}
		if found.Foreign || found.Unproven {
			diags = append(diags, foreignImport(one, found))
		}
		prior = found.Into(next)
		steps = append(steps, found.Steps...)
		o.Imported[one.To] = one.ID
	}
	return prior, steps, diags
}

// foreignImport warns of what cosplay did not make, as far as it can know.
func foreignImport(one config.Import, found *Import) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s was not made by cosplay", one.ID), Subject: &one.IDRange,
		Detail: "It is cosplay's once this is applied: a change may replace it, and destroy removes it."}
	if !found.Foreign {
		d.Summary = fmt.Sprintf("only labels say that cosplay made %s", one.ID)
	}
	if len(found.Users) > 0 {
		d.Detail += " It is used by " + resource.ProcessNames(found.Users) + "."
	}
	return d
}
