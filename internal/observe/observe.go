// Package observe is the only reader of the world: it asks each host's NVML for
// the GPUs and its runtime for the containers, and puts them into one snapshot.
// What cannot be read is an error, never a difference.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/resource"
)

// GPUReader looks at the GPUs of a host.
type GPUReader interface {
	Read(ctx context.Context) (resource.Host, error)
}

// ContainerLister lists what runs in the slices of a host.
type ContainerLister interface {
	List(ctx context.Context) ([]resource.Container, error)
}

// StrayLister finds what runs that were cut off have left, and no state knows of.
type StrayLister interface {
	// Strays looks among the containers that were listed, and for folders that
	// none of them has; known are the sessions of the state.
	Strays(ctx context.Context, listed []resource.Container, known []string) ([]resource.Container, error)
}

// EngineReader looks at a container engine.
type EngineReader interface {
	Look(ctx context.Context) (resource.Engine, error)
}

// Source is where one host is read.
type Source struct {
	Name       string
	Simulated  string // what is simulated; "" for hardware
	Runtime    string // where new sessions run: "process", "docker"
	GPUs       GPUReader
	Containers []ContainerLister
	Engine     EngineReader // nil where no session needs one
	Strays     StrayLister  // nil likewise
	Known      []string     // IDs of the sessions that the state has there
}

// Completer adds to a GPU what NVML does not tell: always its rates, the profiles of
// one that has MIG where the driver hides them, and the figures that it does not offer.
type Completer func(resource.GPU) resource.GPU

// Read takes the snapshot, of all hosts at once. The errors of all that cannot
// be read are told together.
func Read(ctx context.Context, sources []Source, complete Completer) (resource.Live, error) {
	hosts := make([]resource.Host, len(sources))
	errs := make([]error, len(sources))
	var group sync.WaitGroup
	for i, source := range sources {
		group.Go(func() { hosts[i], errs[i] = readHost(ctx, source, complete) })
	}
	group.Wait()
	slices.SortFunc(hosts, func(a, b resource.Host) int { return strings.Compare(a.Name, b.Name) })
	return resource.Live{Hosts: hosts}, errors.Join(errs...)
}

// readHost asks the driver and the engine of a host at once.
func readHost(ctx context.Context, source Source, complete Completer) (resource.Host, error) {
	var (
		host                       resource.Host
		engine                     *resource.Engine
		containers, strays         []resource.Container
		group                      sync.WaitGroup
		hostErr, engineErr, runErr error
	)
	group.Go(func() { host, hostErr = source.GPUs.Read(ctx) })
	group.Go(func() { engine, engineErr = look(ctx, source) })
	group.Go(func() {
		if containers, runErr = list(ctx, source); runErr == nil && source.Strays != nil {
			strays, runErr = source.Strays.Strays(ctx, containers, source.Known)
		}
	})
	group.Wait()
	// One of them is enough to say, the hardware first.
	if err := cmp.Or(hostErr, engineErr, runErr); err != nil {
		return host, fmt.Errorf("host %s: %w", source.Name, err)
	}
	host.Name, host.Simulated, host.Runtime = source.Name, source.Simulated, source.Runtime
	host.Engine, host.Containers, host.Strays = engine, containers, strays
	for i := range host.GPUs {
		g := &host.GPUs[i]
		g.Host = source.Name
		*g = complete(*g)
		for n := range g.Slices {
			g.Slices[n].Host, g.Slices[n].Boot = source.Name, host.BootID
		}
	}
	return host, nil
}

func look(ctx context.Context, source Source) (*resource.Engine, error) {
	if source.Engine == nil {
		return nil, nil
	}
	engine, err := source.Engine.Look(ctx)
	return &engine, err
}

func list(ctx context.Context, source Source) ([]resource.Container, error) {
	var all []resource.Container
	for _, lister := range source.Containers {
		some, err := lister.List(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for i := range all {
		all[i].Host = source.Name
	}
	slices.SortFunc(all, resource.Container.Compare)
	return all, nil
}
