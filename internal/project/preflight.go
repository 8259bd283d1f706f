package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/state"
)

// Check looks for everything that would refuse a plan once it is under way, and
// changes nothing. What the world may still come to allow, like the user's
// rights, is a warning until the state is locked for an apply.
func (p *Project) Check(ctx context.Context, planned *plan.Plan, prior resource.Prior, live resource.Live) (hcl.Diagnostics, error) {
	if !planned.Diff.Changes() {
		return nil, nil
	}
	flight := &preflight.Flight{Intent: p.Intent, Plan: planned, Prior: prior, Live: live}
	if err := p.checkRoom(flight, room(planned)); err != nil {
		return nil, err
	}
	flight.GPUs()
	flight.Images()
	for _, c := range p.Intent.Hosts {
		h, err := p.connect(ctx, c, prior)
		if err != nil {
			return nil, err
		}
		p.checkRights(ctx, flight, h)
		if err := h.checkSessions(ctx, flight, prior.Owner()); err != nil {
			return nil, err
		}
	}
	return flight.Diagnostics(), nil
}

// applies reports whether the plan is about to be carried out: then the caller
// has the lock.
func (p *Project) applies() bool { return p.lock != nil }

// checkRoom looks whether journal and state can be written. Plan itself writes
// neither.
func (p *Project) checkRoom(f *preflight.Flight, needed state.Room) error {
	if p.applies() {
		return p.Store.Writable(needed)
	}
	dir := filepath.Dir(p.Store.Path)
	err := durable.CanWriteIn(dir)
	if info, there := os.Stat(dir); err == nil && there == nil && info.IsDir() {
		err = p.Store.Writable(needed)
	}
	if err != nil {
		f.Host("", preflight.Problem{Warning: true, Summary: "apply could not write its state", Detail: preflight.Sentence(err)})
	}
	return nil
}

// checkRights looks whether the GPUs of a host may be changed, and whether that
// can be written into its ledger.
func (p *Project) checkRights(ctx context.Context, f *preflight.Flight, h *host) {
	if !f.Changes(h.config.Name) {
		return
	}
	if h.rooted {
		if err := h.agent.MayChange(ctx); err != nil {
			f.Host(h.config.Name, preflight.Problem{Attribute: "manage", Warning: !p.applies(),
				Summary: fmt.Sprintf("you cannot have the GPUs of host %q changed", h.config.Name),
				Detail:  err.Error() + ". Or have an admin make the slices, and write manage = [] to change nothing."})
		}
		h.checkBaselineClock(f)
		return // root's agent keeps the ledger
	}
	if dir := ledgerDir(h.config, h.library); dir != "" {
		if err := durable.CanWriteIn(filepath.Join(dir, "ledger")); err != nil {
			f.Host(h.config.Name, preflight.Problem{Warning: !p.applies(),
				Summary: fmt.Sprintf("the ledger of host %q cannot be written", h.config.Name),
				Detail:  preflight.Sentence(err) + fmt.Sprintf(" The baselines of its GPUs are kept there, so nothing is changed without. Make %s writable.", dir)})
		}
	}
}

// checkBaselineClock warns of a clock lock that the configuration states and root's
// agent does not believe.
func (h *host) checkBaselineClock(f *preflight.Flight) {
	stated := h.config.BaselineClockMHz
	admin, err := agent.AdminClocks()
	if err != nil {
		f.Host(h.config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true, Summary: "the admin's list of clock locks cannot be used", Detail: preflight.Sentence(err)})
		return
	}
	if stated == nil || slices.Contains(slices.Collect(maps.Values(admin)), *stated) {
		return
	}
	f.Host(h.config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true,
		Summary: fmt.Sprintf("baseline_clock of host %q is not used", h.config.Name),
		Detail: fmt.Sprintf("NVML cannot read a clock lock, so the root agent believes the admin alone, and destroy lifts the lock. Fix: let an admin add a line to %s: the GPU's UUID and %d.",
			agent.BaselineClocks, *stated)})
}

// checkSessions looks at what the sessions need whose containers are to be made.
// Where there are none, nobody is asked.
func (h *host) checkSessions(ctx context.Context, f *preflight.Flight, owner resource.Owner) error {
	made := f.Made(h.config.Name)
	if len(made) == 0 {
		return nil
	}
	if err := durable.CanWriteIn(filepath.Dir(h.folders)); err != nil {
		f.Host(h.config.Name, preflight.Problem{
			Summary: "the session folders cannot be made",
			Detail:  preflight.Sentence(err) + " Make way for them, or use another project folder (--chdir)."})
	}
	if h.cuda() == "" {
		f.Host(h.config.Name, preflight.Problem{Attribute: "nvml", Warning: true,
			Summary: fmt.Sprintf("host %q has no CUDA driver", h.config.Name),
			Detail:  preflight.Sentence(errors.New(noCUDA)) + " Install that of the same driver (apt-get install libcuda1)."})
	}
	if h.engine == nil {
		for _, c := range made {
			if c.After.Runtime == resource.RuntimeDocker {
				f.Host(h.config.Name, preflight.Problem{Attribute: "runtime",
					Summary: fmt.Sprintf("sessions of host %q run as processes now", h.config.Name),
					Detail:  "When the plan was made they ran in containers. Run cosplay plan again, or write runtime = \"docker\" in the host block."})
			}
			f.Session(c.Address, runtime.CheckWorkspace(c.After.Workspace)...)
		}
		return nil
	}
	if err := h.docker(owner).Reaches(); err != nil {
		f.Host(h.config.Name, preflight.Problem{Attribute: "runtime", Summary: fmt.Sprintf("slices do not reach containers on host %q", h.config.Name), Detail: preflight.Sentence(err)})
	}
	survey, err := h.docker(owner).Survey(ctx)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.config.Name, err)
	}
	for _, c := range made {
		if c.After.Runtime != resource.RuntimeDocker {
			f.Session(c.Address, runtime.CheckWorkspace(c.After.Workspace)...)
			continue
		}
		f.Session(c.Address, survey.Check(ctx, *c.After, f.Gone(c))...)
	}
	return nil
}
