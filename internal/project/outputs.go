package project

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/resource"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/state"
)

// planned is what is known of the sessions before a plan is carried out: all that
// is decided, and of those that stay as they are what they turned out to be.
func planned(p *plan.Plan, live resource.Live) map[resource.Address]config.LiveSession {
	facts := map[resource.Address]config.LiveSession{}
	for _, s := range p.Desired.Sessions {
		facts[s.Address] = factsOf(s, live)
	}
	for _, c := range p.Diff.Sessions {
		if c.After == nil || c.Before == nil || c.Container != diff.Keep || c.Slice != diff.Keep {
			continue
		}
		s := *c.Before
		s.Session = *c.After
		facts[c.Address] = madeFacts(s, live)
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
	if s.Box != nil {
		facts.Container = docker.Name(s.ID)
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
	prior.Outputs, _ = noted(all, prior.Key)
	return prior
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
	known, unknown := noted(all, o.Prior.Key)
	return diff.Outputs(o.Prior.Outputs, known, unknown, o.Plan.Diff.Changes())
}

// KeepOutputs brings the outputs in the state up to date where there is nothing
// else to do. The caller has the lock.
func (p *Project) KeepOutputs(planned *plan.Plan, prior resource.Prior, live resource.Live) (resource.Prior, error) {
	next := prior
	if next.Lineage == "" {
		next.Lineage, next.Key = state.NewLineage(), state.NewKey()
	}
	next = p.noteOutputs(planned, next, live)
	if slices.EqualFunc(prior.Outputs, next.Outputs, diff.SameOutput) {
		return prior, nil
	}
	return p.Store.Save(next)
}
