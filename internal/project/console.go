package project

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// Eval evaluates one expression.
type Eval func(typed string) (config.Output, *hcl.File, hcl.Diagnostics)

// Console evaluates expressions with the current values of the state's sessions, which it
// reads once. It reads hosts only if the state has sessions.
func (p *Project) Console(ctx context.Context) (Eval, error) {
	prior, _, err := p.Remembered()
	if err != nil {
		return nil, err
	}
	var live resource.Live
	if len(prior.Sessions) > 0 {
		seen, err := p.Peek(ctx)
		if err != nil {
			return nil, err
		}
		prior, live = seen.Prior, seen.Live
	}
	facts := made(prior, live)
	return func(typed string) (config.Output, *hcl.File, hcl.Diagnostics) { return p.Intent.Eval(typed, facts) }, nil
}
