// Package observe is the only package that reads the live system: it asks each host's agent for the GPUs and its
// runtime for the containers, and combines them in one snapshot. If something cannot be read, that is an error, never
// a difference.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// GPUReader reads the GPUs of a host, and the control daemons of MPS that are searched for.
type GPUReader interface {
	Read(ctx context.Context, daemons resource.MPSSearch) (resource.Host, error)
}

// BodyLister lists the sessions that exist on a host.
type BodyLister interface {
	List(ctx context.Context) ([]resource.Body, error)
}

// LeftoverLister finds leftovers of interrupted runs that no state records.
type LeftoverLister interface {
	// Leftovers returns leftovers among the listed bodies, and folders without a container. known has the sessions
	// of the state.
	Leftovers(ctx context.Context, listed []resource.Body, known []string) ([]resource.Body, error)
}

// EngineReader inspects a container engine.
type EngineReader interface {
	Inspect(ctx context.Context) (resource.Engine, error)
}

// Source is how to read one host.
type Source struct {
	Name      string
	Simulated string    // what the host simulates; "" for hardware
	Runtime   string    // the runtime of new sessions: "process", "docker"
	GPUs      GPUReader // nil where they are not needed
	Bodies    []BodyLister
	MPS       resource.MPSSearch
	Engine    EngineReader   // nil if no session needs an engine
	Leftovers LeftoverLister // nil if no runtime can have leftovers
	Known     []string       // IDs of the state's sessions on the host

	// Assumed are the sessions as the state has them. They stand for those of a container engine that does not answer,
	// with the reason in the snapshot. If it is nil, no answer is an error.
	Assumed []resource.Body
	Failed  error // why there is no connection to the engine, or to the host

	Elsewhere bool // it is another machine
	// Unreached stands for the host if nothing of it can be read, with the reason in the snapshot. If it is nil, that is an
	// error.
	Unreached *resource.Host
}

// Completer adds to a GPU what NVML does not report: always its rates, and also the profiles if the driver hides
// them, and figures that it does not support.
type Completer func(resource.GPU) resource.GPU

// Read takes a snapshot of all hosts at the same time. It returns the errors of all hosts together. That no host can be
// reached is an error.
func Read(ctx context.Context, sources []Source, complete Completer) (resource.Live, error) {
	hosts := make([]resource.Host, len(sources))
	errs := make([]error, len(sources))
	var group sync.WaitGroup
	for i, source := range sources {
		group.Go(func() { hosts[i], errs[i] = readHost(ctx, source, complete) })
	}
	group.Wait()
	if ctx.Err() == nil && slices.Contains(errs, nil) {
		for i, source := range sources {
			if errs[i] != nil && source.Unreached != nil {
				hosts[i], errs[i] = unreached(source, errs[i]), nil
			}
		}
	}
	slices.SortFunc(hosts, func(a, b resource.Host) int { return strings.Compare(a.Name, b.Name) })
	return resource.Live{Hosts: hosts}, errors.Join(errs...)
}

// unreached is the host of which nothing could be read.
func unreached(source Source, why error) resource.Host {
	host := *source.Unreached
	host.Elsewhere = source.Elsewhere
	a := prose.AdviceOf(why)
	host.Unreachable, host.Remedy = strings.TrimPrefix(a.What, "host "+source.Name+": "), a.Fix
	return host
}

// readHost reads the driver and the engine of a host at the same time.
func readHost(ctx context.Context, source Source, complete Completer) (resource.Host, error) {
	var (
		host                       resource.Host
		engine                     *resource.Engine
		containers, leftovers      []resource.Body
		group                      sync.WaitGroup
		hostErr, engineErr, runErr error
	)
	group.Go(func() {
		if source.GPUs != nil {
			host, hostErr = source.GPUs.Read(ctx, source.MPS)
		}
	})
	group.Go(func() {
		if source.Engine != nil {
			engine = new(resource.Engine)
			*engine, engineErr = source.Engine.Inspect(ctx)
		}
	})
	group.Go(func() {
		if containers, runErr = list(ctx, source); runErr == nil && source.Leftovers != nil {
			leftovers, runErr = source.Leftovers.Leftovers(ctx, containers, source.Known)
		}
	})
	group.Wait()
	unread := cmp.Or(source.Failed, engineErr, runErr)
	if unread != nil && source.Assumed != nil && ctx.Err() == nil {
		host.Silent = strings.TrimPrefix(unread.Error(), "host "+source.Name+": ")
		unread, engine, containers, leftovers = nil, nil, source.Assumed, nil
	}
	// One error is enough; that of the hardware takes precedence.
	if err := cmp.Or(hostErr, unread); err != nil {
		if source.GPUs == nil && source.Failed != nil {
			return host, source.Failed // it names the host
		}
		return host, fmt.Errorf("host %s: %w", source.Name, err)
	}
	host.Name, host.Simulated, host.Runtime, host.Elsewhere = source.Name, source.Simulated, source.Runtime, source.Elsewhere
	host.Engine, host.Bodies, host.Leftovers = engine, containers, leftovers
	for i := range host.GPUs {
		g := &host.GPUs[i]
		g.Host = source.Name
		*g = complete(*g)
		for n := range g.Slices {
			g.Slices[n].Host, g.Slices[n].Boot = source.Name, host.BootID
		}
	}
	host.Index()
	return host, nil
}

func list(ctx context.Context, source Source) ([]resource.Body, error) {
	var all []resource.Body
	for _, lister := range source.Bodies {
		some, err := lister.List(ctx)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = some // most hosts have one
		} else {
			all = append(all, some...)
		}
	}
	for i := range all {
		all[i].Host = source.Name
	}
	slices.SortFunc(all, resource.Body.Compare)
	return all, nil
}
