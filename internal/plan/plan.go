package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Plan is what an apply will do, and the snapshot that it is based on.
type Plan struct {
	Basis    Basis
	Diff     diff.Diff
	Partial  bool // it does not include all sessions
	Destroys bool // it destroys everything
	Desired  resource.Desired
	Steps    []Step

	// Key is the key with which sensitive values were sealed if there was no state yet. It becomes the state's key.
	Key string

	// Variables are the values of the configuration's variables, without sensitive ones. apply reads the
	// configuration with the same values.
	Variables map[string]json.RawMessage
	Timestamp string // the value of plantimestamp()

	// Together with Desired, what the plan was computed from.
	prior   resource.Prior
	live    resource.Live
	options diff.Options
	first   []Step // before the others
}

// Basis is the snapshot that a plan is based on: a plan is stale when any of it has changed.
type Basis struct {
	State   string      `json:"state"`   // path of the state: a plan is for one project
	Lineage string      `json:"lineage"` // of the state; "" before the first apply
	Serial  int         `json:"serial"`
	Live    Fingerprint `json:"live"` // of settings, slices, containers and neighbours

	// Config has a hash of what the configuration was read from, by a hash of its name: its files, and what its
	// expressions read. Only a saved plan has it; that of an earlier version has none.
	Config map[string]string `json:"config,omitempty"`
}

// Fingerprint is the hash of a snapshot, computed when it is first needed: most plans are shown and no more.
type Fingerprint func() string

// Hash returns the hash; "" if a saved plan has none.
func (f Fingerprint) Hash() string {
	if f == nil {
		return ""
	}
	return f()
}

// MarshalText returns the hash.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.Hash()), nil }

// UnmarshalText takes any text as the hash.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	hash := string(text)
	*f = func() string { return hash }
	return nil
}

// Step is one operation with the steps that it waits for. It runs only after every step that it needs has succeeded,
// and after those of After have ended, whether they succeeded, failed or could not run.
type Step struct {
	ID    string   `json:"id"`
	Group string   `json:"group"` // steps that are undone together when one of them fails
	Needs []string `json:"needs,omitempty"`
	After []string `json:"after,omitempty"`
	Do    OpJSON   `json:"do"`
	Undo  OpJSON   `json:"undo"` // null if it cannot be undone
}

// Begin puts steps before all others, which then need them.
func (p *Plan) Begin(steps []Step) {
	first := ids(steps)
	for i := range p.Steps {
		if len(p.Steps[i].Needs) == 0 {
			p.Steps[i].Needs = first
		}
	}
	p.first = steps
	p.Steps = append(slices.Clone(steps), p.Steps...)
}

func ids(steps []Step) []string { return prose.Each(steps, func(s Step) string { return s.ID }) }

// Ending is the record of a session that the plan ends because it has expired.
func (p *Plan) Ending(a resource.Address) (resource.Expired, bool) {
	e, ends := p.options.Ending[a]
	return e, ends
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Check reports an error if the steps cannot run in their order: each must have a unique ID and wait only for steps
// before it.
func (p *Plan) Check() error {
	known := map[string]bool{}
	for _, s := range p.Steps {
		for _, need := range slices.Concat(s.Needs, s.After) {
			if !known[need] {
				return fmt.Errorf("step %s waits for %q, which does not come before it", s.ID, need)
			}
		}
		if known[s.ID] || s.Do.Op == nil {
			return fmt.Errorf("step %q occurs twice or does nothing", s.ID)
		}
		known[s.ID] = true
	}
	return nil
}

// WithSessions is the plan with each session that its steps create changed by a function.
func (p *Plan) WithSessions(change func(resource.Session) (resource.Session, error)) (*Plan, error) {
	changed := *p
	changed.Steps = slices.Clone(p.Steps)
	for i := range changed.Steps {
		var err error
		do := &changed.Steps[i].Do
		switch op := do.Op.(type) {
		case CreateSlice:
			op.Session, err = change(op.Session)
			do.Op = op
		case JoinSlice:
			op.Session, err = change(op.Session)
			do.Op = op
		case Prepare:
			op.Session, err = change(op.Session)
			do.Op = op
		default: // it creates no session
		}
		if err != nil {
			return nil, err
		}
	}
	return &changed, nil
}

// Effects counts the steps that change more than the state.
func (p *Plan) Effects() int {
	n := 0
	for _, s := range p.Steps {
		if !Bookkeeping(s.Do.Op) {
			n++
		}
	}
	return n
}

// String is one line for each step, which tests compare.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s", s.ID, brief(s.Do.Op))
		if len(s.Needs) > 0 {
			fmt.Fprintf(&b, "  <- %s", strings.Join(s.Needs, ", "))
		}
		if len(s.After) > 0 {
			fmt.Fprintf(&b, "  after %s", strings.Join(s.After, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// brief is the kind of an operation with what it sets or how.
func brief(op Op) string {
	switch op := op.(type) {
	case SetGPU:
		return op.kind() + " " + op.Setting.Text(op.Value)
	case CreateSlice:
		return op.kind() + " " + op.Session.Slice.String()
	case DestroySlice:
		return op.kind() + " " + op.Slice.String()
	case JoinSlice:
		return op.kind() + " " + op.Session.Slice.String() + " of " + op.With.String()
	case EnsureImage:
		return string(op.How) + " image"
	case Prepare:
		if op.How != "" {
			return string(op.How)
		}
	default:
	}
	return op.kind()
}

// NewBasis is the basis of a plan that is made from a snapshot.
func NewBasis(prior resource.Prior, live resource.Live) Basis {
	return Basis{Lineage: prior.Lineage, Serial: prior.Serial, Live: sync.OnceValue(func() string { return fingerprint(prior, live) })}
}

// fingerprint hashes settings and identities, and no reading: no temperature, no draw, no clock, no used memory, no
// number of restarts.
func fingerprint(prior resource.Prior, live resource.Live) string {
	type gpu struct {
		UUID                         string
		MIG, MIGPending, Persistence bool
		Neighbours                   bool
		PowerMW                      int
		Slices                       []resource.LiveSlice
		Without                      []resource.Feature
		ComputeMode                  int               `json:",omitempty"` // left out as before it existed
		TimeSlice                    *int              `json:",omitempty"`
		Later                        resource.Settings `json:",omitzero"` // that came after the length of time slices
	}
	type host struct {
		Name, Driver, BootID string
		GPUs                 []gpu
		Containers           []resource.Body
		MPS                  resource.MPSService `json:",omitzero"`
	}
	var hosts []host
	placements := prior.Placements()
	for _, h := range live.Hosts {
		one := host{Name: h.Name, Driver: h.Driver, BootID: h.BootID, Containers: slices.Clone(h.Bodies), MPS: h.MPS}
		for i := range one.Containers {
			one.Containers[i].Restarts = 0
		}
		for _, g := range h.GPUs {
			without := prose.Each(g.Degraded, func(d resource.Degradation) resource.Feature { return d.Feature })
			neighbours := len(diff.ForeignProcesses(g, placements)) > 0
			later := resource.Settings{}
			for _, s := range resource.AllSettings[resource.TimeSlice+1:] {
				if now, known := g.Now(s); known {
					later = later.With(s, now)
				}
			}
			one.GPUs = append(one.GPUs, gpu{g.UUID, g.MIG, g.MIGPending, g.Persistence, neighbours, g.PowerMW, g.Slices, without,
				g.ComputeMode, g.TimeSlice, later})
		}
		hosts = append(hosts, one)
	}
	return digest(hosts)
}

// FormatVersion is that of a saved plan. Version 1 had the difference and the steps themselves, with each session up
// to four times; version 2 had other names for the bodies of a host.
const FormatVersion = 3

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
	Timestamp     string                     `json:"timestamp,omitempty"` // the value of plantimestamp()
	Desired       resource.Desired           `json:"desired"`
	Prior         resource.Prior             `json:"prior"` // without its key
	Live          resource.Live              `json:"live"`
	Options       diff.Options               `json:"options"`
	First         []Step                     `json:"first,omitempty"`
	Outputs       []diff.OutputChange        `json:"outputs,omitempty"`
	Steps         string                     `json:"steps"`           // digest of the steps that were shown
	Flags         []string                   `json:"flags,omitempty"` // of the command plan that makes it again
	Again         []string                   `json:"again,omitempty"` // sensitive variables whose values apply needs again
}

// Saved is the plan for a file, with the version of cosplay that writes it.
func (p *Plan) Saved(version string) Saved {
	prior := p.prior
	prior.Key = ""
	return Saved{FormatVersion: FormatVersion, Cosplay: version, Basis: p.Basis, Partial: p.Partial, Destroys: p.Destroys, Secrets: p.secrets(), Key: p.Key,
		Variables: p.Variables, Timestamp: p.Timestamp, Desired: p.Desired, Prior: prior, Live: p.live, Options: p.options, First: p.first, Outputs: p.Diff.Outputs, Steps: digest(p.Steps)}
}

// Read reads a saved plan of this version or of the one before. Any other has its version, and an error if it cannot be read.
func Read(content []byte) (s Saved, err error) {
	if err = json.Unmarshal(content, &s); err != nil || s.FormatVersion != FormatVersion-1 {
		return s, err
	}
	var before struct {
		Live struct {
			Hosts []struct {
				Bodies    []resource.Body `json:"containers"`
				Leftovers []resource.Body `json:"strays"`
			} `json:"hosts"`
		} `json:"live"`
	}
	err = json.Unmarshal(content, &before)
	for i, h := range before.Live.Hosts {
		s.Live.Hosts[i].Bodies, s.Live.Hosts[i].Leftovers = h.Bodies, h.Leftovers
	}
	s.FormatVersion = FormatVersion
	return s, err
}

// ErrOtherSteps rejects a saved plan whose steps differ from those that the user saw.
var ErrOtherSteps = errors.New("another version of cosplay saved the plan, and this one would carry out other steps")

// Plan computes the plan again. The key is the state's; before the first apply the plan has its own.
func (s Saved) Plan(stateKey string) (*Plan, error) {
	prior := s.Prior
	prior.Key = cmp.Or(stateKey, s.Key)
	p := Build(s.Desired, prior, s.Live, s.Options)
	p.Basis, p.Partial, p.Destroys, p.Key, p.Variables, p.Diff.Outputs = s.Basis, s.Partial, s.Destroys, s.Key, s.Variables, s.Outputs
	p.Timestamp = s.Timestamp
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
