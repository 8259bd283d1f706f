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

// Import is an existing object that an import adds to the state.
type Import struct {
	ID       string // as the user typed it
	Session  resource.PriorSession
	GPU      resource.GPU       // that it is on; without a UUID where there is none yet
	Name     string             // of a container in Docker
	Foreign  bool               // cosplay did not create it, but removes it from now on
	Unproven bool               // only its labels name cosplay as its creator
	Users    []resource.Process // in a foreign slice
	Notes    []resource.Note

	Steps []plan.Step // before all others of a plan
}

// Into is a state with the imported object.
func (i *Import) Into(prior resource.Prior) resource.Prior {
	for _, s := range i.Steps {
		prior = plan.Fold(prior, s.Do.Op, plan.Made{})
	}
	return prior
}

// Finder finds the object that the ID of an import block names. It also returns the state
// to continue with: a lost state gets back the lineage and the key that prove the object.
type Finder func(ctx context.Context, p *Project, prior resource.Prior, live resource.Live, to resource.Address, id string) (*Import, resource.Prior, error)

// imports finds the objects that import blocks name, for sessions that the state does not
// have. It returns the state with them, and the steps that add them.
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
		found, next, err := p.options.Find(ctx, p, prior, live, one.To, one.ID)
		if err == nil && next.Lineage != prior.Lineage {
			err = fmt.Errorf("the state was lost. Fix: cosplay state rebuild")
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

// foreignImport warns of an object that cosplay did not create, or not provably.
func foreignImport(one config.Import, found *Import) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("%s was not created by cosplay", one.ID), Subject: &one.IDRange,
		Detail: "After this apply it belongs to cosplay: a change may replace it, and destroy removes it."}
	if !found.Foreign {
		d.Summary = fmt.Sprintf("only its labels name cosplay as the creator of %s", one.ID)
	}
	if len(found.Users) > 0 {
		d.Detail += " It is used by " + resource.ProcessNames(found.Users) + "."
	}
	return d
}
