package project

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/machine"
	"cosplay/internal/plan"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
)

// Foresee reports what a first plan would refuse or warn of on the simulated hosts, whose GPUs the configuration
// states. It reads no host and no state. What depends on the user and the machine, like keys, it leaves to plan.
func (p *Project) Foresee() (hcl.Diagnostics, error) {
	if len(p.Intent.Missed) > 0 {
		return nil, nil
	}
	_, clustered := p.PlanClusters()
	intent := &config.Intent{Files: p.Intent.Files}
	var live resource.Live
	for _, h := range p.Intent.Hosts {
		if h.Simulate == "" || slices.ContainsFunc(h.GPUs, namedByHost) {
			continue
		}
		imagined, err := imagine(p.Dir, h)
		if err != nil {
			return nil, err
		}
		intent.Hosts, live.Hosts = append(intent.Hosts, h), append(live.Hosts, imagined)
	}
	for _, s := range p.Intent.Sessions {
		known := !slices.ContainsFunc(append([]string{s.Host}, s.Hosts...), func(name string) bool {
			_, is := live.Host(name)
			return !is && name != ""
		})
		if known && (s.GPU == nil || !namedByHost(*s.GPU)) && !slices.ContainsFunc(s.Lifecycle.Ignore, placed) {
			intent.Sessions = append(intent.Sessions, s)
		}
	}
	const key = "foreseen" // no session is created
	if wrong := resolve.Spread(intent, resource.Prior{Key: key}, live, resolve.Scope{}); wrong.HasErrors() {
		return append(wrong, clustered...), nil
	}
	desired, diags := resolve.Desired(intent, resolve.Person{Keys: []string{key}}, resource.Prior{Key: key}, live, resolve.Scope{})
	if diags = append(diags, clustered...); diags.HasErrors() {
		return diags, nil
	}
	first := plan.Build(desired, resource.Prior{Key: key}, live, diff.Options{})
	facts := planned(first, live)
	_, wrong := p.Intent.EvalOutputs(facts)
	return slices.Concat(diags, wrong, p.Intent.EvalChecks(p.everywhere(facts))), nil
}

// namedByHost reports whether only the host can say which GPU a selector names.
func namedByHost(s config.GPUSelector) bool { return s.Index == nil }

// placed reports whether an attribute that a session ignores decides its placement: the state may have another value.
func placed(attribute string) bool {
	first, _, _ := strings.Cut(attribute, ".")
	return slices.Contains([]string{config.IgnoreAll, "target", "host", "gpu", "fit"}, first)
}

// imagine returns a simulated host as cosplay would create it.
func imagine(dir string, h config.Host) (resource.Host, error) {
	host, err := machine.Simulated(dir, h.Simulate)
	host.Name, host.Simulated, host.Runtime = h.Name, h.Simulate, h.Runtime
	if h.Runtime == config.RuntimeAuto {
		host.Runtime = resource.RuntimeNames("")[0] // the preferred one, which the machine may lack
	}
	for i := range host.GPUs {
		g := &host.GPUs[i]
		g.Host = h.Name
		for n := range g.Slices {
			g.Slices[n].Host = h.Name
		}
	}
	host.Index()
	return host, err
}
