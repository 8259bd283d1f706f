package project

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/process"
	"cosplay/internal/sim"
	"cosplay/internal/state"
)

// ScratchDir is the project's own folder for what can be made anew: simulated
// hosts and session folders.
const ScratchDir = ".cosplay"

// StdinName is what a configuration from standard input is called in messages.
const StdinName = "<stdin>"

// notYetRunnable refuses a runtime that is not there, and warns of what has no
// effect in the one that is.
func notYetRunnable(intent *config.Intent) hcl.Diagnostics {
	var diags hcl.Diagnostics
	auto := map[string]bool{}
	for _, h := range intent.Hosts {
		auto[h.Name] = h.Runtime == config.RuntimeAuto
		if h.Runtime == config.RuntimeDocker {
			at := h.Ranges.At("runtime")
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "sessions in Docker are not yet part of cosplay",
				Detail:   "A later version will have them. Until then: runtime = \"process\", or leave it out.",
				Subject:  &at,
			})
		}
	}
	told := map[hcl.Range]bool{}
	for _, s := range intent.Sessions {
		if !auto[s.Host] {
			continue
		}
		for _, d := range s.WithoutContainer() {
			if !told[*d.Subject] { // once a block, not once an instance
				told[*d.Subject] = true
				diags = append(diags, d)
			}
		}
	}
	return diags
}

// Runtime is a place where the sessions of a host run.
type Runtime interface {
	apply.Runtime
	observe.ContainerLister
}

// host is an open host.
type host struct {
	agent    *agent.Client
	runtime  string // of new sessions
	sessions process.Runtime
}

// open connects to a host; its agent starts with the first question. A
// simulated host is made when it is first needed.
func (p *Project) open(c config.Host) (*host, error) {
	if h, ok := p.hosts[c.Name]; ok {
		return h, nil
	}
	library := c.NVML
	if c.Simulate != "" {
		dir := p.SimDir(c.Name)
		if err := ensureSimulated(dir, c); err != nil {
			return nil, err
		}
		library = sim.LibraryPath(dir)
	}
	options := agent.Options{Library: library}
	if p.lock != nil {
		options.Hold = p.lock.File()
	}
	h := &host{
		agent:    agent.New(options),
		runtime:  resource.RuntimeProcess,
		sessions: process.Runtime{Base: filepath.Join(p.Dir, ScratchDir, "sessions", p.stateName(), c.Name), Library: library},
	}
	p.hosts[c.Name] = h
	return h, nil
}

// runtimes are where an owner's sessions run on the host.
func (h *host) runtimes(owner resource.Owner) map[string]Runtime {
	folders := h.sessions
	folders.Key = owner.Key
	return map[string]Runtime{resource.RuntimeProcess: folders}
}

// source is what there is to look at.
func (h *host) source(c config.Host, owner resource.Owner) observe.Source {
	s := observe.Source{Name: c.Name, Simulated: c.Simulate, Runtime: h.runtime, GPUs: h.agent}
	for _, runtime := range h.runtimes(owner) {
		s.Containers = append(s.Containers, runtime)
	}
	return s
}

// forApply is what there is to change.
func (h *host) forApply(owner resource.Owner) apply.Host {
	a := apply.Host{GPUs: h.agent, Runtimes: map[string]apply.Runtime{}}
	for name, runtime := range h.runtimes(owner) {
		a.Runtimes[name] = runtime
	}
	return a
}

// Runtime gives the runtime of a host, for commands that go into a session.
func (p *Project) Runtime(name string) (process.Runtime, error) {
	for _, c := range p.Intent.Hosts {
		if c.Name == name {
			h, err := p.open(c)
			if err != nil {
				return process.Runtime{}, err
			}
			return h.sessions, nil
		}
	}
	return process.Runtime{}, fmt.Errorf("the configuration has no host %q; put its block back", name)
}

// stateName tells the session folders of one state in a folder from another's.
func (p *Project) stateName() string {
	if p.Store.Path == filepath.Join(p.Dir, state.FileName) {
		return "default"
	}
	sum := sha256.Sum256([]byte(p.Store.Path))
	return hex.EncodeToString(sum[:6])
}
