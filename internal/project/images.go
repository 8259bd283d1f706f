package project

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// askRegistries notes in live which images that are always pulled have another image behind their name in the registry
// than in the engine. It warns of registries that do not say so.
func (p *Project) askRegistries(ctx context.Context, prior resource.Prior, live resource.Live) hcl.Diagnostics {
	return p.noteOffered(prior, live, func(s resource.PriorSession) (string, error) {
		in, err := p.Runtime(ctx, s, prior)
		puller, is := in.(runtime.Puller)
		if err != nil || !is {
			return "", nil // it is reported where the runtime is needed
		}
		return puller.Offered(ctx, s.Spec.Image)
	})
}

// noteOffered asks once for each image of a host.
func (p *Project) noteOffered(prior resource.Prior, live resource.Live, ask func(resource.PriorSession) (string, error)) (diags hcl.Diagnostics) {
	asked := map[[2]string]bool{}
	for _, s := range prior.Sessions {
		host, _ := live.Host(s.Slice.Host)
		name, at := s.Spec.Image, [2]string{s.Slice.Host, s.Spec.Image}
		if !p.alwaysPulled(s) || name == resource.DefaultImage || host.Engine == nil || host.Engine.Images[name] == "" || asked[at] {
			continue
		}
		asked[at] = true
		offered, err := ask(s)
		switch {
		case err != nil:
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning,
				Summary: fmt.Sprintf("it is not known whether %s has changed in its registry", name), Detail: prose.Sentence(err.Error())})
		case offered != "" && host.Engine.Images[offered] != host.Engine.Images[name]:
			if host.Engine.Offered == nil {
				host.Engine.Offered = map[string]string{}
			}
			host.Engine.Offered[name] = offered
		}
	}
	return diags
}

// alwaysPulled reports whether the image of a session is always pulled, as the configuration has it or, where that does
// not have the session, as the state does.
func (p *Project) alwaysPulled(s resource.PriorSession) bool {
	if i := slices.IndexFunc(p.Intent.Sessions, func(c config.Session) bool { return c.Address == s.Address }); i >= 0 {
		return p.Intent.Sessions[i].Spec.Pull == resource.PullAlways
	}
	return s.Spec.Pull == resource.PullAlways
}
