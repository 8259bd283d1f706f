// Package observe is the only reader of the world: it asks each host's NVML for
// the GPUs and its runtime for the containers, and puts them into one snapshot.
// What cannot be read is an error, never a difference.
package observe

import (
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
}

// Completer fills in what NVML does not tell of a GPU: always its rates, and the
// profiles of one that can do MIG where the driver hides them.
type Completer func(resource.GPU) resource.Model

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

func readHost(ctx context.Context, source Source, complete Completer) (resource.Host, error) {
	host, err := source.GPUs.Read(ctx)
	if err != nil {
		return host, fmt.Errorf("host %s: %w", source.Name, err)
	}
	host.Name, host.Simulated, host.Runtime = source.Name, source.Simulated, source.Runtime
	for i := range host.GPUs {
		g := &host.GPUs[i]
		g.Host = source.Name
		g.Model = complete(*g)
		for n := range g.Slices {
			g.Slices[n].Host = source.Name
		}
	}
	if source.Engine != nil {
		engine, err := source.Engine.Look(ctx)
		if err != nil {
			return host, fmt.Errorf("host %s: %w", source.Name, err)
		}
		host.Engine = &engine
	}
	for _, lister := range source.Containers {
		containers, err := lister.List(ctx)
		if err != nil {
			return host, fmt.Errorf("host %s: %w", source.Name, err)
		}
		for i := range containers {
			containers[i].Host = source.Name
		}
		host.Containers = append(host.Containers, containers...)
	}
	slices.SortFunc(host.Containers, resource.Container.Compare)
	return host, nil
}
