// Package preflight finds what would refuse a plan before anything is changed,
// and tells it at the lines of the configuration that it is about. It judges
// GPUs and images itself; what the engine, the file system and the network say
// is asked by others and comes in. Pure.
package preflight

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
)

// Problem is something that would refuse a part of a plan. Summary is a phrase,
// Detail whole sentences with what to do.
type Problem struct {
	Attribute string // of the block that it is about, like "ssh.port"; "" is the block
	Summary   string
	Detail    string
	Warning   bool // it goes all the same, or may until apply
}

// Flight is a plan about to be carried out, with the world that it rests on.
type Flight struct {
	Intent *config.Intent
	Plan   *plan.Plan
	Prior  resource.Prior
	Live   resource.Live

	diags    hcl.Diagnostics
	sessions map[resource.Address]*config.Session // the configuration's, once one is asked for
}

// Diagnostics are all that was found, each once.
func (f *Flight) Diagnostics() hcl.Diagnostics { return f.diags }

// Made are the sessions of a host whose container is made, made anew or started
// again.
func (f *Flight) Made(host string) []diff.SessionChange {
	var made []diff.SessionChange
	for _, c := range f.Plan.Diff.Sessions {
		if c.After != nil && c.After.Slice.Host == host && c.Container != diff.Keep && c.Container != diff.Remove {
			made = append(made, c)
		}
	}
	return made
}

// Gone are the containers, by their IDs, that are gone before that of a session
// is made: its own, and those on the same GPU. Of those elsewhere the plan does
// not say when they go.
func (f *Flight) Gone(session diff.SessionChange) map[string]bool {
	gone := map[string]bool{}
	for i := range f.Plan.Diff.Sessions {
		c := &f.Plan.Diff.Sessions[i]
		if c.Before == nil || session.After == nil {
			continue
		}
		goes := c.Container == diff.Remove || c.Container == diff.Remake
		near := c.Before.Slice.Host == session.After.Slice.Host && c.Before.Slice.GPU == session.After.Slice.GPU
		if c.Address != session.Address && !(goes && near) {
			continue
		}
		if there, ok := f.Live.Container(c.Before.Slice.Host, c.Before.Runtime, c.Before.ID); ok {
			gone[there.ID] = true
		}
	}
	return gone
}

// Changes reports whether anything of a host's GPUs is changed, or written down
// in its ledger.
func (f *Flight) Changes(host string) bool {
	h, _ := f.Live.Host(host)
	gpu := slices.ContainsFunc(f.Plan.Diff.GPUs, func(c diff.GPUChange) bool {
		return c.Host == host && (c.Take || c.Settings != (resource.Settings{}) || c.GiveBack && c.Action == diff.Delete && !h.Unbooked)
	})
	return gpu || slices.ContainsFunc(f.Plan.Diff.Sessions, func(c diff.SessionChange) bool {
		made := c.After != nil && c.After.Slice.Host == host && (c.Slice == diff.Make || c.Slice == diff.Remake)
		gone := c.Before != nil && c.Before.Slice.Host == host && (c.Slice == diff.Remove || c.Slice == diff.Remake)
		return made || gone
	})
}

// Session tells what is wrong with a session.
func (f *Flight) Session(a resource.Address, problems ...Problem) {
	for _, p := range problems {
		var at *hcl.Range // none: a saved plan knows sessions that the files do not
		if s := f.session(a); s != nil {
			at = rangeOf(s.Ranges, p.Attribute)
		}
		f.tell(p, at)
	}
}

func (f *Flight) session(a resource.Address) *config.Session {
	if f.sessions == nil {
		f.sessions = map[resource.Address]*config.Session{}
		for i := range f.Intent.Sessions {
			f.sessions[f.Intent.Sessions[i].Address] = &f.Intent.Sessions[i]
		}
	}
	return f.sessions[a]
}

// Host tells what is wrong with a host.
func (f *Flight) Host(name string, p Problem) {
	var at *hcl.Range
	if i := slices.IndexFunc(f.Intent.Hosts, func(h config.Host) bool { return h.Name == name }); i >= 0 {
		at = rangeOf(f.Intent.Hosts[i].Ranges, p.Attribute)
	}
	f.tell(p, at)
}

func rangeOf(ranges config.Ranges, attribute string) *hcl.Range {
	at := ranges.At(attribute)
	if at == (hcl.Range{}) {
		return nil // a host that no file declares
	}
	return &at
}

// tell tells what is the same for all instances of a block only once.
func (f *Flight) tell(p Problem, at *hcl.Range) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: p.Detail, Subject: at}
	if p.Warning {
		d.Severity = hcl.DiagWarning
	}
	told := slices.ContainsFunc(f.diags, func(o *hcl.Diagnostic) bool {
		return o.Summary == d.Summary && (at == nil) == (o.Subject == nil) && (at == nil || *o.Subject == *at)
	})
	if !told {
		f.diags = append(f.diags, d)
	}
}

// Images looks for images that were there when the plan was made: no step gets
// them.
func (f *Flight) Images() {
	got := map[[2]string]bool{}
	for _, s := range f.Plan.Steps {
		if op, ok := s.Do.Op.(plan.EnsureImage); ok {
			got[[2]string{op.Host, op.Image}] = true
		}
	}
	for _, h := range f.Live.Hosts {
		for _, c := range f.Made(h.Name) {
			if c.After.Spec.IsZero() || h.Engine == nil || c.Container == diff.Refit || h.Engine.Images[c.After.Spec.Image] != "" || got[[2]string{h.Name, c.After.Spec.Image}] {
				continue
			}
			f.Session(c.Address, Problem{Attribute: "image",
				Summary: fmt.Sprintf("there is no image %s on host %q", c.After.Spec.Image, h.Name),
				Detail:  "It was there when the plan was made. Run cosplay plan again: the new plan gets it, or says how."})
		}
	}
}
