package project

import (
	"context"
	"fmt"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Workplace is where an editor works in a session.
type Workplace struct {
	Session resource.PriorSession
	Folder  string // the workspace as the session's programs see it; "" where an imported container has none of cosplay's
	Inside  bool   // in a container; otherwise the session's programs are processes of the host
	Login   *Login // nil without ssh
	Machine string // the user's name for ssh of the machine that the session is on; "" for this one
}

// Workplace is where an editor works in a session that runs. A session on a CDI device has its containers elsewhere, and
// is refused.
func (p *Project) Workplace(ctx context.Context, s resource.PriorSession, prior resource.Prior, live resource.Live) (w Workplace, err error) {
	host, err := p.Host(s.Slice.Host)
	if err != nil {
		return w, err
	}
	w = Workplace{Session: s, Folder: s.Workspace, Inside: resource.RuntimeNamed(s.Runtime).RunsPrograms, Machine: host.Connect}
	body, there := live.Body(s.Slice.Host, s.Runtime, s.ID)
	switch {
	case s.Device() != "":
		return w, prose.Advice{What: fmt.Sprintf("%s is a CDI device: an editor works in your container that has it", s.Address),
			Fix: fmt.Sprintf("cosplay devices --devcontainer %s prints the lines for its devcontainer.json", s.Address.Short())}
	case live.Unreachable(s.Slice.Host):
		return w, live.NotRead(s.Slice.Host)
	case !there:
		return w, prose.Advice{What: fmt.Sprintf("%s: its %s does not exist", s.Address, resource.RuntimeNamed(s.Runtime).Body), Fix: "cosplay apply recreates it"}
	case !w.Inside:
		return w, nil
	}
	w.Folder = resource.WorkspaceInside
	imported := s.Body != nil && s.Body.Foreign
	if imported {
		w.Folder = ""
	}
	if s.Spec.SSH.Enabled && !imported {
		login, err := p.Login(ctx, s, prior, live)
		w.Login = &login
		return w, err
	}
	return w, up(s, body)
}
