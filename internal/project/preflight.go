package project

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/plan"
	"cosplay/internal/preflight"
	"cosplay/internal/prose"
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
		h, err := p.Machine.Connect(ctx, c, prior)
		if err != nil {
			return nil, err
		}
		p.checkRights(ctx, flight, h)
		if err := checkSessions(ctx, flight, h, prior.Owner()); err != nil {
			return nil, err
		}
	}
	return flight.Diagnostics(), nil
}

// checkRoom looks whether journal and state can be written. Plan itself writes
// neither.
func (p *Project) checkRoom(f *preflight.Flight, needed state.Room) error {
	if p.Locked() {
		return p.Store.Writable(needed)
	}
	dir := filepath.Dir(p.Store.Path)
	err := durable.CanWriteIn(dir)
	if info, there := os.Stat(dir); err == nil && there == nil && info.IsDir() {
		err = p.Store.Writable(needed)
	}
	if err != nil {
		f.Host("", preflight.Problem{Warning: true, Summary: "apply could not write its state", Detail: prose.Sentence(err.Error())})
	}
	return nil
}

// checkRights looks whether the GPUs of a host may be changed, and whether that
// can be written into its ledger.
func (p *Project) checkRights(ctx context.Context, f *preflight.Flight, h *machine.Host) {
	if !f.Changes(h.Config.Name) {
		return
	}
	if h.Rooted {
		if err := h.Agent.MayChange(ctx); err != nil {
			f.Host(h.Config.Name, preflight.Problem{Attribute: "manage", Warning: !p.Locked(),
				Summary: fmt.Sprintf("you cannot have the GPUs of host %q changed", h.Config.Name),
				Detail:  err.Error() + ". Or have an admin make the slices, and write manage = [] to change nothing."})
		}
		checkBaselineClock(f, h)
		return // root's agent keeps the ledger
	}
	if dir := h.LedgerDir(); dir != "" {
		if err := durable.CanWriteIn(filepath.Join(dir, "ledger")); err != nil {
			f.Host(h.Config.Name, preflight.Problem{Warning: !p.Locked(),
				Summary: fmt.Sprintf("the ledger of host %q cannot be written", h.Config.Name),
				Detail:  prose.Sentence(err.Error()) + fmt.Sprintf(" The baselines of its GPUs are kept there, so nothing is changed without. Make %s writable.", dir)})
		}
	}
}

// checkBaselineClock warns of a clock lock that the configuration states and root's
// agent does not believe.
func checkBaselineClock(f *preflight.Flight, h *machine.Host) {
	stated := h.Config.BaselineClockMHz
	admin, err := agent.AdminClocks()
	if err != nil {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true, Summary: "the admin's list of clock locks cannot be used", Detail: prose.Sentence(err.Error())})
		return
	}
	if stated == nil || slices.Contains(slices.Collect(maps.Values(admin)), *stated) {
		return
	}
	f.Host(h.Config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true,
		Summary: fmt.Sprintf("baseline_clock of host %q is not used", h.Config.Name),
		Detail: fmt.Sprintf("NVML cannot read a clock lock, so the root agent believes the admin alone, and destroy lifts the lock. Fix: let an admin add a line to %s: the GPU's UUID and %d.",
			agent.BaselineClocks, *stated)})
}

// checkSessions looks at what the sessions need whose containers are to be made.
// Where there are none, nobody is asked.
func checkSessions(ctx context.Context, f *preflight.Flight, h *machine.Host, owner resource.Owner) error {
	made := f.Made(h.Config.Name)
	if len(made) == 0 {
		return nil
	}
	if err := durable.CanWriteIn(filepath.Dir(h.Folders)); err != nil {
		f.Host(h.Config.Name, preflight.Problem{
			Summary: "the session folders cannot be made",
			Detail:  prose.Sentence(err.Error()) + " Make way for them, or use another project folder (--chdir)."})
	}
	if h.CUDA() == "" {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "nvml", Warning: true,
			Summary: fmt.Sprintf("host %q has no CUDA driver", h.Config.Name),
			Detail:  prose.Sentence(machine.NoCUDA) + " Install that of the same driver (apt-get install libcuda1)."})
	}
	in := map[string][]diff.SessionChange{}
	for _, c := range made {
		in[c.After.Runtime] = append(in[c.After.Runtime], c)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if err := checkRuntime(ctx, f, h, name, h.Runtimes(owner)[name], in[name]); err != nil {
			return fmt.Errorf("host %s: %w", h.Config.Name, err)
		}
	}
	return nil
}

// checkRuntime checks the sessions that are to be created in one runtime.
func checkRuntime(ctx context.Context, f *preflight.Flight, h *machine.Host, name string, in runtime.Runtime, made []diff.SessionChange) error {
	if in == nil {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "runtime",
			Summary: fmt.Sprintf("sessions of host %q run %s now", h.Config.Name, resource.RuntimeNamed(h.NewRuntime()).Where),
			Detail:  fmt.Sprintf("When the plan was made they ran %s. Run cosplay plan again, or write runtime = %q in the host block.", resource.RuntimeNamed(name).Where, name)})
		return nil
	}
	survey, err := in.Survey(ctx)
	if err != nil {
		return err
	}
	for _, problem := range survey.Host {
		f.Host(h.Config.Name, problem)
	}
	for _, c := range made {
		f.Session(c.Address, survey.Check(ctx, *c.After, f.RemovedBefore(c))...)
	}
	return nil
}
