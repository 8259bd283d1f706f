package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Check reports everything that would make a step of the plan fail, and changes nothing.
// Until the state is locked for an apply, a problem that may be solved by then, like
// missing rights of the user, is a warning.
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
	p.checkTTL(flight)
	owner := withImported(prior, planned).Owner()
	owner.Key = cmp.Or(owner.Key, planned.Key)
	for _, c := range p.Intent.Hosts {
		if live.Unreachable(c.Name) {
			continue
		}
		h, err := p.Machine.Open(c)
		if shown, _ := live.Host(c.Name); err == nil && shown.Silent == "" {
			h, err = p.Machine.Connect(ctx, c, prior)
		}
		if err != nil {
			return nil, err
		}
		p.checkRights(ctx, flight, h)
		p.checkQueue(flight, c, Outlook{Prior: prior, Live: live, Plan: planned})
		if err := checkSessions(ctx, flight, h, owner); err != nil {
			return nil, err
		}
	}
	return flight.Diagnostics(), nil
}

// checkRoom checks whether apply can write journal and state. Plan writes neither.
func (f *Files) checkRoom(flight *preflight.Flight, needed state.Room) error {
	if f.Locked() {
		return f.Store.Writable(needed)
	}
	dir := filepath.Dir(f.Store.Path)
	err := durable.CanWriteIn(dir)
	if info, there := os.Stat(dir); err == nil && there == nil && info.IsDir() {
		err = f.Store.Writable(needed)
	}
	if err != nil {
		flight.Host("", preflight.Problem{Warning: true, Summary: "apply could not write its state", Advice: prose.AdviceOf(err)})
	}
	return nil
}

// checkRights checks whether the user may change the GPUs of a host and its ledger.
func (p *Project) checkRights(ctx context.Context, f *preflight.Flight, h *machine.Host) {
	if !f.Changes(h.Config.Name) {
		return
	}
	if h.Rooted {
		daemons, err := h.Agent.MayChange(ctx)
		if err != nil {
			advice := prose.AdviceOf(err)
			advice.Fix += ". Or ask an admin to create the slices, and write manage = [] to change nothing"
			f.Host(h.Config.Name, preflight.Problem{Attribute: "manage", Warning: !p.Locked(), Advice: advice,
				Summary: fmt.Sprintf("you have no permission to change the GPUs of host %q", h.Config.Name)})
		}
		f.MPS(h.Config.Name, daemons)
		checkBaselineClock(f, h)
		checkPolicy(f, h, !p.Locked())
		return // the root agent writes the ledger
	}
	if _, err := h.Agent.MayChange(ctx); err != nil {
		f.Host(h.Config.Name, preflight.Problem{Warning: !p.Locked(), Advice: prose.AdviceOf(err),
			Summary: fmt.Sprintf("the ledger of host %q cannot be written", h.Config.Name)})
	}
}

// checkPolicy reports the first step that the root agent would refuse by the rules of the host's admin. A user who may
// not read the rules learns it from the agent.
func checkPolicy(f *preflight.Flight, h *machine.Host, warn bool) {
	live, _ := f.Live.Host(h.Config.Name)
	policy, unread := agent.PolicyOf(live.Admin.Rules)
	who := h.Subject()
	has, planned := agent.SlicesOf(live.Ledger, who.UID), map[string]int{}
	for _, step := range f.Plan.Steps {
		var wish agent.Wish
		host := ""
		switch op := step.Do.Op.(type) {
		case plan.TakeGPU:
			host, wish = op.Host, agent.Wish{GPU: op.GPU, Whole: op.Whole}
		case plan.SetGPU:
			host, wish = op.Host, agent.Wish{GPU: op.GPU, Setting: &op.Setting}
			if op.Restore {
				continue
			}
		case plan.CreateSlice:
			host, wish = op.Session.Slice.Host, agent.Wish{GPU: op.Session.Slice.GPU, Slice: true, Before: planned}
		case plan.DestroySlice:
			has[op.Slice.GPU]--
		default: // the rules are about changes of GPUs
		}
		if host != h.Config.Name {
			continue
		}
		err := unread
		if err == nil {
			err = policy.Permit(who, wish, has)
		}
		if wish.Slice {
			planned[wish.GPU]++
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			f.Host(h.Config.Name, preflight.Problem{Attribute: "manage", Warning: warn, Advice: prose.AdviceOf(err),
				Summary: fmt.Sprintf("the rules of host %q do not permit all of the plan", h.Config.Name)})
			return
		}
	}
}

// checkBaselineClock warns of a clock lock that the configuration states and the root
// agent does not believe.
func checkBaselineClock(f *preflight.Flight, h *machine.Host) {
	stated := h.Config.BaselineClockMHz
	live, _ := f.Live.Host(h.Config.Name)
	admin, err := agent.ClocksOf(live.Admin.Clocks)
	if err != nil {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true, Summary: "the admin's list of clock locks cannot be used", Advice: prose.AdviceOf(err)})
		return
	}
	if stated == nil || slices.Contains(slices.Collect(maps.Values(admin)), *stated) {
		return
	}
	f.Host(h.Config.Name, preflight.Problem{Attribute: "baseline_clock", Warning: true,
		Summary: fmt.Sprintf("baseline_clock of host %q is not used", h.Config.Name),
		Advice: prose.Advice{What: "NVML cannot read a clock lock, so the root agent believes only the admin, and destroy removes the lock",
			Fix: fmt.Sprintf("ask an admin to add a line to %s: the GPU's UUID and %d", agent.BaselineClocks, *stated)}})
}

// checkSessions checks what the sessions need whose bodies the plan creates. Without such
// sessions it opens no runtime.
func checkSessions(ctx context.Context, f *preflight.Flight, h *machine.Host, owner resource.Owner) error {
	made := f.Made(h.Config.Name)
	if len(made) == 0 {
		return nil
	}
	if h.Config.Connect != "" {
		// the machine over there checks its own
	} else if err := durable.CanWriteIn(filepath.Dir(h.Folders)); err != nil {
		f.Host(h.Config.Name, preflight.Problem{
			Summary: "the session folders cannot be created",
			Advice:  prose.Advice{What: err.Error(), Fix: "remove what blocks them, or use another project folder (--chdir)"}})
	}
	if h.CUDA() == "" {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "nvml", Warning: true,
			Summary: fmt.Sprintf("host %q has no CUDA driver", h.Config.Name),
			Advice:  prose.Advice{What: machine.NoCUDA, Fix: "install libcuda.so.1 of the same driver (apt-get install libcuda1)"}})
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

// checkPulls asks the registries of the images that the plan pulls, since a pull may come after changes to the GPUs.
func checkPulls(ctx context.Context, f *preflight.Flight, host string, in runtime.Runtime, made []diff.SessionChange) {
	puller, is := in.(runtime.Puller)
	if !is {
		return
	}
	for _, step := range f.Plan.Steps {
		op, is := step.Do.Op.(plan.EnsureImage)
		if !is || op.Host != host || op.How != plan.PullImage {
			continue
		}
		_, err := puller.Offered(ctx, op.Image)
		if err == nil {
			continue
		}
		for _, c := range made {
			if c.After.Spec.Image == op.Image {
				f.Session(c.Address, preflight.Problem{Attribute: "image", Warning: errors.Is(err, context.DeadlineExceeded),
					Summary: fmt.Sprintf("the image %s cannot be pulled", op.Image), Advice: prose.AdviceOf(err)})
			}
		}
	}
}

// checkRuntime checks the sessions that the plan creates in one runtime.
func checkRuntime(ctx context.Context, f *preflight.Flight, h *machine.Host, name string, in runtime.Runtime, made []diff.SessionChange) error {
	if in == nil {
		f.Host(h.Config.Name, preflight.Problem{Attribute: "runtime",
			Summary: fmt.Sprintf("sessions of host %q run %s now", h.Config.Name, resource.RuntimeNamed(h.NewRuntime()).Where),
			Advice: prose.Advice{What: fmt.Sprintf("when the plan was made they ran %s", resource.RuntimeNamed(name).Where),
				Fix: fmt.Sprintf("run cosplay plan again, or write runtime = %q in the host block", name)}})
		return nil
	}
	survey, err := in.Survey(ctx)
	if err != nil {
		return err
	}
	there := ""
	if h.Config.Connect != "" {
		there = " on host " + h.Config.Name
	}
	for _, problem := range survey.Host {
		f.Host(h.Config.Name, problem)
	}
	checkPulls(ctx, f, h.Config.Name, in, made)
	for _, c := range made {
		for _, problem := range survey.Check(ctx, *c.After, f.RemovedBefore(c)) {
			problem.Summary += there
			f.Session(c.Address, problem)
		}
	}
	return nil
}
