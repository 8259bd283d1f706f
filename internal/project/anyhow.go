package project

import (
	"context"
	"fmt"
	"os"
	"slices"

	"cosplay/internal/config"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/sim"
)

// OpenAnyhow opens a project for the way back, whatever its configuration is
// like: with the hosts whose blocks are in order, the simulated hosts that have
// a folder, and this machine where no host is named. The complaint says what is
// wrong with the configuration; nil where nothing is.
func OpenAnyhow(o Options) (p *Project, complaint, err error) {
	if p, err = locate(o); err != nil {
		return nil, nil, err
	}
	p.mayMiss = true
	if p.inputs, err = inputs(p.Dir, os.Environ(), o); err != nil {
		return nil, nil, err
	}
	files, complaint := readFiles(p.Dir, o.File, true)
	intent, diags := config.Load(files, p.reading())
	if complaint == nil && diags.HasErrors() {
		complaint = fmt.Errorf("the configuration is not valid (cosplay validate tells why)")
	}
	named := config.Hosts(files, p.reading())
	if complaint != nil {
		intent = &config.Intent{Hosts: named, Files: intent.Files}
	}
	if len(named) == 0 {
		machine, _ := config.Load(nil, p.reading()) // nothing has no mistakes
		intent.Hosts = machine.Hosts
		p.unnamed = config.LocalHost
	}
	p.Intent = intent
	if o.StatePath == "" && intent.State != "" {
		p.Store.Path = intent.State
	}
	p.takeSimulated()
	return p, complaint, nil
}

// takeSimulated takes the simulated hosts as their folders have them, and leaves
// out those that were never made.
func (p *Project) takeSimulated() {
	var hosts []config.Host
	for _, h := range p.Intent.Hosts {
		if h.Simulate == "" || sim.Is(p.SimDir(h.Name)) {
			hosts = append(hosts, h)
		}
	}
	made, _ := os.ReadDir(p.SimDir("")) // what cannot be read has none
	for _, e := range made {
		name := e.Name()
		spec, err := simulates(p.SimDir(name))
		if err != nil {
			continue // one that cannot be read is told when it is opened
		}
		i := slices.IndexFunc(hosts, func(h config.Host) bool { return h.Name == name })
		if i < 0 {
			i = len(hosts)
			hosts = append(hosts, config.Host{Name: name, Runtime: config.RuntimeAuto, Manage: config.ManageAll()})
		}
		if hosts[i].NVML == "" {
			hosts[i].Simulate = spec
		}
	}
	p.Intent.Hosts = hosts
}

// simulates tells what a folder simulates.
func simulates(dir string) (string, error) {
	h, err := sim.Open(dir)
	if err != nil {
		return "", err
	}
	defer h.Close()
	shown, err := h.Show()
	return shown.Simulates, err
}

// survey looks at GPUs and ledgers, at each host by itself: one that cannot be
// read keeps nobody from the others.
func (p *Project) survey(ctx context.Context) (live resource.Live, failures []error) {
	for _, c := range p.Intent.Hosts {
		h, err := p.open(c)
		if err == nil {
			var one resource.Live
			source := observe.Source{Name: c.Name, Simulated: c.Simulate, Runtime: resource.RuntimeProcess, GPUs: h.agent}
			if p.needsEngine(h, resource.Prior{}) {
				source.Runtime = resource.RuntimeDocker
			}
			if one, err = observe.Read(ctx, []observe.Source{source}, complete); err == nil {
				live.Hosts = append(live.Hosts, one.Hosts...)
				continue
			}
		}
		if c.Name != p.unnamed { // nobody said that this machine has GPUs
			failures = append(failures, err)
		}
	}
	p.disown(live)
	return live, failures
}

// needsEngine tells whether a project may have containers on a host.
func (p *Project) needsEngine(h *host, known resource.Prior) bool {
	if _, err := os.Stat(h.folders + containersSuffix); err == nil {
		return true
	}
	held := slices.Contains(p.heldRuntimes(h.config.Name, known), resource.RuntimeDocker)
	hardware := h.config.Runtime == config.RuntimeAuto && h.config.Simulate == "" && docker.Installed()
	return held || hardware || h.config.Runtime == config.RuntimeDocker
}
