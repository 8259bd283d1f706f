package recovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/fit"
	"cosplay/internal/gpucosplay"
	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Describe reads a container on a host that cosplay did not create, as the block of a session has it, with a note on what
// no block can have; nil if there is none.
func Describe(ctx context.Context, p *project.Project, host, ref string) (described *resource.Session, notes []string, err error) {
	h, err := p.Connect(ctx, host, resource.Prior{})
	if err != nil {
		return nil, nil, err
	}
	for _, in := range h.Runtimes(resource.Owner{}) {
		describer, is := in.(runtime.Describer)
		if !is {
			continue
		}
		s, left, err := describer.Describe(ctx, ref)
		if s == nil || err != nil {
			return nil, nil, err
		}
		s.Request = resource.Request{Host: host, Fit: resource.DefaultFit()}
		if len(left) > 0 {
			notes = []string{fmt.Sprintf("No block can have these of the container, which it has until it is recreated: %s.", strings.Join(left, ", "))}
		}
		return s, notes, nil
	}
	if p.Machine.Elsewhere(h.Config) {
		return nil, nil, fmt.Errorf("host %q has no MIG slice %s, and it is another machine, where cosplay does not read what a container was created from. Fix: write the session block yourself, and run cosplay import without --generate; or run it in a project on that machine", host, ref)
	}
	return nil, nil, fmt.Errorf("host %q has no MIG slice %s, and no container engine that cosplay can ask what a container was created from. Fix: correct the ID, or write the session block yourself", host, ref)
}

// Draft describes what an ID names, a container or a MIG slice, as the block of a session that imports it.
func Draft(ctx context.Context, p *project.Project, name, id string) (config.Draft, error) {
	d := config.Draft{Session: resource.Session{Request: resource.Request{Fit: resource.DefaultFit()}}}
	if len(p.Intent.Hosts) > 1 {
		return d, errors.New("the configuration has several hosts, and --generate chooses none. Fix: write the session block, with host")
	}
	host := p.Intent.Hosts[0].Name
	live, err := p.Hardware(ctx)
	if err != nil {
		return d, err
	}
	f := finder{Project: p, live: live, id: id}
	if made, there := f.liveSlice(); there {
		g, _ := live.GPU(made.Host, made.GPU)
		d.Session.Target, err = nearest(g.Model, made.Profile)
		d.Notes = []string{fmt.Sprintf("The slice %s is a %s. A slice has no target: this is the closest one.", made.UUID, made.Profile)}
		d.Session.Spec, d.Session.Workspace = config.UsualSpec(), p.Dir
	} else {
		var (
			s     *resource.Session
			notes []string
		)
		if s, notes, err = Describe(ctx, p, host, id); err == nil && s == nil {
			err = fmt.Errorf("host %q has no %q to describe: name a MIG slice by its UUID (nvidia-smi -L), or a container by its name or ID (docker ps -a)", host, id)
		}
		if err == nil {
			d, err = presented(*s, id)
			d.Notes = append(d.Notes, notes...)
		}
	}
	d.Session.Address, d.Session.Request.Host = resource.One(name), host
	return d, err
}

// presented adds to a container the GPU that it presents, by the variable that gpu-cosplay sets.
func presented(s resource.Session, id string) (d config.Draft, err error) {
	card, is := s.Env[gpucosplay.CardVariable]
	if !is {
		return d, fmt.Errorf("nothing says which GPU the container %s presents. Fix: write the session block with its target, and run cosplay import without --generate", id)
	}
	if s.Target, err = catalog.Target(card); err != nil {
		return d, fmt.Errorf("the container %s presents %q: %w", id, card, err)
	}
	if key := gpucosplay.Adapt(&s); key != "" {
		d.Keys = []string{key}
	}
	d.Session = s
	return d.WithoutSecrets(), nil
}

// nearest is the target that a slice of a GPU comes closest to.
func nearest(m resource.Model, profile string) (best resource.Target, err error) {
	options, least := resource.DefaultFit(), 0.0
	for _, t := range catalog.Targets() {
		for _, c := range fit.Candidates(m, t, options) {
			if wrong := c.Error(options.Prefer); c.Profile == profile && (best.Key == "" || wrong < least) {
				best, least = t, wrong
			}
		}
	}
	if best.Key == "" {
		return best, fmt.Errorf("no target of the catalog fits a %s. Fix: write the session block yourself", profile)
	}
	return best, nil
}

// ErrOnlyRoot is the cause of a refusal to import what only root may assign to a project.
var ErrOnlyRoot = errors.New("only root may assign it")

// TryImports looks for the objects of all import blocks of a project without a state, in turn, and changes nothing. It
// returns why some cannot be imported. What only root may import can be.
func TryImports(ctx context.Context, p *project.Project) (map[resource.Address]error, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	failed := map[resource.Address]error{}
	for _, one := range p.Intent.Imports {
		found, next, err := FindImport(ctx, p, prior, live, one, nil)
		switch {
		case err != nil && !errors.Is(err, ErrOnlyRoot):
			failed[one.To] = err
		case !found.Kept:
			failed[one.To] = errors.New("nothing says which slice or GPU its container was given")
		default:
			prior = found.Into(next)
		}
	}
	return failed, nil
}
