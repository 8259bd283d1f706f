package project

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/state"
)

// planned is what is known of the sessions before an apply: all choices, and the live
// values of what stays of them.
func planned(p *plan.Plan, live resource.Live) config.Lives {
	return func(a resource.Address) (config.LiveSession, bool) {
		i, listed := slices.BinarySearchFunc(p.Diff.Sessions, a, func(c diff.SessionChange, a resource.Address) int { return c.Address.Compare(a) })
		if listed && p.Diff.Sessions[i].Before != nil && p.Diff.Sessions[i].After != nil {
			c := &p.Diff.Sessions[i]
			s := *c.Before
			s.Session = *c.After
			if c.Slice != diff.Keep {
				s.Handle = nil
			}
			if c.Body != diff.Keep && c.Body != diff.Refit {
				s.Body = nil
			}
			return madeFacts(s, live), true
		}
		i, wanted := slices.BinarySearchFunc(p.Desired.Sessions, a, func(s resource.Session, a resource.Address) int { return s.Address.Compare(a) })
		if !wanted {
			return config.LiveSession{}, false
		}
		return factsOf(p.Desired.Sessions[i], live), true
	}
}

// made are the values of the sessions of a state.
func made(prior resource.Prior, live resource.Live) config.Lives {
	return func(a resource.Address) (config.LiveSession, bool) {
		s, there := prior.Session(a)
		return madeFacts(s, live), there
	}
}

func factsOf(s resource.Session, live resource.Live) config.LiveSession {
	facts := config.LiveSession{Session: s}
	if g, there := live.GPU(s.Slice.Host, s.Slice.GPU); there {
		index := g.Index // a copy, so that the rest of the GPU is not kept in memory
		facts.GPUIndex = &index
	}
	if !s.Spec.IsZero() {
		facts.Container = s.BodyName()
	}
	return facts
}

func madeFacts(s resource.PriorSession, live resource.Live) config.LiveSession {
	facts := factsOf(s.Session, live)
	if s.Handle != nil {
		facts.SliceUUID = s.Handle.UUID
	}
	if s.Body != nil {
		facts.State, facts.SSHPort = s.Body.State, s.Body.SSHPort
	}
	return facts
}

// Outputs are the outputs of the configuration with the values of a state's sessions.
func (l *Fleet) Outputs(prior resource.Prior, live resource.Live) ([]config.Output, hcl.Diagnostics) {
	return l.Intent.EvalOutputs(made(prior, live))
}

// Checks evaluates the checks of the configuration with the values of a state's sessions.
// A failed check is a warning.
func (l *Fleet) Checks(prior resource.Prior, live resource.Live) hcl.Diagnostics {
	return l.Intent.EvalChecks(l.everywhere(made(prior, live)))
}

// noteOutputs adds the outputs to a state: of a sensitive output only a hash, and no
// output whose value is unknown because a session does not exist. A state without
// sessions has no outputs.
func (l *Fleet) noteOutputs(planned *plan.Plan, prior resource.Prior, live resource.Live) resource.Prior {
	if planned.Destroys && len(prior.Sessions) == 0 {
		prior.Outputs = nil
		return prior
	}
	all, _ := l.Outputs(prior, live)
	known, _ := noted(all, prior.Key)
	for _, o := range all {
		if kept := keptOutput(planned, prior, o.Name); o.Open && kept != nil {
			known = append(known, *kept)
		}
	}
	slices.SortFunc(known, func(a, b resource.Output) int { return strings.Compare(a.Name, b.Name) })
	prior.Outputs = known
	return prior
}

// keptOutput is the value in the plan or in the state of an output that cannot be
// evaluated because a variable has no value; nil if neither has it.
func keptOutput(planned *plan.Plan, prior resource.Prior, name string) *resource.Output {
	for _, c := range planned.Diff.Outputs {
		switch {
		case c.Name != name:
		case c.After == nil && c.Sealed == "":
			return nil
		default:
			return &resource.Output{Name: name, Sensitive: c.Sensitive, Value: c.After, Sealed: c.Sealed}
		}
	}
	for _, o := range prior.Outputs {
		if o.Name == name {
			return &o
		}
	}
	return nil
}

// checkOutputs checks that the outputs of a saved plan are in it or can be evaluated. Of
// a sensitive value the plan has only a hash.
func (l *Fleet) checkOutputs(saved *plan.Plan, prior resource.Prior, live resource.Live) error {
	if len(saved.Diff.Outputs) == 0 {
		return nil
	}
	all, _ := l.Intent.EvalOutputs(planned(saved, live))
	changes := func(name string) bool {
		return slices.ContainsFunc(saved.Diff.Outputs, func(c diff.OutputChange) bool { return c.Name == name })
	}
	for _, o := range all {
		if o.Open && changes(o.Name) && keptOutput(saved, prior, o.Name) == nil {
			return fmt.Errorf("output %s is known only after the apply, and needs a sensitive value, which a saved plan does not contain. Nothing was changed. Fix: give apply %s",
				o.Name, config.GiveAgain(l.Intent.Missed))
		}
	}
	return nil
}

// sameOutputs checks that outputs have the values with which a plan was made, as far as they are known: a sensitive
// variable, whose value a saved plan does not contain, may have another.
func (l *Fleet) sameOutputs(saved *plan.Plan, prior resource.Prior, live resource.Live) error {
	if saved.Destroys {
		return nil
	}
	all, _ := l.Intent.EvalOutputs(planned(saved, live))
	known, _ := noted(all, cmp.Or(prior.Key, saved.Key))
	for _, o := range known {
		if was := keptOutput(saved, prior, o.Name); was != nil && !diff.SameOutput(*was, o) {
			return l.otherValue("output " + o.Name)
		}
	}
	return nil
}

// noted are outputs as a state stores them; unknown are those without a value.
func noted(all []config.Output, key string) (known, unknown []resource.Output) {
	for _, o := range all {
		if !o.Value.IsWhollyKnown() {
			unknown = append(unknown, resource.Output{Name: o.Name, Sensitive: o.Sensitive})
			continue
		}
		written, err := ctyjson.Marshal(o.Value, cty.DynamicPseudoType)
		if err != nil {
			continue // a capsule, which no expression can produce
		}
		one := resource.Output{Name: o.Name, Sensitive: o.Sensitive}
		if o.Sensitive {
			one.Sealed = sealed(key, "output", o.Name+"\x00"+string(written))
		} else {
			one.Value = json.RawMessage(written)
		}
		known = append(known, one)
	}
	return known, unknown
}

// outputChanges are the outputs whose values a plan changes, and the errors of those that cannot be evaluated.
func (l *Fleet) outputChanges(o Outlook, facts config.Lives) ([]diff.OutputChange, hcl.Diagnostics) {
	all, diags := l.Intent.EvalOutputs(facts)
	if o.Prior.Key == "" && o.Plan.Key == "" && slices.ContainsFunc(all, func(o config.Output) bool { return o.Sensitive }) {
		o.Plan.Key = state.NewKey()
	}
	known, unknown := noted(all, cmp.Or(o.Prior.Key, o.Plan.Key))
	return diff.Outputs(o.Prior.Outputs, known, unknown, o.Plan.Diff.Changes()), diags
}

// keepOutputs updates the outputs in the state if the plan has no steps. The caller has
// the lock.
func (p *Project) keepOutputs(planned *plan.Plan, prior resource.Prior, live resource.Live) (resource.Prior, error) {
	next := prior
	if next.Lineage == "" {
		next.Lineage, next.Key = state.NewLineage(), cmp.Or(planned.Key, state.NewKey())
	}
	next = p.noteOutputs(planned, next, live)
	if slices.EqualFunc(prior.Outputs, next.Outputs, diff.SameOutput) {
		return prior, nil
	}
	return p.Store.Save(next)
}

// Eval evaluates one expression.
type Eval func(typed string) (config.Output, *hcl.File, hcl.Diagnostics)

// Console evaluates expressions with the current values of the state's sessions, which it
// reads once. It reads hosts only if the state has sessions.
func (p *Project) Console(ctx context.Context) (Eval, error) {
	prior, _, err := p.Remembered()
	if err != nil {
		return nil, err
	}
	var live resource.Live
	if len(prior.Sessions) > 0 {
		seen, err := p.Peek(ctx)
		if err != nil {
			return nil, err
		}
		prior, live = seen.Prior, seen.Live
	}
	facts := made(prior, live)
	return func(typed string) (config.Output, *hcl.File, hcl.Diagnostics) { return p.Intent.Eval(typed, facts) }, nil
}
