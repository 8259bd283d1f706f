package project

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/agent"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/salvage"
	"cosplay/internal/state"
)

// Goal is the purpose of a plan.
type Goal int

// The goals.
const (
	AsConfigured Goal = iota
	NothingLeft       // destroy
	ReadOnly          // drift
	ExpiredEnded      // expire: what has expired is removed, and nothing else is changed
)

// Aim is the purpose and the scope of a plan. Addresses are as users type them; a block's
// name means all its sessions.
type Aim struct {
	Goal    Goal
	Target  []string // only these sessions; without any, all
	Exclude []string // all but these
	Replace []string // replaced also without a change

	Grace resource.Seconds // with ExpiredEnded: between SIGTERM and SIGKILL

	AbandonBaseline bool // release a GPU even if a setting cannot be restored
}

func (a Aim) partial() bool { return len(a.Target)+len(a.Exclude) > 0 || a.Goal == ExpiredEnded }

// removes reports whether the plan only removes sessions.
func (a Aim) removes() bool { return a.Goal == NothingLeft || a.Goal == ExpiredEnded }

// Outlook is a plan with the state and the snapshot that it was computed from.
type Outlook struct {
	Prior resource.Prior
	Live  resource.Live
	Ends  map[resource.Address]resource.End // of the sessions that have one; only of a reading and of a new plan
	Plan  *plan.Plan
}

// unread reports whether a session could not be read, since its engine does not answer.
func (o Outlook) unread(a resource.Address) bool {
	s, _ := o.Prior.Session(a)
	return o.Live.Unread(s.Slice.Host)
}

// Plan computes a plan. Diagnostics have the warnings, and an error for each session that
// does not fit and for each reason why the plan would fail.
func (p *Project) Plan(ctx context.Context, aim Aim) (o Outlook, diags hcl.Diagnostics, err error) {
	if o.Prior, o.Live, err = p.Refresh(ctx); err != nil {
		return o, nil, err
	}
	if !aim.removes() {
		diags = p.askRegistries(ctx, o.Prior, o.Live)
	}
	o.Ends = p.ends(ctx, o.Prior, o.Live)
	options := p.DiffOptions(o.Live)
	options.Ended = Ended(o.Ends, Now())
	maps.DeleteFunc(options.Ended, func(a resource.Address, _ resource.End) bool { return o.unread(a) })
	lost := p.lostStates(o.Prior, o.Live, aim)
	switch {
	case aim.Goal == ReadOnly:
		o.Plan = p.build(ctx, resource.Desired{}, o.Prior, o, options)
		return o, append(diags, lost...), nil
	case lost.HasErrors():
		return o, lost, nil
	}
	intent, wrong, err := p.planChanges(ctx, aim, &o, options)
	if err != nil {
		return o, nil, err
	}
	if diags = append(diags, wrong...); diags.HasErrors() {
		return o, diags, nil // Check needs a complete plan
	}
	facts := planned(o.Plan, o.Live)
	if aim.Goal == AsConfigured && len(p.Intent.Hosts) > 0 { // apply keeps outputs
		o.Plan.Diff.Outputs, wrong = p.outputChanges(o, facts)
		diags = append(diags, wrong...)
	}
	found, err := p.Check(ctx, o.Plan, o.Prior, o.Live)
	return o, slices.Concat(diags, lost, found, intent.EvalChecks(p.everywhere(facts))), err
}

// planChanges adds the plan to an outlook. It returns what of the configuration the plan is for.
func (p *Project) planChanges(ctx context.Context, aim Aim, o *Outlook, options diff.Options) (*config.Intent, hcl.Diagnostics, error) {
	if aim.Goal == NothingLeft && !aim.partial() {
		o.Prior = salvage.Regained(o.Prior, o.Live)
	}
	prior, moved, diags := resolve.Moved(p.Intent, o.Prior)
	scope, err := p.scope(aim, prior, o.Live)
	if err != nil {
		return nil, nil, err
	}
	if aim.Goal == ExpiredEnded {
		options.Ending, options.Grace = p.expiring(prior, options.Ended), aim.Grace
		for _, a := range append(p.Addresses(), prior.Addresses()...) {
			if _, ends := options.Ending[a]; !ends {
				scope.Left[a] = true
			}
		}
		maps.DeleteFunc(options.Ending, func(a resource.Address, _ resource.Expired) bool { return scope.Left[a] })
	}
	options.AbandonBaseline, options.Moved, options.Forgets = aim.AbandonBaseline, moved, resolve.Forgotten(p.Intent, prior)
	options.Left, options.Replace = scope.Left, scope.Replace
	var (
		begin   []plan.Step
		wrong   hcl.Diagnostics
		desired resource.Desired
		key     string // of a state that does not exist yet
	)
	if aim.Goal != NothingLeft {
		options.Down = resolve.Down(p.Intent, prior)
	}
	silent := p.unreachableHosts(prior, o.Live)
	seen := *o // with the containers that import blocks add
	if aim.Goal == AsConfigured {
		prior, begin, wrong = p.imports(ctx, prior, &seen.Live, &options)
		diags = append(diags, wrong...)
		if wrong = resolve.Spread(p.Intent, prior, o.Live, scope.Without(options.Down)); wrong.HasErrors() {
			return p.Intent, slices.Concat(diags, wrong, silent), nil
		}
	}
	intent := resolve.WithoutDown(p.Intent, options.Down)
	if aim.removes() {
		intent = &config.Intent{Hosts: p.Intent.Hosts, Files: p.Intent.Files}
	} else {
		options.Triggers = triggers(p.Intent)
	}
	if aim.Goal == AsConfigured || len(scope.Left) > 0 {
		if desired, key, wrong, err = p.desire(intent, prior.Without(options.Forgets), seen.Live, scope); err != nil {
			return nil, nil, err
		}
		diags = append(diags, wrong...)
		p.giveTTL(desired.Sessions, o.Live)
	}
	o.Plan = p.build(ctx, desired, prior, seen, options)
	o.Plan.Basis.Live = plan.NewBasis(o.Prior, o.Live).Live
	if o.Plan.Key = key; o.Prior.Key == "" && prior.Key != "" {
		o.Plan.Key = prior.Key // an import made one for its container
	}
	o.Plan.Partial, o.Plan.Destroys = aim.partial(), aim.removes()
	o.Plan.Begin(begin)
	sessions := o.Plan.Diff.Sessions
	return intent, slices.Concat(diags, resolve.Past(p.Intent, sessions, prior, Now()), resolve.Guarded(p.Intent, sessions),
		resolve.Renames(intent, sessions), aim.warning(), silent), nil
}

// desire makes the choices that a configuration leaves open. If it has sensitive values
// and the state has no key yet, desire seals them with a new key, which it returns.
func (p *Project) desire(intent *config.Intent, known resource.Prior, live resource.Live, scope resolve.Scope) (desired resource.Desired, key string, diags hcl.Diagnostics, err error) {
	who, err := p.Machine.Person(intent)
	if err != nil {
		return desired, "", nil, err
	}
	if known.Key == "" && slices.ContainsFunc(intent.Sessions, func(s config.Session) bool { return len(s.Secret) > 0 }) {
		key = state.NewKey()
		known.Key = key
	}
	desired, diags = resolve.Desired(intent, who, known, live, scope)
	return desired, key, diags, nil
}

// build computes the difference and orders the steps. In prior, sessions have their new
// addresses; in the outlook's prior, those of the state.
func (p *Project) build(ctx context.Context, desired resource.Desired, prior resource.Prior, o Outlook, options diff.Options) *plan.Plan {
	built := plan.Build(desired, prior, o.Live, options)
	built.Diff.Drift = p.blame(ctx, built.Diff.Drift, o.Prior, o.Live)
	built.Basis = plan.NewBasis(o.Prior, o.Live)
	built.Basis.State, built.Variables, built.Timestamp = p.Store.Path, p.Intent.Saved(), p.timestamp
	return built
}

// DiffOptions are the settings of the hosts that affect a comparison.
func (l *Fleet) DiffOptions(live resource.Live) diff.Options {
	stated, admin := map[string]int{}, map[string]int(nil)
	for _, h := range l.Intent.Hosts {
		if open := l.Machine.Hosts()[h.Name]; open != nil && open.Rooted {
			shown, _ := live.Host(h.Name)
			admin, _ = agent.ClocksOf(shown.Admin.Clocks) // checkRights reports the error
		} else if h.BaselineClockMHz != nil {
			stated[h.Name] = *h.BaselineClockMHz
		}
	}
	return diff.Options{BaselineClockMHz: stated, AdminClockMHz: admin}
}

// there is a path of a session's files on the machine of its host: on another, one in the project's folder is in the folder
// that the project has there.
func (p *Project) there(host, path string) string {
	h := p.Machine.Hosts()[host]
	if h == nil || h.Place.Workspace == "" {
		return path
	}
	inside, err := filepath.Rel(p.Dir, path)
	if err != nil || !filepath.IsLocal(inside) {
		return path
	}
	return filepath.Join(h.Place.Workspace, inside)
}

// triggers are the values of replace_triggered_by, by session.
func triggers(intent *config.Intent) map[resource.Address][]diff.Trigger {
	all := map[resource.Address][]diff.Trigger{}
	for _, s := range intent.Sessions {
		for _, t := range s.Lifecycle.Triggers {
			all[s.Address] = append(all[s.Address], diff.Trigger{Of: t.Of, Attribute: t.Attribute})
		}
	}
	return all
}

// scope finds the sessions that an aim names, in the configuration and in the state.
func (p *Project) scope(aim Aim, prior resource.Prior, live resource.Live) (resolve.Scope, error) {
	all := append(p.Addresses(), prior.Addresses()...)
	slices.SortFunc(all, resource.Address.Compare)
	all = slices.Compact(all)
	target := "--target"
	if aim.Goal == ExpiredEnded {
		target = "expire"
	}
	targeted, noTarget := p.meant(all, target, aim.Target)
	excluded, noExclude := p.meant(all, "--exclude", aim.Exclude)
	replaced, noReplace := p.meant(all, "--replace", aim.Replace)
	if err := cmp.Or(noTarget, noExclude, noReplace); err != nil {
		return resolve.Scope{}, err
	}
	needs := p.needs(prior)
	if aim.Goal == ExpiredEnded { // those that depend on it stay
		needs = nil
	}
	if aim.Goal == NothingLeft { // a destroyed session takes along those that depend on it
		needs = turned(needs)
	}
	follow(targeted, all, needs)
	follow(excluded, all, turned(needs))
	scope := resolve.Scope{Left: map[resource.Address]bool{}, Replace: map[resource.Address]bool{}, Project: p.Name(), Neighbour: p.neighbour, SameFile: sameFile, There: p.there}
	for _, a := range all {
		if len(aim.Target) > 0 && !targeted[a] || excluded[a] {
			scope.Left[a] = true
		}
	}
	for a := range replaced {
		if _, made := prior.Session(a); !made {
			continue // the plan creates it anyway
		}
		if scope.Left[a] {
			return scope, fmt.Errorf("--replace names %s, which --target or --exclude excludes from the plan. Fix: name it with --target too, or remove --replace", a)
		}
		scope.Replace[a] = true
	}
	return scope, p.leaveUnreachable(scope, aim, prior, live)
}

// sameFile reports whether two paths lead to the same file, also one of a symbolic link.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// needs are the blocks that each block's sessions depend on.
func (l *Fleet) needs(prior resource.Prior) map[string][]string {
	needs := map[string][]string{}
	for _, s := range prior.Sessions {
		needs[s.Address.Name] = s.DependsOn
	}
	for _, s := range l.Intent.Sessions {
		needs[s.Address.Name] = s.DependsOn
	}
	return needs
}

// turned is the inverse of a relation.
func turned(needs map[string][]string) map[string][]string {
	by := map[string][]string{}
	for from, all := range needs {
		for _, to := range all {
			by[to] = append(by[to], from)
		}
	}
	return by
}

// follow adds the sessions of the blocks to which a relation leads from those picked.
func follow(picked map[resource.Address]bool, all []resource.Address, to map[string][]string) {
	if len(picked) == 0 {
		return
	}
	seen := map[string]bool{}
	var visit func(from string)
	visit = func(from string) {
		for _, name := range to[from] {
			if !seen[name] {
				seen[name] = true
				visit(name)
			}
		}
	}
	for a := range picked {
		visit(a.Name)
	}
	for _, a := range all {
		picked[a] = picked[a] || seen[a.Name]
	}
}

// meant are the sessions that a flag's values name.
func (l *Fleet) meant(all []resource.Address, flag string, typed []string) (map[resource.Address]bool, error) {
	found := map[resource.Address]bool{}
	for _, one := range typed {
		matches, err := state.Matching(one, all)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, l.OnCluster(err, one))
		}
		for _, a := range matches {
			found[a] = true
		}
	}
	return found, nil
}

// warning states, as Terraform does, that the plan may be incomplete.
func (a Aim) warning() hcl.Diagnostics {
	if len(a.Target)+len(a.Exclude) == 0 || a.Goal == ExpiredEnded {
		return nil
	}
	flag := "--target"
	if len(a.Target) == 0 {
		flag = "--exclude"
	}
	return hcl.Diagnostics{{Severity: hcl.DiagWarning, Summary: flag + " is in effect", Subject: &hcl.Range{},
		Detail: "The plan may not include every change that the configuration asks for. Use this option in exceptional cases: to recover from mistakes, or if an error message suggests it. Run plan without it afterwards."}}
}
