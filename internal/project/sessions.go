package project

import (
	"context"
	"fmt"

	"cosplay/internal/config"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Host finds the block of a host.
func (p *Project) Host(name string) (config.Host, error) {
	for _, c := range p.Intent.Hosts {
		if c.Name == name {
			return c, nil
		}
	}
	return config.Host{}, fmt.Errorf("the configuration has no host %q. Fix: restore its block", name)
}

// Runtime opens the runtime of a session, for commands that run something in it.
func (p *Project) Runtime(ctx context.Context, s resource.PriorSession, prior resource.Prior) (runtime.Runtime, error) {
	c, err := p.Host(s.Slice.Host)
	if err != nil {
		return nil, err
	}
	h, err := p.Machine.Connect(ctx, c, prior)
	if err != nil {
		return nil, err
	}
	return h.Runtimes(prior.Owner())[s.Runtime], nil
}

// Used is the GPU memory that each session has used so far, of the sessions that count it.
func (p *Project) Used(prior resource.Prior) map[resource.Address]resource.Use {
	all := map[resource.Address]resource.Use{}
	for _, s := range prior.Sessions {
		h, open := p.Machine.Hosts()[s.Slice.Host]
		if !open {
			continue
		}
		in, there := h.Runtimes(prior.Owner())[s.Runtime]
		if !there {
			continue
		}
		if usage, err := in.Usage(s.ID); err == nil {
			all[s.Address] = usage.Use()
		}
	}
	return all
}

// Able opens the runtime of a session for something that not every runtime can do; what
// is its name for users.
func Able[T any](ctx context.Context, p *Project, s resource.PriorSession, prior resource.Prior, what string) (able T, err error) {
	in, err := p.Runtime(ctx, s, prior)
	if err != nil {
		return able, err
	}
	able, can := in.(T)
	if !can {
		return able, fmt.Errorf("%s has no %s: sessions of host %q run %s. Use cosplay exec %s -- COMMAND instead",
			s.Address, what, s.Slice.Host, resource.RuntimeNamed(s.Runtime).Where, s.Address.Short())
	}
	return able, nil
}
