package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"cosplay/internal/agent"
	"cosplay/internal/diff"
	"cosplay/internal/machine"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// subject is the user to whom the rules for sessions apply: the one of the command or, for root, the owner of the state,
// so that root does not change what the rules gave a user's sessions.
func (f *Files) subject() agent.Subject {
	uid := os.Getuid()
	if uid == 0 {
		uid = *machine.UserID()
		if info, err := os.Stat(f.Store.Path); err == nil {
			uid = int(info.Sys().(*syscall.Stat_t).Uid)
		}
	}
	return agent.SubjectOf(uid)
}

// ttlRules returns what the rules of the admins say about the ttl of a session on GPUs of a host. Root is free. A user who
// may not read the rules has none.
func (p *Project) ttlRules(live resource.Live) func(host string, gpus []string) (agent.TTL, error) {
	subject := sync.OnceValue(p.subject)
	return func(host string, gpus []string) (agent.TTL, error) {
		shown, _ := live.Host(host)
		if shown.Admin.Rules.Path == "" {
			return agent.TTL{}, nil
		}
		who := subject()
		if h := p.Machine.Hosts()[host]; h != nil && h.Config.Connect != "" {
			who = h.Subject()
		}
		policy, err := agent.PolicyOf(shown.Admin.Rules)
		switch {
		case who.UID == 0 || errors.Is(err, fs.ErrPermission):
			return agent.TTL{}, nil
		case err != nil:
			return agent.TTL{}, err
		}
		return policy.TTL(who, gpus)
	}
}

func gpusOf(s resource.Session) []string {
	return prose.Each(s.On(), func(k resource.GPUKey) string { return k.UUID })
}

// giveTTL gives sessions without a ttl the default one of the rules.
func (p *Project) giveTTL(sessions []resource.Session, live resource.Live) {
	rules := p.ttlRules(live)
	for i := range sessions {
		s := &sessions[i]
		if s.Lifetime.TTL != 0 {
			continue
		}
		if ttl, err := rules(s.Slice.Host, gpusOf(*s)); err == nil { // checkTTL reports it
			s.Lifetime.TTL = ttl.Default
		}
	}
}

// checkTTL refuses each session that comes up, or gets another ttl, with a longer one than the rules permit, and says
// which ones get the default.
func (p *Project) checkTTL(f *preflight.Flight) {
	rules, written := p.ttlRules(f.Live), map[resource.Address]resource.Seconds{}
	for _, s := range p.Intent.Sessions {
		written[s.Address] = s.Lifetime.TTL
	}
	for _, c := range f.Plan.Diff.Sessions {
		if c.After == nil || c.Before != nil && c.Before.Lifetime.TTL == c.After.Lifetime.TTL && (c.Body == diff.Keep || c.Body == diff.Remove) {
			continue
		}
		ttl, err := rules(c.After.Slice.Host, gpusOf(*c.After))
		switch written := written[c.Address]; {
		case err != nil:
			f.Session(c.Address, preflight.Problem{Attribute: "ttl", Summary: "the longest ttl is not known", Warning: !p.Locked(), Advice: prose.AdviceOf(err)})
		case ttl.Max > 0 && written > ttl.Max:
			f.Session(c.Address, preflight.Problem{Attribute: "ttl", Summary: fmt.Sprintf("a ttl of %s is too long for this host", written), Warning: !p.Locked(),
				Advice: prose.Advice{What: fmt.Sprintf("the rule %s permits %s", ttl.Rule, ttl.Max), Fix: fmt.Sprintf("write ttl = %q or less, or ask the admin of the host", ttl.Max)}})
		case ttl.Default > 0 && written == 0:
			f.Session(c.Address, preflight.Problem{Summary: fmt.Sprintf("the session gets a ttl of %s", ttl.Default), Warning: true,
				Advice: prose.Advice{What: fmt.Sprintf("the rule %s gives it to sessions without one", ttl.Rule), Fix: fmt.Sprintf("write ttl = %q", ttl.Default)}})
		}
	}
}

// refuseLonger refuses to extend a session beyond what the rules for some GPUs permit from now.
func (p *Project) refuseLonger(live resource.Live, host string, gpus []string, left resource.Seconds) error {
	ttl, err := p.ttlRules(live)(host, gpus)
	if err != nil || ttl.Max == 0 || left <= ttl.Max {
		return err
	}
	return prose.Advice{What: fmt.Sprintf("the session would have %s left, and the rule %s permits %s. Nothing was changed", left, ttl.Rule, ttl.Max), Fix: "extend it by less, or ask the admin of the host"}
}
