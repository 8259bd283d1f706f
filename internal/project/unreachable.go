package project

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// unreachable are the sessions on hosts of which nothing could be read, or that can be nowhere else.
func (p *Project) unreachable(prior resource.Prior, live resource.Live) map[resource.Address]bool {
	all := map[resource.Address]bool{}
	for _, s := range p.Intent.Sessions {
		hosts := s.Hosts
		if hosts == nil {
			hosts = []string{s.Host}
		}
		all[s.Address] = !slices.ContainsFunc(hosts, func(host string) bool { return !live.Unreachable(host) })
	}
	for _, s := range prior.Sessions {
		all[s.Address] = live.Unreachable(s.Slice.Host) || all[s.Address] && p.Intent.Session(s.Address).Hosts == nil
	}
	maps.DeleteFunc(all, func(_ resource.Address, is bool) bool { return !is })
	return all
}

// leaveUnreachable excludes sessions on hosts of which nothing could be read from a plan: with those that need one that does not
// exist yet, or if all are removed, with those that they need.
func (p *Project) leaveUnreachable(scope resolve.Scope, aim Aim, prior resource.Prior, live resource.Live) error {
	lost, all := p.unreachable(prior, live), append(p.Addresses(), prior.Addresses()...)
	for _, typed := range append(slices.Clone(aim.Target), aim.Replace...) {
		matches, err := state.Matching(typed, all)
		if err == nil && !slices.ContainsFunc(matches, func(a resource.Address) bool { return !lost[a] }) {
			return fmt.Errorf("%s cannot be planned: %w", typed, live.Unreached())
		}
	}
	for a := range lost {
		scope.Left[a] = true
	}
	needs := turned(p.needs(prior))
	if aim.Goal == NothingLeft {
		needs = p.needs(prior)
	}
	with := maps.Clone(lost)
	maps.DeleteFunc(with, func(a resource.Address, _ bool) bool {
		_, made := prior.Session(a)
		return made != (aim.Goal == NothingLeft)
	})
	follow(with, all, needs)
	for a, is := range with {
		if _, made := prior.Session(a); is && made == (aim.Goal == NothingLeft) {
			scope.Left[a] = true
		}
	}
	return nil
}

// unreachableHosts warns of the hosts of which nothing could be read.
func (p *Project) unreachableHosts(prior resource.Prior, live resource.Live) (diags hcl.Diagnostics) {
	for _, h := range live.Hosts {
		if h.Unreachable == "" {
			continue
		}
		c := p.Intent.Host(h.Name)
		waits := "What the configuration has there waits."
		if n := len(prior.Bodies(h.Name)); n > 0 {
			waits = fmt.Sprintf("%s of the project there %s.", prose.Count(n, "session"), prose.Choose(n, "is unknown and stays as it is", "are unknown and stay as they are"))
		}
		detail := prose.Stop(h.Unreachable) + " " + waits
		if h.Remedy != "" {
			detail += " Fix: " + h.Remedy
		}
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: fmt.Sprintf("host %q cannot be read", h.Name), Subject: c.Ranges.Of("connect"), Detail: detail})
	}
	return diags
}
