package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

// inside is a session that a command enters.
type inside struct {
	*project.Project
	project.Outlook
	session resource.PriorSession
	reached runtime.Runtime // the session's, if it runs as the last run left it; the outlook is empty then
}

// enter finds the session that the user names, and ends the agents. If the hosts cannot be read, the project is returned
// with the error. For programs that cosplay starts, it checks that the session has its slice.
func (inv *invocation) enter(ctx context.Context, name string, starts bool) (*inside, error) {
	p, err := inv.open(forHosts)
	if err != nil {
		return nil, err
	}
	in := &inside{Project: p.Project}
	choose := func(prior resource.Prior) (resource.PriorSession, error) { return named(prior, name) }
	if r, ok := p.Reach(ctx, choose, starts); ok {
		in.Prior, in.session, in.reached = r.Prior, r.Session, r.Runtime
		p.Machine.Leave()
		return in, nil
	}
	done := inv.slow("Reading the hosts")
	in.Outlook, err = p.Peek(ctx)
	done()
	if err != nil {
		return in, err
	}
	in.session, err = named(in.Prior, name)
	p.Machine.Rest()
	return in, p.OnCluster(err, name)
}

// named finds a session by any form of its address, or by the name of its container.
func named(prior resource.Prior, name string) (resource.PriorSession, error) {
	if i := slices.IndexFunc(prior.Sessions, func(s resource.PriorSession) bool { return name == s.BodyName() }); i >= 0 {
		return prior.Sessions[i], nil
	}
	known := prior.Addresses()
	address, err := resource.Match(name, known)
	if err != nil {
		return resource.PriorSession{}, oneOfSeveral(err, name, known)
	}
	session, _ := prior.Session(address)
	return session, nil
}

// peekChosen reads state and hosts, and finds the sessions with the names.
func (inv *invocation) peekChosen(ctx context.Context, names []string) (p *opened, now project.Outlook, sessions []resource.PriorSession, err error) {
	if p, err = inv.open(forHosts); err != nil {
		return p, now, nil, err
	}
	defer inv.slow("Reading the hosts")()
	if now, err = p.Peek(ctx); err != nil {
		return p, now, nil, err
	}
	sessions, err = chosen(now.Prior, names)
	return p, now, sessions, p.OnCluster(err, names...)
}

// chosen finds the sessions with the names, each once; without names, all. The name of a block names all its sessions.
func chosen(prior resource.Prior, names []string) ([]resource.PriorSession, error) {
	if len(names) == 0 {
		return prior.Sessions, nil
	}
	var sessions []resource.PriorSession
	for _, name := range names {
		found := prose.Only(prior.Sessions, func(s resource.PriorSession) bool { return isOneOf(s.Address, name) })
		if len(found) == 0 {
			s, err := named(prior, name)
			if err != nil {
				return nil, err
			}
			found = []resource.PriorSession{s}
		}
		for _, s := range found {
			if !slices.ContainsFunc(sessions, func(o resource.PriorSession) bool { return o.Address == s.Address }) {
				sessions = append(sessions, s)
			}
		}
	}
	return sessions, nil
}

// isOneOf reports whether an address is that of one of several sessions of the block with the name.
func isOneOf(a resource.Address, block string) bool {
	return a.Key.Kind != resource.Single && a.Name == strings.TrimPrefix(block, "session.")
}

// oneOfSeveral replaces the error for an unknown name if the name is that of a block with
// several sessions.
func oneOfSeveral(err error, name string, known []resource.Address) error {
	several := prose.Only(known, func(a resource.Address) bool { return isOneOf(a, name) })
	instances := prose.Each(several, resource.Address.Short)
	if len(instances) == 0 {
		return err
	}
	total := prose.Count(len(instances), "session")
	if len(instances) > 4 {
		instances = append(instances[:2], "...", instances[len(instances)-1])
	}
	return fmt.Errorf("%s has %s; name one: %s", name, total, strings.Join(instances, ", "))
}

// splitCommand separates a session's name from the command after --. dash is the number
// of words before it, negative without one.
func splitCommand(verb string, args []string, dash int) (name string, argv []string, err error) {
	names := args
	if dash >= 0 {
		names, argv = args[:dash], args[dash:]
	}
	if len(names) > 1 {
		return "", nil, fmt.Errorf("one session at a time; write the command after --: cosplay %s %s -- %s", verb, terminal.ShellWord(names[0]), terminal.ShellWords(names[1:]))
	}
	return strings.Join(names, ""), argv, nil
}
