package render

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// runtimeWords states where the sessions of a host run and, with an engine, how containers get their slices. A simulated
// host has one way only.
func runtimeWords(h resource.Host) string {
	switch {
	case h.Runtime == "":
		return ""
	case h.Engine == nil:
		return together(h.Runtime + " runtime")
	case !resource.RuntimeNamed(h.Runtime).Uses("image"):
		return together(h.Runtime+" runtime") + " for new sessions, " + together(h.Engine.Name) + " for those in it"
	case h.Engine.Access == "" || h.Simulated != "":
		return together(h.Engine.Name)
	}
	return together(h.Engine.Name) + ", slices through " + h.Engine.Access
}

// imagesOf lists the images that a plan pulls or builds.
func imagesOf(v PlanView) []public.Image {
	all := []public.Image{}
	for _, s := range v.Plan.Steps {
		if op, is := s.Do.Op.(plan.EnsureImage); is {
			h, _ := v.Live.Host(op.Host)
			there := h.Engine != nil && h.Engine.Images[op.Image] != ""
			all = append(all, public.Image{Host: op.Host, Image: op.Image, How: string(op.How), There: there})
		}
	}
	return all
}

// images lists the images that cosplay pulls or builds before it creates sessions.
func (p *page) images(v PlanView) {
	all := imagesOf(v)
	if len(all) == 0 {
		return
	}
	p.gap()
	t := &table{columns: []column{{}, {tight: true}, {prose: true}}}
	for _, one := range all {
		how := either(one.How == string(plan.BuildImage), "built", "pulled")
		mark, fate := sign(diff.Create), "to be "+how+": it is not there yet"
		if one.There {
			mark, fate = sign(diff.Update), `to be pulled again: pull is "always"`
		}
		t.add(mark, text(given(len(v.Live.Hosts) > 1, one.Host+" ")+"image "+one.Image), inked(dim, fate))
	}
	p.table(t)
}

// newContainer reports whether a change creates a container for a session that has none. The plan then shows its
// image and login.
func newContainer(c diff.SessionChange) bool {
	return c.After != nil && !c.After.Spec.IsZero() && (c.Action == diff.Create || c.Before == nil || c.Before.Spec.IsZero())
}

// containerWords states the image, login and user of a container.
func containerWords(b resource.ContainerSpec) string {
	parts := []string{"image " + b.Image, "no ssh", "user " + b.User.Name}
	switch {
	case !b.SSH.Enabled:
	case b.SSH.Port != 0:
		parts[1] = "ssh " + endpoint(b.SSH.Bind, b.SSH.Port)
	case b.SSH.Kept != 0:
		parts[1] = "ssh " + endpoint(b.SSH.Bind, b.SSH.Kept) + " as before"
	default:
		parts[1] = "ssh " + b.SSH.Bind + ", port chosen at start"
	}
	if b.Network != "" {
		parts = append(parts, "network "+b.Network)
	}
	for _, p := range b.Ports {
		parts = append(parts, "port "+p.String())
	}
	return strings.Join(each(parts, together), hard+hard+" ")
}

// containerReads is the text that containers which read alike have in common: all but the number of the port.
func containerReads(c diff.SessionChange) string {
	if !newContainer(c) {
		return ""
	}
	b := c.After.Spec
	return fmt.Sprint(b.Image, b.SSH.Enabled, b.SSH.Bind, b.SSH.Port == 0, b.SSH.Kept == 0, b.User.Name, b.Network, b.Ports)
}

// endpoint is an address with its port: "127.0.0.1:32801", "[::1]:32801".
func endpoint(bind string, port int) string { return net.JoinHostPort(bind, strconv.Itoa(port)) }

// loginOf returns nil if no user can log in.
func loginOf(s resource.Session, c *resource.Body) *public.Login {
	if c == nil || c.State != resource.Running || !s.Spec.SSH.Enabled || c.SSHPort == 0 {
		return nil
	}
	return &public.Login{Host: s.Spec.SSH.Bind, Port: c.SSHPort, User: s.Spec.User.Name}
}

// shortID is a body's ID as the commands of its runtime print it.
func shortID(c resource.Body) string { return resource.RuntimeNamed(c.Runtime).ShortID(c.ID) }

// keptWords reports sessions whose containers keep an old image, old facades, an old driver, an old device or a limit.
func keptWords(drift []diff.Drift) string {
	var sessions prose.Groups[resource.Address]
	for _, d := range drift {
		what := words.Drifted(d)
		thing := what + " of before"
		if d.Class == diff.DisguiseOutdated && d.Kind == diff.FieldFacades {
			thing = what + " of " + valueWords(d.From)
		}
		switch d.Class {
		case diff.ImageMoved, diff.ImageOffered:
			thing += "; there is another one now."
		case diff.DisguiseOutdated:
			thing += " until started again: docker stop, then cosplay apply."
		case diff.DeviceEarlier:
			thing = "device of before in containers that run (cosplay drift --json has their processes): " + resource.RestartContainer + "."
		case diff.SecretsInEnv:
			thing = what + " in the container's environment, where docker inspect shows them, until replaced: cosplay apply --replace."
		case diff.BodyLimited:
			thing = what + " of " + valueWords(d.To) + ", by docker update, until recreated: cosplay apply --replace."
		default:
			continue
		}
		sessions.Add(thing, *d.Session)
	}
	return strings.Join(each(sessions.Texts, func(thing string) string {
		on := sessions.Of[thing]
		return resource.AddressNames(on, 3) + prose.Choose(len(on), " keeps the ", " keep the ") + thing
	}), " ")
}
