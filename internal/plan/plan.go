package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Plan is what is going to be done, and on what view of the world it rests.
type Plan struct {
	Basis    Basis
	Diff     diff.Diff
	Partial  bool // some sessions were left out of it
	Destroys bool // nothing is to be left
	Desired  resource.Desired
	Steps    []Step

	// Key is what sensitive values were sealed with where there was no state yet, whose key it becomes.
	Key string

	// Variables are the values of the configuration's variables, but for sensitive
	// ones: it is read with the same when the plan is carried out.
	Variables map[string]json.RawMessage

	// With Desired, what it was worked out from.
	prior   resource.Prior
	live    resource.Live
	options diff.Options
	first   []Step // before the others
}

// Basis is what a plan rests on: a plan is stale when any of it has moved.
type Basis struct {
	State   string `json:"state"`   // where the state lies: a plan is for one project
	Lineage string `json:"lineage"` // of the state; "" before the first apply
	Serial  int    `json:"serial"`
	Live    string `json:"live"` // fingerprint of settings, slices, containers and neighbours
}

// Step is one operation with what it waits for. It runs only when every step that it needs has succeeded, and when
// those that it comes after have ended, whether they succeeded, failed or could not run.
type Step struct {
	ID    string   `json:"id"`
	Group string   `json:"group"` // what is undone together when one of its steps fails
	Needs []string `json:"needs,omitempty"`
	After []string `json:"after,omitempty"`
	Do    OpJSON   `json:"do"`
	Undo  OpJSON   `json:"undo"` // null where nothing can take it back
}

// Begin puts steps before all others, which wait for them.
func (p *Plan) Begin(steps []Step) {
	var first []string
	for _, s := range steps {
		first = append(first, s.ID)
	}
	for i := range p.Steps {
		if len(p.Steps[i].Needs) == 0 {
			p.Steps[i].Needs = first
		}
	}
	p.first = steps
	p.Steps = append(slices.Clone(steps), p.Steps...)
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Check makes sure that the steps can be carried out in their order: each has a
// name of its own and needs only what comes before it.
func (p *Plan) Check() error {
	known := map[string]bool{}
	for _, s := range p.Steps {
		for _, need := range slices.Concat(s.Needs, s.After) {
			if !known[need] {
				return fmt.Errorf("step %s waits for %q, which does not come before it", s.ID, need)
			}
		}
		if known[s.ID] || s.Do.Op == nil {
			return fmt.Errorf("step %q is there twice or does nothing", s.ID)
		}
		known[s.ID] = true
	}
	return nil
}

// WithSessions is the plan with each session that its steps make replaced by what the function makes of it.
func (p *Plan) WithSessions(change func(resource.Session) (resource.Session, error)) (*Plan, error) {
	changed := *p
	changed.Steps = slices.Clone(p.Steps)
	for i := range changed.Steps {
		var err error
		step := &changed.Steps[i]
		switch op := step.Do.Op.(type) {
		case CreateSlice:
			op.Session, err = change(op.Session)
			step.Do.Op = op
		case Prepare:
			op.Session, err = change(op.Session)
			step.Do.Op = op
		default: // it makes nothing of a session
		}
		if err != nil {
			return nil, err
		}
	}
	return &changed, nil
}

// Effects counts the steps that touch the world.
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

// NewBasis takes the fingerprint of what a plan rests on.
func NewBasis(prior resource.Prior, live resource.Live) Basis {
	return Basis{Lineage: prior.Lineage, Serial: prior.Serial, Live: fingerprint(prior, live)}
}

// fingerprint hashes settings and identities, and nothing that moves by itself:
// no temperature, no draw, no clock, no memory in use.
func fingerprint(prior resource.Prior, live resource.Live) string {
	type gpu struct {
		UUID                         string
		MIG, MIGPending, Persistence bool
		Neighbours                   bool
		PowerMW                      int
		Slices                       []resource.LiveSlice
		Without                      []resource.Feature
	}
	type host struct {
		Name, Driver, BootID string
		GPUs                 []gpu
		Containers           []resource.Body
	}
	var hosts []host
	placements := prior.Placements()
	for _, h := range live.Hosts {
		one := host{Name: h.Name, Driver: h.Driver, BootID: h.BootID, Containers: h.Bodies}
		for _, g := range h.GPUs {
			var without []resource.Feature
			for _, d := range g.Degraded {
				without = append(without, d.Feature)
			}
			one.GPUs = append(one.GPUs, gpu{g.UUID, g.MIG, g.MIGPending, g.Persistence, len(diff.ForeignProcesses(g, placements)) > 0, g.PowerMW, g.Slices, without})
		}
		hosts = append(hosts, one)
	}
	content, err := json.Marshal(hosts)
	if err != nil {
		panic(err) // strings and numbers only: it cannot fail
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
