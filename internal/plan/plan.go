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

// FormatVersion is that of a saved plan.
const FormatVersion = 1

// Plan is what is going to be done, and on what view of the world it rests.
type Plan struct {
	FormatVersion int              `json:"format_version"`
	Basis         Basis            `json:"basis"`
	Diff          diff.Diff        `json:"diff"`
	Desired       resource.Desired `json:"desired"`
	Steps         []Step           `json:"steps"`
}

// Basis is what a plan rests on: a plan is stale when any of it has moved.
type Basis struct {
	State   string `json:"state"`   // where the state lies: a plan is for one project
	Lineage string `json:"lineage"` // of the state; "" before the first apply
	Serial  int    `json:"serial"`
	Live    string `json:"live"` // fingerprint of settings, slices, containers and neighbours
}

// Step is one operation with what it waits for. It runs only when every step
// that it needs has succeeded.
type Step struct {
	ID    string   `json:"id"`
	Group string   `json:"group"` // what is undone together when one of its steps fails
	Title string   `json:"title"`
	Needs []string `json:"needs,omitempty"`
	Do    OpJSON   `json:"do"`
	Undo  OpJSON   `json:"undo"` // null where nothing can take it back
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Check makes sure that the steps can be carried out in their order: each has a
// name of its own and needs only what comes before it.
func (p *Plan) Check() error {
	known := map[string]bool{}
	for _, s := range p.Steps {
		for _, need := range s.Needs {
			if !known[need] {
				return fmt.Errorf("step %s needs %q, which does not come before it", s.ID, need)
			}
		}
		if known[s.ID] || s.Do.Op == nil {
			return fmt.Errorf("step %q is there twice or does nothing", s.ID)
		}
		known[s.ID] = true
	}
	return nil
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

// String is one line a step: what golden tests compare.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s", s.ID, s.Title)
		if len(s.Needs) > 0 {
			fmt.Fprintf(&b, "  <- %s", strings.Join(s.Needs, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
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
	}
	type host struct {
		Name, Driver, BootID string
		GPUs                 []gpu
		Containers           []resource.Container
	}
	var hosts []host
	for _, h := range live.Hosts {
		one := host{Name: h.Name, Driver: h.Driver, BootID: h.BootID, Containers: h.Containers}
		for _, g := range h.GPUs {
			one.GPUs = append(one.GPUs, gpu{g.UUID, g.MIG, g.MIGPending, g.Persistence, diff.ForeignProcesses(g, prior), g.PowerMW, g.Slices})
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

// Build orders the changes of a difference into steps.
func Build(d diff.Diff, desired resource.Desired, prior resource.Prior, live resource.Live) *Plan {
	b := builder{live: live, images: map[imageKey]string{}, last: map[gpuKey][]string{}, freed: map[gpuKey][]string{}}
	b.noteFirstBoots(prior, d)
	for _, s := range d.Sessions {
		b.takeDown(s)
	}
	for _, g := range d.GPUs {
		if !g.GiveBack {
			b.setUp(g)
		}
	}
	for _, s := range d.Sessions {
		b.bringUp(s)
	}
	for _, g := range d.GPUs {
		if g.GiveBack {
			b.giveBack(g)
		}
	}
	b.noteBoots(prior)
	return &Plan{FormatVersion: FormatVersion, Basis: NewBasis(prior, live), Diff: d, Desired: desired, Steps: b.steps}
}

// noteBoots ends the plan with what is only true once all of it is done: that
// things are as they should be in this boot of each host.
func (b *builder) noteBoots(prior resource.Prior) {
	var all []string
	for _, s := range b.steps {
		all = append(all, s.ID)
	}
	for _, h := range b.live.Hosts {
		if prior.BootIDs[h.Name] != h.BootID && prior.Holds(h.Name) {
			b.noteBoot(h, all)
		}
	}
}

// noteFirstBoots notes the boot of hosts on which there is nothing of ours yet:
// whatever becomes of the run, what it makes is of this boot.
func (b *builder) noteFirstBoots(prior resource.Prior, d diff.Diff) {
	for _, h := range b.live.Hosts {
		if prior.BootIDs[h.Name] != h.BootID && !prior.Holds(h.Name) && d.Changes() {
			b.noteBoot(h, nil)
		}
	}
}

func (b *builder) noteBoot(h resource.Host, needs []string) {
	id := "host." + h.Name
	b.add(Step{ID: id + "/boot", Group: id, Title: h.Name + ": note this boot", Needs: needs, Do: OpJSON{NoteBoot{Host: h.Name, BootID: h.BootID}}})
}

type gpuKey struct{ host, uuid string }

type imageKey struct{ host, name string }

// builder collects steps in an order in which each follows all that it needs:
// first what goes, then the GPUs, then what comes, then GPUs given back.
type builder struct {
	live   resource.Live
	steps  []Step
	images map[imageKey]string // steps that get one
	freed  map[gpuKey][]string // steps that take sessions off a GPU
	last   map[gpuKey][]string // the last step of a GPU's set-up
}

func (b *builder) add(s Step) string {
	s.Needs = slices.Compact(slices.Sorted(slices.Values(s.Needs)))
	b.steps = append(b.steps, s)
	return s.ID
}

func (b *builder) takeDown(c diff.SessionChange) {
	if c.Before == nil {
		return
	}
	var (
		id   = c.Address.String()
		at   = gpuKey{c.Before.Slice.Host, c.Before.Slice.GPU}
		last []string
	)
	if c.Container == diff.Remake && c.After != nil {
		last = b.image(*c.After) // what runs goes only once there is something to come
	}
	if c.Container == diff.Remove || c.Container == diff.Remake {
		last = []string{b.add(Step{ID: id + "/unprepare", Group: id, Needs: last, Title: id + ": remove its " + resource.ContainerWord(c.Before.Runtime),
			Do: OpJSON{Unprepare{Address: c.Address, Host: at.host, Runtime: c.Before.Runtime, ID: c.Before.ID}}})}
	}
	if c.Slice == diff.Remove || c.Slice == diff.Remake {
		last = []string{b.add(Step{ID: id + "/destroy-slice", Group: id, Title: fmt.Sprintf("%s: destroy slice %s", id, c.Before.Slice),
			Needs: last, Do: OpJSON{DestroySlice{Address: c.Address, Slice: c.Before.Slice}}})}
	}
	if c.Action == diff.Delete {
		last = []string{b.add(Step{ID: id + "/forget", Group: id, Title: id + ": forget", Needs: last, Do: OpJSON{Forget{Address: c.Address}}})}
	}
	b.freed[at] = append(b.freed[at], last...)
}

func (b *builder) setUp(c diff.GPUChange) {
	var (
		at   = gpuKey{c.Host, c.UUID}
		id   = c.UUID
		name = b.name(at)
		last = b.freed[at]
	)
	step := func(what, title string, do Op) {
		last = []string{b.add(Step{ID: id + "/" + what, Group: id, Title: name + ": " + title, Needs: last, Do: OpJSON{do}})}
	}
	if c.Baseline != nil {
		step("take", "note its baseline", TakeGPU{Host: c.Host, GPU: c.UUID, Baseline: *c.Baseline, Holds: c.Holds, LockBefore: c.LockBefore})
	}
	if c.Baseline == nil && c.Holds != (resource.Settings{}) {
		step("hold", "note what it has already", HoldGPU{Host: c.Host, GPU: c.UUID, Holds: c.Holds})
	}
	if c.LockLost {
		step("doubt", "note that its clock lock is gone", DoubtClock{Host: c.Host, GPU: c.UUID})
	}
	s := c.Settings
	// Persistence first: without it the driver forgets the limits and locks.
	if s.Persistence != nil {
		step("persistence", "persistence "+resource.OnOff(*s.Persistence), SetPersistence{c.Host, c.UUID, *s.Persistence})
	}
	if s.MIG != nil {
		step("mig", "MIG mode "+resource.OnOff(*s.MIG), SetMIG{c.Host, c.UUID, *s.MIG})
	}
	if s.PowerMW != nil {
		step("power", "power limit "+resource.Watts(*s.PowerMW), SetPower{c.Host, c.UUID, *s.PowerMW})
	}
	if s.ClockMHz != nil {
		step("clock", "SM clock "+resource.Clock(*s.ClockMHz), SetClock{c.Host, c.UUID, *s.ClockMHz})
	}
	b.last[at] = last
}

func (b *builder) bringUp(c diff.SessionChange) {
	if c.After == nil {
		return
	}
	var (
		id   = c.Address.String()
		at   = gpuKey{c.After.Slice.Host, c.After.Slice.GPU}
		last = slices.Concat(b.last[at], b.freed[at])
	)
	if c.Before != nil {
		last = append(last, b.freed[gpuKey{c.Before.Slice.Host, c.Before.Slice.GPU}]...)
	}
	if (c.Slice == diff.Make || c.Slice == diff.Remake) && !c.After.Slice.Whole() {
		last = []string{b.add(Step{ID: id + "/slice", Group: id, Title: fmt.Sprintf("%s: slice %s", id, c.After.Slice), Needs: last,
			Do: OpJSON{CreateSlice{Session: *c.After}}, Undo: OpJSON{DestroySlice{Address: c.Address, Slice: c.After.Slice}}})}
	}
	switch c.Container {
	case diff.Make, diff.Remake:
		last = append(last, b.image(*c.After)...)
		b.add(Step{ID: id + "/prepare", Group: id, Title: id + ": " + resource.ContainerWord(c.After.Runtime), Needs: last,
			Do: OpJSON{Prepare{Session: *c.After}}, Undo: OpJSON{Unprepare{Address: c.Address, Host: at.host, Runtime: c.After.Runtime, ID: c.After.ID}}})
	case diff.Refit:
		step := Step{ID: id + "/prepare", Group: id, Title: id + ": bring its " + resource.ContainerWord(c.After.Runtime) + " up to date", Needs: last,
			Do: OpJSON{Prepare{Session: *c.After}}, Undo: OpJSON{Prepare{Session: c.Before.Session}}}
		if c.After.Runtime == resource.RuntimeDocker {
			step.Title, step.Undo = id+": start its container", OpJSON{}
		}
		b.add(step)
	}
	if c.Record {
		b.add(Step{ID: id + "/record", Group: id, Title: id + ": note its new fit", Needs: last, Do: OpJSON{Record{Session: *c.After}}})
	}
}

// image gets what a session's container is made from, once for all that are.
func (b *builder) image(s resource.Session) []string {
	host, _ := b.live.Host(s.Slice.Host)
	if s.Box == nil || host.Engine == nil {
		return nil
	}
	var (
		missing = host.Engine.Images[s.Box.Image] == ""
		at      = imageKey{host.Name, s.Box.Image}
		how     = PullImage
	)
	if s.Box.Image == resource.DefaultImage && missing {
		how = BuildImage
	}
	if id, planned := b.images[at]; planned {
		return []string{id}
	}
	if !missing && s.Box.Pull != resource.PullAlways {
		return nil
	}
	name := "image " + s.Box.Image
	if len(b.live.Hosts) > 1 {
		name = host.Name + " " + name
	}
	id := "image." + host.Name + "." + s.Box.Image
	b.images[at] = b.add(Step{ID: id, Group: id, Title: name + ": " + string(how), Do: OpJSON{EnsureImage{Host: host.Name, Image: s.Box.Image, How: how}}})
	return []string{id}
}

func (b *builder) giveBack(c diff.GPUChange) {
	var (
		at   = gpuKey{c.Host, c.UUID}
		id   = c.UUID
		name = b.name(at)
		last = b.freed[at]
	)
	step := func(what, title string, do Op) {
		last = []string{b.add(Step{ID: id + "/" + what, Group: id, Title: name + ": " + title, Needs: last, Do: OpJSON{do}})}
	}
	s := c.Settings
	if s.ClockMHz != nil {
		title := "SM clock back to " + resource.Clock(*s.ClockMHz)
		if *s.ClockMHz == 0 {
			title = "SM clock unlocked again"
		}
		step("restore-clock", title, SetClock{c.Host, c.UUID, *s.ClockMHz})
	}
	if s.PowerMW != nil {
		step("restore-power", "power limit back to "+resource.Watts(*s.PowerMW), SetPower{c.Host, c.UUID, *s.PowerMW})
	}
	if s.MIG != nil {
		step("restore-mig", "MIG mode back to "+resource.OnOff(*s.MIG), SetMIG{c.Host, c.UUID, *s.MIG})
	}
	// Persistence last: the driver forgets the rest when it goes off.
	if s.Persistence != nil {
		step("restore-persistence", "persistence back to "+resource.OnOff(*s.Persistence), SetPersistence{c.Host, c.UUID, *s.Persistence})
	}
	if c.Action == diff.Delete { // else something has to wait
		step("release", "as it was found", ReleaseGPU{c.Host, c.UUID})
	}
}

// name is what people call a GPU: with its host where there are several.
func (b *builder) name(at gpuKey) string {
	index := "?"
	if g, ok := b.live.GPU(at.host, at.uuid); ok {
		index = fmt.Sprint(g.Index)
	}
	if len(b.live.Hosts) > 1 {
		return at.host + " GPU " + index
	}
	return "GPU " + index
}
