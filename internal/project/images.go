package project

import (
	"context"
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// askRegistries notes in live which images that are always pulled have another image behind their name in the registry
// than in the engine. It warns of registries that do not say so.
func (l *Fleet) askRegistries(ctx context.Context, prior resource.Prior, live resource.Live) hcl.Diagnostics {
	return l.noteOffered(prior, live, func(s resource.PriorSession) (string, error) {
		in, err := l.Runtime(ctx, s, prior)
		puller, is := in.(runtime.Puller)
		if err != nil || !is {
			return "", nil // it is reported where the runtime is needed
		}
		return puller.Offered(ctx, s.Spec.Image)
	})
}

// noteOffered asks once for each image of a host that is always pulled: by the configuration or, where that does not have
// the session, by the state.
func (l *Fleet) noteOffered(prior resource.Prior, live resource.Live, ask func(resource.PriorSession) (string, error)) (diags hcl.Diagnostics) {
	asked := map[[2]string]bool{}
	for _, s := range prior.Sessions {
		host, _ := live.Host(s.Slice.Host)
		name, at := s.Spec.Image, [2]string{s.Slice.Host, s.Spec.Image}
		pull := s.Spec.Pull
		if configured := l.Intent.Session(s.Address); configured != nil {
			pull = configured.Spec.Pull
		}
		if pull != resource.PullAlways || name == resource.DefaultImage || host.Engine == nil || host.Engine.Images[name] == "" || asked[at] {
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
