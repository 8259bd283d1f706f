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

// runtimeWords says where the sessions of a host run and, with an engine, how slices come into its containers; on a
// simulated host there is one way only.
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

func imagesOf(v PlanView) []public.Image {
	all := []public.Image{}
	for _, s := range v.Plan.Steps {
		op, ok := s.Do.Op.(plan.EnsureImage)
		if !ok {
			continue
		}
		one := public.Image{Host: op.Host, Image: op.Image, How: string(op.How)}
		if h, ok := v.Live.Host(op.Host); ok && h.Engine != nil {
			one.There = h.Engine.Images[op.Image] != ""
		}
		all = append(all, one)
	}
	return all
}

// images lists the images that are pulled or built before sessions are made.
func (p *page) images(v PlanView) {
	all := imagesOf(v)
	if len(all) == 0 {
		return
	}
	p.gap()
	t := &table{columns: []column{{}, {tight: true}, {prose: true}}}
	for _, one := range all {
		mark, fate := sign(diff.Create), fmt.Sprintf("to be %s: it is not there yet", pulledOrBuilt(one.How))
		if one.There {
			mark, fate = sign(diff.Update), `to be pulled anew: pull is "always"`
		}
		name := "image " + one.Image
		if len(v.Live.Hosts) > 1 {
			name = one.Host + " " + name
		}
		t.add(mark, text(name), inked(dim, fate))
	}
	p.table(t)
}

func pulledOrBuilt(how string) string {
	if how == string(plan.BuildImage) {
		return "built"
	}
	return "pulled"
}

// boxIsNew reports whether a change makes a container where there was none: then what it is made of is told.
func boxIsNew(c diff.SessionChange) bool {
	return c.After != nil && !c.After.Spec.IsZero() && (c.Action == diff.Create || c.Before == nil || c.Before.Spec.IsZero())
}

// boxWords is what a container is made from, where one will log in, and as whom.
func boxWords(b resource.ContainerSpec) string {
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
	for i := range parts {
		parts[i] = together(parts[i])
	}
	return strings.Join(parts, hard+hard+" ")
}

// boxReads is what containers that read alike have in common: all but the number of the port.
func boxReads(c diff.SessionChange) string {
	if !boxIsNew(c) {
		return ""
	}
	b := c.After.Spec
	return fmt.Sprint(b.Image, b.SSH.Enabled, b.SSH.Bind, b.SSH.Port == 0, b.SSH.Kept == 0, b.User.Name)
}

// endpoint is an address with its port: "127.0.0.1:32801", "[::1]:32801".
func endpoint(bind string, port int) string { return net.JoinHostPort(bind, strconv.Itoa(port)) }

// loginOf gives nil where no user can log in.
func loginOf(s resource.Session, c *resource.Container) *public.Login {
	if c == nil || c.State != resource.Running || !s.Spec.SSH.Enabled || c.SSHPort == 0 {
		return nil
	}
	return &public.Login{Host: s.Spec.SSH.Bind, Port: c.SSHPort, User: s.Spec.User.Name}
}

// shortID is a body's ID as its runtime's own commands print it.
func shortID(c resource.Container) string { return resource.RuntimeNamed(c.Runtime).ShortID(c.ID) }

// keptWords tells of sessions in containers that keep what there is another one of now, by what that is: an image,
// the facades, the driver; or that keep a limit.
func keptWords(drift []diff.Drift) string {
	var (
		things []string
		on     = map[string][]resource.Address{}
	)
	for _, d := range drift {
		what := words.Drifted(d)
		thing := what + " of before"
		if d.Class == diff.DisguiseOutdated && d.Kind == diff.FieldFacades {
			thing = what + " of " + words.Value(d.From, resource.Live{})
		}
		switch d.Class {
		case diff.ImageMoved:
			thing += "; there is another one now."
		case diff.DisguiseOutdated:
			thing += " until started again: docker stop, then cosplay apply."
		case diff.SecretsOpen:
			thing = what + " in the container's environment, where docker inspect shows them, until replaced: cosplay apply --replace."
		case diff.ContainerLimited:
			thing = what + " of " + words.Value(d.To, resource.Live{}) + ", by docker update, until recreated: cosplay apply --replace."
		default:
			continue
		}
		if on[thing] == nil {
			things = append(things, thing)
		}
		on[thing] = append(on[thing], *d.Session)
	}
	for i, thing := range things {
		things[i] = resource.AddressNames(on[thing], 3) + prose.Choose(len(on[thing]), " keeps the ", " keep the ") + thing
	}
	return strings.Join(things, " ")
}
