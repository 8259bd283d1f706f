package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// inside is a session that a command goes into.
type inside struct {
	*project.Project
	project.Outlook
	session resource.PriorSession
}

// enter finds the session that a person means. The caller closes the project.
func (inv *invocation) enter(ctx context.Context, name string) (*inside, error) {
	p, _, _, err := inv.openHosts()
	if err != nil {
		return nil, err
	}
	in := &inside{Project: p}
	if in.Outlook, err = p.Peek(ctx); err == nil {
		in.session, err = named(in.Prior, name)
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	p.Machine.Rest()
	return in, nil
}

// named finds a session by whatever people call it.
func named(prior resource.Prior, name string) (resource.PriorSession, error) {
	var known []resource.Address
	for _, s := range prior.Sessions {
		known = append(known, s.Address)
	}
	address, err := resource.Match(name, known)
	if err != nil {
		return resource.PriorSession{}, oneOfSeveral(err, name, known)
	}
	session, _ := prior.Session(address)
	return session, nil
}

// chosen finds the sessions of some names, each once, or all where there are
// none.
func chosen(prior resource.Prior, names []string) ([]resource.PriorSession, error) {
	if len(names) == 0 {
		return prior.Sessions, nil
	}
	var sessions []resource.PriorSession
	for _, name := range names {
		s, err := named(prior, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(sessions, func(o resource.PriorSession) bool { return o.Address == s.Address }) {
			sessions = append(sessions, s)
		}
	}
	return sessions, nil
}

// oneOfSeveral tells a name that is a whole block's from one that is nobody's.
func oneOfSeveral(err error, name string, known []resource.Address) error {
	var instances []string
	for _, a := range known {
		if a.Key.Kind != resource.Single && (name == a.Name || name == "session."+a.Name) {
			instances = append(instances, a.Short())
		}
	}
	if len(instances) == 0 {
		return err
	}
	total := prose.Count(len(instances), "session")
	if len(instances) > 4 {
		instances = append(instances[:2], "...", instances[len(instances)-1])
	}
	return fmt.Errorf("%s has %s; name one: %s", name, total, strings.Join(instances, ", "))
}

// splitCommand parts a session's name from the command behind the dash; dash is
// how many words come before it, negative without one.
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
