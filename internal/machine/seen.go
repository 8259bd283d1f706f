package machine

import (
	"context"
	"slices"

	"cosplay/internal/apply"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Hardware is what observe reads of a host that is not connected: its GPUs. Its block and
// its folders show which runtime new sessions are likely to have.
func (h *Host) Hardware() observe.Source {
	s := observe.Source{Name: h.Config.Name, Simulated: h.Config.Simulate, Runtime: h.Config.Runtime, GPUs: h.Agent, MPS: h.MPS(resource.Prior{})}
	all := runtime.Drivers()
	if i := slices.IndexFunc(all, func(d runtime.Driver) bool { return h.mayUse(d, resource.Prior{}) }); i >= 0 {
		s.Runtime = all[i].Name
	}
	return s
}

// Source is what observe reads of the host.
func (h *Host) Source(owner resource.Owner, prior resource.Prior) observe.Source {
	s := observe.Source{Name: h.Config.Name, Simulated: h.Config.Simulate, Runtime: h.runtime, GPUs: h.Agent}
	for _, runtime := range h.Runtimes(owner) {
		s.Bodies = append(s.Bodies, runtime)
		if engine, is := runtime.(observe.EngineReader); is {
			s.Engine = engine
		}
		if lister, is := runtime.(observe.LeftoverLister); is {
			s.Leftovers = lister
		}
	}
	s.MPS = h.MPS(prior)
	for _, one := range prior.Sessions {
		if one.Slice.Host == h.Config.Name {
			s.Known = append(s.Known, one.ID)
		}
	}
	return s
}

// ForApply is what apply changes of the host.
func (h *Host) ForApply(owner resource.Owner, holder resource.Holder) apply.Host {
	a := apply.Host{GPUs: h.Agent.For(holder), MPS: h.Agent, Runtimes: map[string]apply.Runtime{}}
	for name, runtime := range h.Runtimes(owner) {
		a.Runtimes[name] = runtime
		if images, is := runtime.(apply.Images); is {
			a.Images = images
		}
	}
	return a
}

// Remains is what an owner's sessions have left on a host, as far as its runtimes can read
// it; known is the owner's state. Of bodies without a label no lineage is known, so the
// caller says whether they count.
func (m *Machine) Remains(ctx context.Context, h *Host, known resource.Prior, owner resource.Owner, unlabelled bool) (all []resource.Remains, failures []error) {
	for _, d := range runtime.Drivers() {
		if h.mayUse(d, known) {
			if err := m.connect(ctx, h, d.Name); err != nil {
				failures = append(failures, err)
			}
		}
		open := h.opens[d.Name]
		if open == nil || !unlabelled && !d.Labelled {
			continue
		}
		found, err := open(h.For(owner)).Remains(ctx)
		if err != nil {
			failures = append(failures, err)
		}
		all = append(all, found...)
	}
	return all, failures
}
