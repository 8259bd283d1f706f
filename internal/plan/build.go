package plan

import (
	"slices"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Build compares, and orders the changes into steps. The sessions of the prior have their new addresses already. The
// caller sets the basis.
func Build(desired resource.Desired, prior resource.Prior, live resource.Live, o diff.Options) *Plan {
	d := diff.Compare(desired, prior, live, o)
	b := builder{options: o, desired: desired, live: live, prior: prior, withSlice: map[string]bool{}, placements: prior.Placements(), images: map[imageKey]string{},
		taken: byGPU{}, last: byGPU{}, freed: byGPU{}, ended: byGPU{}, leaving: map[resource.Slice]*leaving{}, shared: map[resource.Slice]sharer{}, up: map[string][]string{}, down: map[string][]string{}}
	b.moveSessions(d)
	if d.Changes() {
		b.noteSlices(d.Sessions)
		b.noteBoots(false, nil) // whatever happens to the run, what it creates is of this boot
	}
	for _, g := range d.GPUs {
		b.takeAgain(g)
	}
	for _, c := range d.Leftovers {
		b.sweep(c)
	}
	for _, s := range goingDown(d.Sessions) {
		b.takeDown(s)
	}
	for _, g := range d.GPUs {
		if !g.GiveBack {
			b.setUp(g)
		}
	}
	for _, s := range comingUp(d.Sessions) {
		b.bringUp(s)
	}
	for _, g := range d.GPUs {
		if g.GiveBack {
			b.giveBack(g)
		}
	}
	for _, a := range d.Unwanted {
		b.step(a.String(), "forget", nil, Forget{Address: a})
	}
	for _, a := range d.Dropped {
		b.step(a.String(), "forget-expired", nil, ForgetExpired{Address: a})
	}
	b.noteBoots(true, ids(b.steps)) // only after all steps is everything as desired in this boot
	return &Plan{Diff: d, Desired: desired, Steps: b.steps, prior: prior, live: live, options: o}
}

// noteBoots records the boots of hosts on which the project has something already, or of the others.
func (b *builder) noteBoots(held bool, needs []string) {
	for _, h := range b.live.Hosts {
		if b.prior.BootIDs[h.Name] != h.BootID && b.prior.Holds(h.Name) == held {
			b.step("host."+h.Name, "boot", needs, NoteBoot{Host: h.Name, BootID: h.BootID})
		}
	}
}

// byGPU are ids of steps.
type byGPU map[resource.GPUKey][]string

// of are the steps of all these GPUs.
func (b byGPU) of(gpus []resource.GPUKey) []string {
	var all []string
	for _, gpu := range gpus {
		all = append(all, b[gpu]...)
	}
	return all
}

func (b byGPU) add(gpus []resource.GPUKey, steps []string) {
	for _, gpu := range gpus {
		b[gpu] = append(b[gpu], steps...)
	}
}

type imageKey struct{ host, name string }

// builder collects steps in an order in which each follows all that it needs: removals, GPUs, creations, released
// GPUs.
type builder struct {
	options    diff.Options
	desired    resource.Desired
	live       resource.Live
	prior      resource.Prior
	placements resource.Placements // the prior's
	moved      string              // the step that all others need; "" if nothing moves
	steps      []Step
	images     map[imageKey]string         // steps that get one
	taken      byGPU                       // steps that put a GPU back into the ledger
	freed      byGPU                       // steps that take sessions off a GPU
	ended      byGPU                       // steps that end what runs on a GPU
	last       byGPU                       // the last step of a GPU's set-up
	leaving    map[resource.Slice]*leaving // by place: the sessions that leave a slice that is removed
	withSlice  map[string]bool             // folders of MPS daemons that end with their slices
	shared     map[resource.Slice]sharer   // by GPU instance: slices that sessions can join, or get a compute instance beside
	up         map[string][]string         // steps that bring the sessions of a block up
	down       map[string][]string         // steps that remove what depends on a block
}

// leaving are sessions that leave a slice. The last of them destroys it, after the bodies of all.
type leaving struct {
	sessions int // that are still to leave
	after    []string
}

// A sharer is a session that has a slice.
type sharer struct {
	address resource.Address
	slice   resource.Slice
	made    []string // the step that creates the slice, unless it exists
}

// noteSlices finds the slices that sessions leave, and those that go on to exist.
func (b *builder) noteSlices(changes []diff.SessionChange) {
	for _, c := range changes {
		if c.Before == nil {
			continue
		}
		at, instance := c.Before.Slice.Place(), c.Before.Slice.Instance()
		if c.Slice == diff.Remove || c.Slice == diff.Remake {
			if b.leaving[at] == nil {
				b.leaving[at] = &leaving{}
			}
			b.leaving[at].sessions++
		}
		_, there := diff.OwnSlice(*c.Before, b.live)
		ends := c.Action == diff.Delete || c.Action == diff.Forget
		if c.Slice == diff.Keep && there && !ends && (c.After == nil || c.After.Slice == c.Before.Slice) {
			b.shared[instance] = sharer{address: c.Address, slice: at}
		}
	}
}

// step adds a step without an undo. what names it within its group.
func (b *builder) step(group, what string, needs []string, do Op) string {
	return b.add(Step{ID: group + "/" + what, Group: group, Needs: needs, Do: OpJSON{do}})
}

func (b *builder) add(s Step) string {
	if len(s.Needs) == 0 && b.moved != "" {
		s.Needs = []string{b.moved}
	}
	s.Needs = slices.Compact(slices.Sorted(slices.Values(s.Needs)))
	b.steps = append(b.steps, s)
	return s.ID
}

// moveSessions gives sessions their new addresses before other steps use these.
func (b *builder) moveSessions(d diff.Diff) {
	var moves []resource.Renamed
	for _, c := range d.Sessions {
		if c.MovedFrom != nil {
			moves = append(moves, resource.Renamed{From: *c.MovedFrom, To: c.Address})
		}
	}
	if len(moves) > 0 {
		b.moved = b.step("state", "move", nil, MoveSessions{Moves: moves})
	}
}

// LeftoverGroup begins the groups of steps that remove leftovers of interrupted runs.
const LeftoverGroup = "stray."

// sweep removes a leftover. The state does not know its session, so it gets an address that no block can have.
func (b *builder) sweep(c resource.Body) {
	b.step(LeftoverGroup+c.Host+"."+c.Session, "unprepare", nil,
		Unprepare{Address: resource.Each("_", c.Session), Host: c.Host, Runtime: c.Runtime, ID: c.Session, Leftover: true})
}

func (b *builder) takeDown(c diff.SessionChange) {
	if c.Before == nil {
		return
	}
	var (
		id   = c.Address.String()
		on   = c.Before.On()
		host = c.Before.Slice.Host
		last []string
	)
	taken := b.taken.of(on)
	if c.Body == diff.Remake && c.After != nil {
		last = b.image(*c.After) // the old container is removed only once the image is there
	}
	if expired, ends := b.options.Ending[c.Address]; ends {
		last = []string{b.step(id, "end", taken, EndSession{Host: host, Runtime: c.Before.Runtime, ID: c.Before.ID, Expired: expired, Grace: b.options.Grace})}
	}
	if c.Body == diff.Remove || c.Body == diff.Remake {
		last = []string{b.step(id, "unprepare", slices.Concat(taken, last, b.down[c.Address.Name]),
			Unprepare{Address: c.Address, Host: host, Runtime: c.Before.Runtime, ID: c.Before.ID})}
		b.ended.add(on, last)
		for _, name := range c.Before.DependsOn {
			b.down[name] = append(b.down[name], last...)
		}
	}
	if c.Slice == diff.Remove || c.Slice == diff.Remake {
		leaving := b.leaving[c.Before.Slice.Place()]
		leaving.after = append(leaving.after, last...)
		if leaving.sessions--; leaving.sessions == 0 {
			last = []string{b.step(id, "destroy-slice", slices.Concat(leaving.after, taken),
				DestroySlice{Address: c.Address, Slice: c.Before.Slice})}
			b.withSlice[c.Before.MPS] = true
		}
	}
	if c.Action == diff.Delete || c.Action == diff.Forget {
		last = []string{b.step(id, "forget", last, Forget{Address: c.Address})}
	}
	b.freed.add(on, last)
}

func (b *builder) bringUp(c diff.SessionChange) {
	if c.After == nil {
		return
	}
	var (
		id   = c.Address.String()
		on   = c.After.On()
		last = slices.Concat(b.last.of(on), b.freed.of(on))
	)
	if c.Before != nil {
		last = append(last, b.freed.of(c.Before.On())...)
	}
	if (c.Slice == diff.Make || c.Slice == diff.Remake) && !c.After.Slice.Whole() {
		last = b.slice(c.Address, *c.After, last)
	}
	b.prepare(c, c.After.Slice.Host, last)
	if c.Record {
		refit := c.Before.Fit != c.After.Fit || !c.Before.Request.Equal(c.After.Request)
		b.step(id, "record", last, Record{Session: *c.After, Refit: refit})
	}
}

// slice creates the slice of a session, or lets it join one that it shares.
func (b *builder) slice(a resource.Address, s resource.Session, needs []string) []string {
	id, at := a.String(), s.Slice.Instance()
	with, made := b.shared[at]
	if made && s.Slice.Shared() && with.slice == s.Slice.Place() {
		return []string{b.add(Step{ID: id + "/slice", Group: id, Needs: slices.Concat(needs, with.made),
			Do: OpJSON{JoinSlice{Session: s, With: with.address}}, Undo: OpJSON{LeaveSlice{Address: a}}})}
	}
	create := CreateSlice{Session: s}
	if g, _ := b.live.GPU(s.Slice.Host, s.Slice.GPU); s.Slice.Percent > 0 {
		p, _ := g.Model.Profile(s.Slice.Profile)
		create.SMs = p.SMs
	}
	if made {
		create.Beside = &with.address
	}
	steps := []string{b.add(Step{ID: id + "/slice", Group: id, Needs: slices.Concat(needs, with.made),
		Do: OpJSON{create}, Undo: OpJSON{DestroySlice{Address: a, Slice: s.Slice}}})}
	if g, _ := b.desired.GPU(s.Slice.On()); s.MPS != "" {
		if m, runs := g.Of(s.Slice); runs {
			steps = []string{b.step(id, "mps", steps, RunMPS{Host: g.Host, GPU: g.UUID, MPS: m})}
		}
	}
	if !made {
		b.shared[at] = sharer{a, s.Slice.Place(), steps}
	}
	return steps
}

// prepare creates a session's body, or brings it up to date, after the sessions that it depends on.
func (b *builder) prepare(c diff.SessionChange, host string, needs []string) {
	id := c.Address.String()
	for _, name := range c.After.DependsOn {
		needs = slices.Concat(needs, b.up[name])
	}
	var made string
	runtime := resource.RuntimeNamed(c.After.Runtime)
	switch c.Body {
	case diff.Make, diff.Remake:
		needs = append(needs, b.image(*c.After)...)
		undo := Unprepare{Address: c.Address, Host: host, Runtime: c.After.Runtime, ID: c.After.ID}
		made = b.add(Step{ID: id + "/prepare", Group: id, Needs: needs, Do: OpJSON{b.preparation(*c.After)}, Undo: OpJSON{undo}})
	case diff.Refit:
		do := b.preparation(*c.After)
		do.How = Refit
		if now, _ := b.live.Body(host, c.After.Runtime, c.After.ID); !runtime.Rewrites && now.State != resource.Running && !c.After.Stopped {
			do.How = Start
		}
		step := Step{ID: id + "/prepare", Group: id, Needs: needs, Do: OpJSON{do}}
		if runtime.Rewrites && len(c.Before.Sealed) == 0 { // else the old secrets are not known
			undo := b.preparation(c.Before.Session)
			undo.How = Refit
			step.Undo = OpJSON{undo}
		}
		made = b.add(step)
	case diff.Keep, diff.Remove:
		return
	}
	b.up[c.Address.Name] = append(b.up[c.Address.Name], made)
}

func (b *builder) preparation(s resource.Session) Prepare {
	return Prepare{Session: s, Shared: slices.ContainsFunc(s.Slices(), b.isShared)}
}

// isShared reports whether others may use the slice: the facades then count only what the session's programs allocate.
func (b *builder) isShared(s resource.Slice) bool {
	g, there := b.live.GPU(s.Host, s.GPU)
	foreign := len(diff.ForeignProcesses(g, b.placements)) > 0 || g.Without(resource.ReadingProcesses)
	return there && s.Whole() && foreign || s.Shared()
}

// image gets the image of a session's container, once for all sessions that use it.
func (b *builder) image(s resource.Session) []string {
	host, _ := b.live.Host(s.Slice.Host)
	if s.Spec.Image == "" || host.Engine == nil {
		return nil
	}
	var (
		missing = host.Engine.Images[s.Spec.Image] == ""
		at      = imageKey{host.Name, s.Spec.Image}
		how     = PullImage
	)
	if s.Spec.Image == resource.DefaultImage && missing {
		how = BuildImage
	}
	if id, planned := b.images[at]; planned {
		return []string{id}
	}
	if !missing && s.Spec.Pull != resource.PullAlways {
		return nil
	}
	id := "image." + host.Name + "." + s.Spec.Image
	b.images[at] = b.add(Step{ID: id, Group: id, Do: OpJSON{EnsureImage{Host: host.Name, Image: s.Spec.Image, How: how}}})
	return []string{id}
}

// without is a list of steps without those of another.
func without(steps, others []string) []string {
	return slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return slices.Contains(others, s) })
}
