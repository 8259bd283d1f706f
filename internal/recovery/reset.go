// Package recovery restores what a project lost and adds existing objects to its state:
// reset, state rebuild and import. It finds the objects of the project from ledgers, labels
// and folders, and does not rely on the state.
package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/state"
	"cosplay/internal/terminal"
)

// ResetOptions select what to reset.
type ResetOptions struct {
	GPU         string // index, UUID or PCI address; "" is all
	Host        string // "" is all
	Holder      string // first characters of the lineage of a project whose state is lost; "" is this project
	AllProjects bool   // also the user's other projects; for root, those of all users

	AbandonBaseline bool // release a GPU even if a setting cannot be restored
}

// Reset is what a reset removes, by project.
type Reset struct {
	State    StateView
	Rounds   []Round
	Guarded  []string // names of sessions with prevent_destroy
	Failures []error  // of what could not be read
	Killed   []string // names of killed runs in this folder

	options ResetOptions
}

// Round is one project's part of a reset, with the objects of the project that the reset removes.
type Round struct {
	Recovered
	Holder resource.Holder
	Own    bool
	Plan   *plan.Plan

	claim claim
	rest  resource.Prior // the objects that the reset does not remove
}

// PlanReset finds what a reset removes. It does not need the state.
func PlanReset(ctx context.Context, p *project.Project, o ResetOptions) (*Reset, error) {
	r := &Reset{options: o}
	if o.Holder == "" && o.GPU == "" && o.Host == "" {
		r.Killed = p.Killed()
	}
	live, failures := p.ReadHosts(ctx)
	r.Failures = failures
	r.State = stateView(p, live)
	chosen, err := chooser(p, o, live)
	if err != nil {
		return nil, err
	}
	all, err := claims(p, r.State, live, o)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		round, failed := round(ctx, p, one, live, chosen, nil, o.AbandonBaseline)
		r.Failures = append(r.Failures, failed...)
		r.Rounds = append(r.Rounds, round)
		r.Guarded = append(r.Guarded, guarded(p, round)...)
		live = after(live, round)
	}
	r.Failures = distinctErrors(r.Failures)
	return r, nil
}

// guarded are the sessions of a round with prevent_destroy: in their blocks, or in the
// state if a session has no block here.
func guarded(p *project.Project, r Round) []string {
	var names []string
	for _, c := range r.Plan.Diff.Sessions {
		keeps := c.Before != nil && c.Before.PreventDestroy
		if s := p.Intent.Session(c.Address); r.Own && s != nil {
			keeps = s.Lifecycle.PreventDestroy
		}
		if c.Action == diff.Delete && keeps {
			names = append(names, c.Address.String())
		}
	}
	return names
}

// claims are the claims of the chosen projects. This project is last, so that it restores
// the settings of a GPU that the others leave.
func claims(p *project.Project, v StateView, live resource.Live, o ResetOptions) ([]claim, error) {
	own := ownClaims(p, v, live)
	if o.Holder != "" {
		h, err := pickHolder(project.Holders(live), o.Holder)
		switch {
		case err != nil:
			return nil, err
		case !project.IsLost(h) && !project.IsReplaced(h): // the user named this project, so its file is read
			where := ""
			if project.Elsewhere(h) {
				where = " on another machine"
			}
			return nil, fmt.Errorf("the project of %s still exists: its state is %s%s. Remove its sessions with that state: cosplay --state %s destroy", h.User, h.State, where, terminal.ShellWord(h.State))
		}
		if i := slices.IndexFunc(own, func(o claim) bool { return o.Holder.Lineage == h.Lineage }); i >= 0 {
			return own[i : i+1], project.MayRelease(h) // its state had the path of this one
		}
		return []claim{otherClaim(h)}, project.MayRelease(h)
	}
	var all []claim
	for _, h := range project.Holders(live) {
		ours := slices.ContainsFunc(own, func(o claim) bool { return o.Holder.Lineage == h.Lineage })
		if o.AllProjects && !ours && !project.Elsewhere(h) && project.MayRelease(h) == nil {
			all = append(all, otherClaim(h))
		}
	}
	return append(all, own...), nil
}

// chooser selects the GPUs that the options name.
func chooser(p *project.Project, o ResetOptions, live resource.Live) (func(host, gpu string) bool, error) {
	onHost := func(host string) bool { return o.Host == "" || o.Host == host }
	if o.Host != "" {
		if _, err := p.Host(o.Host); err != nil {
			names := prose.Each(p.Intent.Hosts, func(h config.Host) string { return h.Name })
			return nil, fmt.Errorf("there is no host %q that could be reset; there are %s", o.Host, cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	if o.GPU == "" {
		return func(host, _ string) bool { return onHost(host) }, nil
	}
	selector, err := config.ParseGPU(o.GPU)
	if err != nil {
		return nil, err
	}
	var found []resource.GPU
	for _, h := range live.Hosts {
		for _, g := range h.GPUs {
			if onHost(h.Name) && selector.Matches(g) {
				found = append(found, g)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no GPU %s; cosplay status lists all GPUs", o.GPU)
	case 1:
		return func(host, gpu string) bool { return host == found[0].Host && gpu == found[0].UUID }, nil
	}
	return nil, fmt.Errorf("GPU %s could be that of %s or of %s; name the host with --host, or the GPU by its UUID", o.GPU, found[0].Host, found[1].Host)
}

// round plans the reset of one project. It plans as destroy does, from what recovery found
// instead of the state.
func round(ctx context.Context, p *project.Project, o claim, live resource.Live, chosen func(host, gpu string) bool, agreed []string, abandon bool) (Round, []error) {
	has, failures := recoverClaim(ctx, p, o, live, agreed)
	r := Round{Recovered: has, Holder: o.Holder, Own: o.Own, claim: o}
	r.Prior, r.rest = split(has.Prior, func(host, gpu string) bool {
		_, readable := live.Host(host)
		return readable && chosen(host, gpu)
	})
	own := bodies(r.Prior)
	r.Unproven = prose.Only(has.Unproven, func(c resource.Body) bool { return own[c.ID] })
	options := p.DiffOptions(r.Live)
	options.AbandonBaseline = abandon
	r.Plan = plan.Build(resource.Desired{}, r.Prior, r.Live, options)
	return r, failures
}

// split divides the objects of a project by whether their GPU is chosen, or one of their GPUs.
func split(prior resource.Prior, chosen func(host, gpu string) bool) (part, rest resource.Prior) {
	part, rest = prior.Clone(), prior.Clone()
	part.GPUs = slices.DeleteFunc(part.GPUs, func(g resource.PriorGPU) bool { return !chosen(g.Host, g.UUID) })
	rest.GPUs = slices.DeleteFunc(rest.GPUs, func(g resource.PriorGPU) bool { return chosen(g.Host, g.UUID) })
	ends := func(s resource.PriorSession) bool {
		return slices.ContainsFunc(s.On(), func(g resource.GPUKey) bool { return chosen(g.Host, g.UUID) })
	}
	part.Sessions = slices.DeleteFunc(part.Sessions, func(s resource.PriorSession) bool { return !ends(s) })
	rest.Sessions = slices.DeleteFunc(rest.Sessions, ends)
	return part, rest
}

// join is the inverse of split.
func join(part, rest resource.Prior) resource.Prior {
	all := part.Clone()
	all.GPUs, all.Sessions = append(all.GPUs, rest.GPUs...), append(all.Sessions, rest.Sessions...)
	slices.SortFunc(all.GPUs, resource.PriorGPU.Compare)
	slices.SortFunc(all.Sessions, func(a, b resource.PriorSession) int { return a.Address.Compare(b.Address) })
	return all
}

// after is the snapshot as it will be after a round, for the plan of the next one.
func after(live resource.Live, r Round) resource.Live {
	hosts, placements := slices.Clone(live.Hosts), r.Prior.Placements()
	for i := range hosts {
		h := &hosts[i]
		h.GPUs, h.Ledger = slices.Clone(h.GPUs), slices.Clone(h.Ledger)
		for n := range h.GPUs {
			g := &h.GPUs[n]
			g.Slices = diff.Foreign(*g, placements)
		}
		for n := range h.Ledger {
			page := &h.Ledger[n]
			if _, taken := r.Prior.GPU(h.Name, page.UUID); taken {
				page.Holders = page.Others(r.Holder.Lineage)
			}
		}
		h.Ledger = slices.DeleteFunc(h.Ledger, func(page resource.Page) bool { return len(page.Holders) == 0 })
	}
	return resource.Live{Hosts: hosts}
}

// Idle reports whether there is nothing to remove and no file to move aside.
func Idle(p *project.Project, r *Reset) bool {
	for _, path := range []string{p.Store.Path, p.Store.BackupPath(), p.Store.JournalPath()} {
		if _, err := os.Lstat(path); err == nil && r.options.Holder == "" {
			return false
		}
	}
	return len(r.Killed) == 0 && !slices.ContainsFunc(r.Rounds, func(one Round) bool { return one.Plan.Effects() > 0 })
}

// Done is the result of a round.
type Done struct {
	Round  Round
	Result apply.Result
	Err    error
}

// CarryOut removes what the user was shown, and no other container.
func CarryOut(ctx context.Context, p *project.Project, r *Reset, progress func(apply.Event), parallelism int) []Done {
	var all []Done
	for _, shown := range r.Rounds {
		if ctx.Err() == nil {
			all = append(all, carryOut(ctx, p, shown, r.options, progress, parallelism))
		} else {
			all = append(all, notDone(shown, nil))
		}
	}
	return all
}

func carryOut(ctx context.Context, p *project.Project, shown Round, o ResetOptions, progress func(apply.Event), parallelism int) Done {
	if !shown.Own {
		lock, err := lockOther(ctx, shown.Holder)
		if err != nil {
			return notDone(shown, err)
		}
		if lock != nil {
			defer func() { _ = lock.Release() }()
		}
	}
	live, _ := p.ReadHosts(ctx)
	chosen, err := chooser(p, o, live)
	if err != nil {
		return notDone(shown, err)
	}
	agreed := []string{}
	for _, c := range shown.Unproven {
		agreed = append(agreed, c.ID)
	}
	now, failures := round(ctx, p, shown.claim, live, chosen, agreed, o.AbandonBaseline)
	if len(now.Plan.Steps) == 0 {
		return notDone(now, errors.Join(failures...))
	}
	run := apply.Run{Hosts: map[string]apply.Host{}, Journal: noJournal{}, Progress: progress, Parallelism: parallelism, GoOn: true, Audit: p.Audit(now.Prior.Lineage),
		Observe: func(ctx context.Context) (resource.Live, error) {
			live, failures := p.ReadHosts(ctx)
			remains, _, more := remains(ctx, p, now.claim, live)
			return withContainers(live, remains), errors.Join(append(failures, more...)...)
		}}
	for _, host := range live.Hosts {
		h := p.HostOf(now.claim.Lineage, live, host.Name)
		p.Machine.Share(h)
		run.Hosts[host.Name] = h.ForApply(now.Prior.Owner(), now.Holder)
	}
	result, err := run.Execute(ctx, now.Plan, now.Prior, now.Live)
	return Done{now, result, errors.Join(append(failures, err)...)}
}

// notDone is the result of a round without a step.
func notDone(r Round, err error) Done {
	return Done{Round: r, Result: apply.Result{Prior: r.Prior}, Err: err}
}

// noJournal writes nothing: after an interrupted reset, the next one finds what remains in
// ledgers, labels and folders again.
type noJournal struct{}

func (noJournal) Write(...any) error { return nil }

// lockOther takes the lock of another project, so that it cannot change what the reset
// removes. A project without a folder has no lock.
func lockOther(ctx context.Context, h resource.Holder) (*durable.Lock, error) {
	store := state.Store{Path: h.State}
	if _, err := os.Stat(store.Path); err != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, project.RecoveryWait)
	defer cancel()
	return durable.Acquire(ctx, store.LockPath(), "reset", nil)
}

// Settle leaves this project with a correct state: it moves the old files aside, and
// writes a state with what was not removed. It returns the paths of the moved files, and
// whether there is a state now.
func Settle(p *project.Project, r *Reset, all []Done) (aside []string, left bool, err error) {
	if r.options.Holder != "" || r.State.unclear && len(r.Failures) > 0 {
		return nil, false, nil
	}
	p.RemoveShared(resource.Prior{})
	main := all[len(all)-1]
	remaining := join(main.Result.Prior, main.Round.rest)
	if aside, err = p.Store.SetAside("reset"); err != nil {
		return aside, false, err
	}
	if len(remaining.GPUs) == 0 && len(remaining.Sessions) == 0 {
		return aside, false, nil
	}
	_, err = write(p, remaining, r.State)
	return aside, true, err
}

// write writes a recovered state where no file exists.
func write(p *project.Project, prior resource.Prior, v StateView) (resource.Prior, error) {
	prior.Serial = max(prior.Serial, v.words.Serial)
	if prior.Lineage == "" {
		prior.Lineage = state.NewLineage()
	}
	prior.LastRun = prior.Serial + 1
	return p.Store.Save(prior)
}

// distinctErrors drops errors with equal text.
func distinctErrors(all []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(err error) bool {
		again := seen[err.Error()]
		seen[err.Error()] = true
		return again
	})
}

// pickHolder finds a project by the first characters of its lineage.
func pickHolder(all []resource.Holder, prefix string) (resource.Holder, error) {
	found := prose.Only(all, func(h resource.Holder) bool { return prefix != "" && strings.HasPrefix(h.Lineage, prefix) })
	switch len(found) {
	case 0:
		return resource.Holder{}, fmt.Errorf("no project %q holds a GPU; cosplay status lists the holders", prefix)
	case 1:
		return found[0], nil
	}
	return resource.Holder{}, fmt.Errorf("%q could be %s or %s; type more of the lineage", prefix, found[0].Lineage, found[1].Lineage)
}
