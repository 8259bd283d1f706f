package machine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/remote"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Connect opens a host with the runtimes that its sessions need, and decides which
// runtime new sessions have.
func (m *Machine) Connect(ctx context.Context, c config.Host, prior resource.Prior) (*Host, error) {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	h, err := m.Open(c)
	if err != nil || h.runtime != "" {
		return h, err
	}
	held := heldRuntimes(c.Name, prior)
	name := c.Runtime
	switch {
	case name != config.RuntimeAuto:
	case len(held) > 0: // decided once, and kept
		name = held[0]
	default:
		name = h.auto()
	}
	for _, needed := range append(held, name) {
		if err := m.connect(ctx, h, needed); err != nil {
			return nil, err
		}
	}
	h.runtime = name
	return h, nil
}

// Reach opens a host, and the runtime of one session on it, for commands in the session. The runtime is nil where this is
// no faster than Connect. Of a host whose GPUs are not asked, nothing else is opened.
func (m *Machine) Reach(ctx context.Context, c config.Host, name string, owner resource.Owner, asked bool) (h *Host, in runtime.Runtime, err error) {
	c.Connect = cmp.Or(c.Connect, Elsewhere)
	d, registered := runtime.Named(name)
	if !registered || d.Reach == nil || c.Connect != "" {
		return nil, nil, nil
	}
	if h = m.host(c); asked {
		if h, err = m.Open(c); err != nil {
			return nil, nil, err
		}
	}
	reached, err := d.Reach(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.reached = reached
	return h, m.reached.Open(h.For(owner)), nil
}

// connect gives a host a runtime.
func (m *Machine) connect(ctx context.Context, h *Host, name string) error {
	d, registered := runtime.Named(name)
	switch {
	case h.opens[name] != nil:
		return nil
	case !registered:
		return fmt.Errorf("host %s: sessions run in runtime %q, which this cosplay does not have", h.Config.Name, name)
	case h.remote != nil:
		if err := (remote.Runtime{Machine: *h.remote, Name: name}).Connect(ctx); err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
		h.opens[name] = h.farOpen(d)
		return nil
	case m.connections[name] == nil:
		c, err := d.Connect(ctx)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
		if m.connections == nil {
			m.connections = map[string]runtime.Connection{}
		}
		m.connections[name] = c
	}
	h.opens[name] = m.connections[name].Open
	return nil
}

// mayUse reports whether a project may have sessions of a runtime on a host.
func (h *Host) mayUse(d runtime.Driver, known resource.Prior) bool {
	if _, err := os.Stat(h.folder(d)); err == nil && h.remote == nil {
		return true
	}
	chosen := h.Config.Runtime == d.Name || h.Config.Runtime == config.RuntimeAuto && h.mayChoose(d)
	return chosen || slices.Contains(heldRuntimes(h.Config.Name, known), d.Name)
}

// auto is the runtime of new sessions where the block leaves the choice to cosplay.
func (h *Host) auto() string {
	if h.remote != nil {
		return h.Place.Runtime
	}
	return runtime.Auto(h.Config.Simulate != "").Name
}

// mayChoose reports whether such a block may have chosen a runtime at some time.
func (h *Host) mayChoose(d runtime.Driver) bool {
	if h.remote != nil {
		return h.Place.Runtime == d.Name
	}
	return d.Auto(h.Config.Simulate != "")
}

// Share gives a host the runtimes that other hosts have connected.
func (m *Machine) Share(h *Host) {
	if h.remote != nil {
		for _, d := range runtime.Drivers() { // it is connected over there when it is asked
			h.opens[d.Name] = h.farOpen(d)
		}
		return
	}
	for name, c := range m.connections {
		h.opens[name] = c.Open
	}
}

// heldRuntimes are those that sessions of a host run in.
func heldRuntimes(host string, prior resource.Prior) []string {
	var held []string
	for _, s := range prior.Sessions {
		if s.Slice.Host == host && !slices.Contains(held, s.Runtime) {
			held = append(held, s.Runtime)
		}
	}
	slices.Sort(held)
	return held
}

// Runtimes are where an owner's sessions run on the host, by name.
func (h *Host) Runtimes(owner resource.Owner) map[string]runtime.Runtime {
	all := map[string]runtime.Runtime{}
	for name, open := range h.opens {
		all[name] = open(h.For(owner))
	}
	return all
}

// Runs reports whether a process is known to run in a container of a runtime.
func Runs(name string, p resource.Process, c resource.Body) bool {
	driver, known := runtime.Named(name)
	return known && driver.Runs(p, c)
}
