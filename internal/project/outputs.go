package project

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

// planned is what is known of the sessions before a plan is carried out: all that
// is decided, and of those that stay as they are what they turned out to be.
func planned(p *plan.Plan, live resource.Live) map[resource.Address]config.LiveSession {
	facts := make(map[resource.Address]config.LiveSession, len(p.Desired.Sessions))
	for _, c := range p.Diff.Sessions {
		if c.After == nil || c.Before == nil || c.Container != diff.Keep || c.Slice != diff.Keep {
			continue
		}
		s := *c.Before
		s.Session = *c.After
		facts[c.Address] = madeFacts(s, live)
	}
	for _, s := range p.Desired.Sessions {
		if _, stays := facts[s.Address]; !stays {
			facts[s.Address] = factsOf(s, live)
		}
	}
	return facts
}

// made is what the sessions of a state turned out to be.
func made(prior resource.Prior, live resource.Live) map[resource.Address]config.LiveSession {
	facts := map[resource.Address]config.LiveSession{}
	for _, s := range prior.Sessions {
		facts[s.Address] = madeFacts(s, live)
	}
	return facts
}

func factsOf(s resource.Session, live resource.Live) config.LiveSession {
	facts := config.LiveSession{Session: s}
	if g, there := live.GPU(s.Slice.Host, s.Slice.GPU); there {
		index := g.Index // alone: the rest of a GPU is large
		facts.GPUIndex = &index
	}
	if !s.Spec.IsZero() {
		facts.Container = resource.BodyName(s.ID)
	}
	return facts
}

func madeFacts(s resource.PriorSession, live resource.Live) config.LiveSession {
	facts := factsOf(s.Session, live)
	if s.Handle != nil {
		facts.SliceUUID = s.Handle.UUID
	}
	if s.Container != nil {
		facts.State, facts.SSHPort = s.Container.State, s.Container.SSHPort
	}
	return facts
}

// Outputs are the outputs of the configuration, with what the sessions of a state
// turned out to be.
func (p *Project) Outputs(prior resource.Prior, live resource.Live) ([]config.Output, hcl.Diagnostics) {
	return p.Intent.EvalOutputs(made(prior, live))
}

// Checks holds the checks of the configuration against what the sessions of a
// state turned out to be. All that fails is a warning.
func (p *Project) Checks(prior resource.Prior, live resource.Live) hcl.Diagnostics {
	return p.Intent.EvalChecks(made(prior, live))
}

// noteOutputs puts the outputs into a state. One that is not known, for a session
// that is not there, is left out; of a sensitive one there is a hash alone. With
// the last session that is destroyed they go.
func (p *Project) noteOutputs(planned *plan.Plan, prior resource.Prior, live resource.Live) resource.Prior {
	if planned.Destroys && len(prior.Sessions) == 0 {
		prior.Outputs = nil
		return prior
	}
	all, _ := p.Outputs(prior, live)
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

// keptOutput is what a plan or else the state holds of an output that cannot be
// worked out, for a variable without a value; nil where neither has it.
func keptOutput(planned *plan.Plan, prior resource.Prior, name string) *resource.Output {
	i := slices.IndexFunc(planned.Diff.Outputs, func(c diff.OutputChange) bool { return c.Name == name })
	if i >= 0 {
		if c := planned.Diff.Outputs[i]; c.After != nil || c.Sealed != "" {
			return &resource.Output{Name: name, Sensitive: c.Sensitive, Value: c.After, Sealed: c.Sealed}
		}
		return nil
	}
	j := slices.IndexFunc(prior.Outputs, func(o resource.Output) bool { return o.Name == name })
	if j < 0 {
		return nil
	}
	return &prior.Outputs[j]
}

// CheckOutputs makes sure that the outputs of a saved plan can be worked out or are
// in it: of what is sensitive it holds a hash alone.
func (p *Project) CheckOutputs(saved *plan.Plan, prior resource.Prior, live resource.Live) error {
	if len(saved.Diff.Outputs) == 0 {
		return nil
	}
	all, _ := p.Intent.EvalOutputs(planned(saved, live))
	for _, o := range all {
		changes := slices.ContainsFunc(saved.Diff.Outputs, func(c diff.OutputChange) bool { return c.Name == o.Name })
		if o.Open && changes && keptOutput(saved, prior, o.Name) == nil {
			return fmt.Errorf("output %s is known once its sessions are there, and for that needs var.%s, of which a saved plan holds no value. Nothing was touched. Give the value to apply, too: by --var or in the environment",
				o.Name, strings.Join(p.Intent.Missed, " or var."))
		}
	}
	return nil
}

// sameOutputs makes sure that sensitive outputs have the values that a plan was
// made with, as far as they are known.
func (p *Project) sameOutputs(saved *plan.Plan, prior resource.Prior, live resource.Live) error {
	if len(saved.Diff.Outputs) == 0 {
		return nil
	}
	all, _ := p.Intent.EvalOutputs(planned(saved, live))
	known, _ := noted(all, cmp.Or(prior.Key, saved.Key))
	for _, c := range saved.Diff.Outputs {
		i := slices.IndexFunc(known, func(o resource.Output) bool { return o.Name == c.Name })
		if i >= 0 && c.Sealed != "" && known[i].Sealed != c.Sealed {
			return &StaleError{fmt.Sprintf("the sensitive output %s has another value now; a saved plan is applied with the values that it was made with", c.Name)}
		}
	}
	return nil
}

// noted are outputs as a state has them, and apart those that are not known.
func noted(all []config.Output, key string) (known, unknown []resource.Output) {
	for _, o := range all {
		if !o.Value.IsWhollyKnown() {
			unknown = append(unknown, resource.Output{Name: o.Name, Sensitive: o.Sensitive})
			continue
		}
		written, err := ctyjson.Marshal(o.Value, cty.DynamicPseudoType)
		if err != nil {
			continue // it is a capsule, which no expression can make
		}
		one := resource.Output{Name: o.Name, Sensitive: o.Sensitive}
		if o.Sensitive {
			sum := hmac.New(sha256.New, []byte(key))
			sum.Write([]byte("output\x00" + o.Name + "\x00"))
			sum.Write(written)
			one.Sealed = hex.EncodeToString(sum.Sum(nil)[:16])
		} else {
			one.Value = json.RawMessage(written)
		}
		known = append(known, one)
	}
	return known, unknown
}

// outputChanges says which outputs a plan gives other values than the state has.
func (p *Project) outputChanges(o Outlook, facts map[resource.Address]config.LiveSession) []diff.OutputChange {
	all, _ := p.Intent.EvalOutputs(facts)
	if o.Prior.Key == "" && o.Plan.Key == "" && slices.ContainsFunc(all, func(o config.Output) bool { return o.Sensitive }) {
		o.Plan.Key = state.NewKey()
	}
	known, unknown := noted(all, cmp.Or(o.Prior.Key, o.Plan.Key))
	return diff.Outputs(o.Prior.Outputs, known, unknown, o.Plan.Diff.Changes())
}

// KeepOutputs brings the outputs in the state up to date where there is nothing
// else to do. The caller has the lock.
func (p *Project) KeepOutputs(planned *plan.Plan, prior resource.Prior, live resource.Live) (resource.Prior, error) {
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
