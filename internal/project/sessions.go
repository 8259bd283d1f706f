package project

import (
	"context"
	"fmt"

	"cosplay/internal/config"
	"cosplay/internal/machine"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
)

// Host finds the block of a host.
func (p *Project) Host(name string) (config.Host, error) {
	for _, c := range p.Intent.Hosts {
		if c.Name == name {
			return c, nil
		}
	}
	return config.Host{}, fmt.Errorf("the configuration has no host %q; put its block back", name)
}

// Runtime gives the runtime that a session is in, for commands that go into it.
func (p *Project) Runtime(ctx context.Context, s resource.PriorSession, prior resource.Prior) (machine.Runtime, error) {
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

// Used tells what each session used of its GPU's memory so far, as far as that can
// be told: not of one that does not count.
func (p *Project) Used(prior resource.Prior) map[resource.Address]resource.Use {
	all := map[resource.Address]resource.Use{}
	for _, s := range prior.Sessions {
		h, open := p.Machine.Hosts()[s.Slice.Host]
		if !open {
			continue
		}
		runtime, there := h.Runtimes(prior.Owner())[s.Runtime]
		if !there {
			continue
		}
		if usage, err := runtime.Usage(s.ID); err == nil {
			all[s.Address] = usage.Use()
		}
	}
	return all
}

// Containers gives the Docker runtime that a session is in; one that runs as a
// process is an error.
func (p *Project) Containers(ctx context.Context, s resource.PriorSession, prior resource.Prior) (docker.Runtime, error) {
	runtime, err := p.Runtime(ctx, s, prior)
	if err != nil {
		return docker.Runtime{}, err
	}
	containers, ok := runtime.(docker.Runtime)
	if !ok {
		return docker.Runtime{}, fmt.Errorf("%s runs as a process of this machine, not in a container; cosplay exec %s -- COMMAND runs something in it", s.Address, s.Address.Short())
	}
	return containers, nil
}
