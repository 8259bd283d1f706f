package project

import (
	"context"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/resource"
)

// Console evaluates expressions with the current values of the state's sessions.
type Console struct {
	project *Project
	live    map[resource.Address]config.LiveSession
}

// Console reads the sessions once. It reads hosts only if the state has sessions.
func (p *Project) Console(ctx context.Context) (*Console, error) {
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
	return &Console{project: p, live: made(prior, live)}, nil
}

// Eval evaluates one expression.
func (c *Console) Eval(typed string) (config.Output, *hcl.File, hcl.Diagnostics) {
	return c.project.Intent.Eval(typed, c.live)
}
