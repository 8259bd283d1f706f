package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// FormatVersion is that of a saved plan. Version 1 had the difference and the steps themselves, with each session up
// to four times.
const FormatVersion = 2

// Saved is a plan as a file keeps it: everything that it was computed from, each session once as it was and once as
// it will be. Difference and steps are computed again when it is loaded.
type Saved struct {
	FormatVersion int                        `json:"format_version"`
	Cosplay       string                     `json:"cosplay"` // version that saved it
	Basis         Basis                      `json:"basis"`
	Partial       bool                       `json:"partial,omitempty"`
	Destroys      bool                       `json:"destroys,omitempty"`
	Secrets       bool                       `json:"secrets,omitempty"` // a step needs sensitive values, which are not saved
	Key           string                     `json:"key,omitempty"`
	Variables     map[string]json.RawMessage `json:"variables,omitempty"`
	Desired       resource.Desired           `json:"desired"`
	Prior         resource.Prior             `json:"prior"` // without its key
	Live          resource.Live              `json:"live"`
	Options       diff.Options               `json:"options"`
	First         []Step                     `json:"first,omitempty"`
	Outputs       []diff.OutputChange        `json:"outputs,omitempty"`
	Steps         string                     `json:"steps"` // digest of the steps that were shown
}

// Saved is the plan for a file, with the version of cosplay that writes it.
func (p *Plan) Saved(version string) Saved {
	prior := p.prior
	prior.Key = ""
	return Saved{FormatVersion: FormatVersion, Cosplay: version, Basis: p.Basis, Partial: p.Partial, Destroys: p.Destroys, Secrets: p.secrets(), Key: p.Key,
		Variables: p.Variables, Desired: p.Desired, Prior: prior, Live: p.live, Options: p.options, First: p.first, Outputs: p.Diff.Outputs, Steps: digest(p.Steps)}
}

// ErrOtherSteps rejects a saved plan whose steps differ from those that the user saw.
var ErrOtherSteps = errors.New("another version of cosplay saved the plan, and this one would carry out other steps")

// Plan computes the plan again. The key is the state's; before the first apply the plan has its own.
func (s Saved) Plan(stateKey string) (*Plan, error) {
	prior := s.Prior
	prior.Key = stateKey
	p := Build(s.Desired, prior, s.Live, s.Options)
	p.Basis, p.Partial, p.Destroys, p.Key, p.Variables, p.Diff.Outputs = s.Basis, s.Partial, s.Destroys, s.Key, s.Variables, s.Outputs
	p.Begin(s.First)
	if err := p.Check(); err != nil {
		return nil, err
	}
	if digest(p.Steps) != s.Steps {
		return nil, fmt.Errorf("%w (saved by %s)", ErrOtherSteps, s.Cosplay)
	}
	return p, nil
}

// secrets reports whether a step creates a session with sensitive values.
func (p *Plan) secrets() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		op, makes := s.Do.Op.(Prepare)
		return makes && len(op.Session.Sealed) > 0
	})
}

// digest is a hash of a value's JSON.
func digest(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings and numbers only: it cannot fail
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
