package place

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// A fleet is all input and all decisions of a placement, each in a fixed order.
type fleet struct {
	gpus     []GPU
	requests []Request // by address
	cards    []*card   // in the order in which placement fills them
	models   []*gpuModel
	classes  []*class // ordered by their first address
	classOf  []*class // the class of each request
	warnings []Warning
	squeeze  squeeze // of the classes that permit it
	trial    bool    // of another placement, whose refusals suggest no move
}

// A card is one GPU with the sessions that are placed on it.
type card struct {
	GPU
	model     *gpuModel
	occupants []occupant
	clockMHz  int  // the clock chosen for all of them
	pinned    bool // some are new, at slots that the configuration names
}

// occupant is a session that already has a slice on a card.
type occupant struct {
	request int
	class   *class
	slice   resource.Slice
	limit   int64 // the largest error that newcomers may cause for it
	pinned  bool  // it is new, at a slot that the configuration names
}

// newFleet returns a fleet in which nothing is placed. models are those of another fleet of the same GPUs and sessions,
// which takes long to compute, or nil.
func newFleet(gpus []GPU, requests []Request, by squeeze, models []*gpuModel) *fleet {
	f := &fleet{gpus: gpus, models: slices.Clone(models), squeeze: by, requests: slices.Clone(requests)}
	slices.SortStableFunc(f.requests, func(a, b Request) int { return a.Address.Compare(b.Address) })
	known := map[classKey]*class{}
	for _, r := range f.requests {
		k := keyOf(r)
		if known[k] == nil {
			profile, slot := resource.CutSlot(r.Want.Slice)
			known[k] = &class{id: len(f.classes), hosts: r.hosts(), gpu: k.want.GPU, target: r.Target, options: r.Want.Fit, sharing: r.Want.Sharing, devices: r.Want.Devices(), single: r.single, slice: profile, slot: slot, over: r.Want.Oversubscribe, fraction: r.Want.Fraction, squeeze: by}
			if r.single {
				known[k].devices = 1
			}
			f.classes = append(f.classes, known[k])
		}
		f.classOf = append(f.classOf, known[k])
	}
	for _, g := range gpus {
		f.cards = append(f.cards, &card{GPU: g, model: f.modelOf(g)})
	}
	slices.SortFunc(f.cards, (*card).compare)
	return f
}

func (c *card) compare(o *card) int {
	return cmp.Or(cmp.Compare(c.Host, o.Host), cmp.Compare(c.Index, o.Index), cmp.Compare(c.UUID, o.UUID))
}

// settle places the sessions that stay in their slices.
func (f *fleet) settle() {
	type place struct{ host, uuid string }
	byPlace := map[place]*card{}
	for _, c := range f.cards {
		byPlace[place{c.Host, c.UUID}] = c
	}
	problem := ""
	for i, r := range f.requests {
		if i == 0 || r.Address != f.requests[i-1].Address {
			problem = ""
			for _, device := range f.devicesFrom(i) {
				if at := device.Kept; at != nil {
					problem = cmp.Or(problem, f.problem(byPlace[place{at.Host, at.GPU}], device, *at))
				}
			}
			if problem != "" {
				f.warnings = append(f.warnings, Warning{Text: fmt.Sprintf("%s cannot stay in its slice: %s; it gets a new placement", r.Address, problem)})
			}
		}
		if r.Kept == nil || problem != "" {
			f.classOf[i].waiting = append(f.classOf[i].waiting, i)
			continue
		}
		c := byPlace[place{r.Kept.Host, r.Kept.GPU}]
		c.occupants = append(c.occupants, occupant{request: i, class: f.classOf[i], slice: *r.Kept})
	}
	for _, c := range f.classes {
		if c.devices > 1 { // those of one session are as far apart as there are sessions
			slices.SortStableFunc(c.waiting, func(a, b int) int { return cmp.Compare(f.requests[a].device, f.requests[b].device) })
		}
	}
	f.sortCards()
}

// sortCards sorts the GPUs: first those that the project uses, then those that no other process uses.
func (f *fleet) sortCards() {
	rank := func(c *card) (rank int) {
		if len(c.occupants) == 0 {
			rank += 2
		}
		if c.shared() {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(f.cards, func(a, b *card) int { return rank(a) - rank(b) })
}

// problem returns why a session cannot be in a slice, or "".
func (f *fleet) problem(c *card, r Request, at resource.Slice) string {
	_, slot := resource.CutSlot(r.Want.Slice)
	switch {
	case slot >= 0 && slot != at.Start:
		return fmt.Sprintf("the configuration puts it at slot %d", slot)
	case at.Host != r.Want.Host || r.Want.GPU != "" && r.Want.GPU != at.GPU:
		return "it is to run on another GPU"
	case c == nil:
		return "its GPU is not there"
	case at.Whole() && !c.canBeWhole():
		return fmt.Sprintf("%s is in MIG mode or has foreign slices", c.label())
	case !at.Whole() && !c.canBeSliced():
		return fmt.Sprintf("%s is not in MIG mode, which may not be changed", c.label())
	}
	if p, ok := c.Model.Profile(at.Profile); !at.Whole() && (!ok || p.MemorySlices != at.Size || !slices.Contains(p.Starts, at.Start) || !slices.Contains(c.Model.ComputeStarts(at.Profile), at.ComputeStart)) {
		return fmt.Sprintf("%s has no place for a %s at slot %d", c.label(), at.Profile, at.Start)
	}
	taken := c.taken()
	beside := slices.ContainsFunc(taken, within(at.Instance()))
	if p, _ := c.Model.Profile(at.Profile); !at.Whole() && !beside && c.roomBeside(taken).compute < p.ComputeSlices {
		return fmt.Sprintf("the compute slices of %s are taken", c.label())
	}
	if at.Shared() && !at.Oversubscribed && c.freeMiB(at) < r.Target.MemoryMiB {
		return fmt.Sprintf("the sessions that share %s need more memory than it has", c.shareName(at))
	}
	if at.Percent > c.freePercent(at) {
		return fmt.Sprintf("the sessions that share %s need more of its SMs than it has", c.label())
	}
	for _, s := range c.occupants {
		if s.slice.Overlaps(at) || s.slice.Divides() && within(at.Instance())(s.slice) && !(s.slice.Shared() && at.Shared()) {
			return fmt.Sprintf("%s has it", f.requests[s.request].Address)
		}
	}
	for _, s := range c.Foreign {
		if s.Overlaps(at) {
			return fmt.Sprintf("the foreign slice %s at slot %d overlaps it", s.Profile, s.Start)
		}
	}
	return ""
}

// shared reports whether processes outside the project use the GPU.
func (c *card) shared() bool { return len(c.Foreign) > 0 || c.Busy }

// stuckMIG reports whether the MIG mode cannot be changed.
func (c *card) stuckMIG() bool { return c.Fixed[resource.MIGMode] || c.Busy || len(c.Foreign) > 0 }

// canBeSliced reports whether the GPU is in MIG mode or may be switched to it.
func (c *card) canBeSliced() bool { return c.Model.MIG() && (c.MIG || !c.stuckMIG()) }

// canTakeSlices reports whether cosplay may create slices on the GPU.
func (c *card) canTakeSlices() bool { return c.canBeSliced() && !c.NoSlices && !c.isWhole() }

// canBeWhole reports whether MIG is off or may be switched off.
func (c *card) canBeWhole() bool { return len(c.Foreign) == 0 && (!c.MIG || !c.stuckMIG()) }

// isShared reports whether sessions share the whole GPU.
func (c *card) isShared() bool { return c.isWhole() && c.occupants[0].slice.Shared() }

// freeMiB is the memory of a slice or of the whole GPU that the sessions there leave to others.
func (c *card) freeMiB(at resource.Slice) int {
	free := c.Model.MemoryMiB
	if p, ok := c.Model.Profile(at.Profile); ok {
		free = p.MemoryMiB
	}
	for _, s := range c.occupants {
		if instance := s.slice.Instance(); instance.Profile == at.Instance().Profile && instance.Start == at.Start {
			free -= s.class.memoryMiB()
		}
	}
	return free
}

// shareName names what sessions share on a card.
func (c *card) shareName(at resource.Slice) string {
	if at.Whole() {
		return c.label()
	}
	return fmt.Sprintf("the %s at slot %d of %s", at.Profile, at.Start, c.label())
}

// freePercent is the part of the SMs of a slice or of the whole GPU that the sessions there leave to others by MPS.
func (c *card) freePercent(at resource.Slice) int {
	free := 100
	for _, s := range c.occupants {
		if s.slice.Profile == at.Profile && s.slice.Start == at.Start {
			free -= s.slice.Percent
		}
	}
	return free
}

// byTurns reports whether two sessions share a slice or a whole GPU, and one of them runs at a time.
func (s occupant) byTurns(o occupant) bool { return s.slice.Beside(o.slice) && s.slice.Percent == 0 }

// isWhole reports whether sessions have the whole GPU without MIG.
func (c *card) isWhole() bool { return len(c.occupants) > 0 && c.occupants[0].slice.Whole() }

// measure computes the fit that each class would have alone. From that it computes how far newcomers may move the
// clock of sessions that are already placed.
func (f *fleet) measure() {
	type offer struct {
		host          string
		model         *gpuModel
		slices, whole bool
	}
	var offers []offer
	var cards []*card
	for _, c := range f.cards {
		o := offer{c.Host, c.model, c.canBeSliced() && !c.NoSlices, c.canBeWhole()}
		if !slices.Contains(offers, o) {
			offers, cards = append(offers, o), append(cards, c)
		}
	}
	for _, c := range f.classes {
		c.aloneError = impossible
		if c.devices > 1 {
			c.model = f.modelFor(c)
		}
		if c.gpu != "" {
			c.measure(f.cards)
		} else {
			c.measure(cards)
		}
	}
	for _, c := range f.cards {
		for i := range c.occupants {
			c.occupants[i].limit = c.limitOf(c.occupants[i])
		}
	}
}

// measure computes the best slice that these cards could give if they were empty.
func (c *class) measure(cards []*card) {
	var best cost
	roomy := c
	if c.squeeze.sms { // alone, a session has the part of the SMs that comes closest
		copied := *c
		copied.squeeze.sms = false
		roomy = &copied
	}
	for _, card := range cards {
		if !c.mayUse(card) {
			continue
		}
		b := card.model
		for row := range b.whole() + 1 {
			whole := row == b.whole()
			if !b.offers(c, row) || whole && !card.canBeWhole() || !whole && (!card.canBeSliced() || card.NoSlices) {
				continue
			}
			for i, clock := range b.clocks {
				first := b.chart(roomy).first[row][i]
				if first >= impossible {
					continue
				}
				if found := b.cost(roomy, row, i); c.aloneError == impossible || found.compare(best) < 0 {
					best, c.aloneError = found, first
					c.alone = b.at(c, resource.Slice{Profile: b.profileName(row), Percent: b.percent(roomy, row, i)}, clock)
				}
			}
		}
	}
}

// limitOf returns the largest error that a clock change may cause for a session: the error that it would have alone
// plus its tolerance, or its present error if that is larger.
func (c *card) limitOf(s occupant) int64 {
	errors, _ := c.errorsOf(s)
	now := int64(impossible)
	for _, e := range errors {
		now = min(now, e)
	}
	if clock, ok := c.clockNow(); ok {
		now, _ = s.class.errors(c.model.at(s.class, s.slice, clock))
	}
	return max(now, s.class.limit(0))
}

// errorsOf returns the errors of an occupant at each clock, in the form of a chart.
func (c *card) errorsOf(s occupant) (first, second []int64) {
	for row := range c.model.whole() + 1 {
		if c.model.profileName(row) == s.slice.Profile && s.slice.Percent == 0 && c.model.offers(s.class, row) {
			chart := c.model.chart(s.class)
			return chart.first[row], chart.second[row]
		}
	}
	return c.model.errors(s.class, s.class.target.MemoryMiB, func(clock int) resource.Fit {
		return c.model.at(s.class, s.slice, c.model.clocks[clock])
	})
}

// occupantCosts returns the cost of the sessions on a card at each clock.
func (c *card) occupantCosts() []cost {
	costs := make([]cost, len(c.model.clocks))
	for _, s := range c.occupants {
		first, second := c.errorsOf(s)
		for i := range costs {
			costs[i] = costs[i].plus(s.class.cost(first[i], second[i], 0))
		}
	}
	return costs
}

// clockNow returns the locked clock of the GPU in MHz, if it is known.
func (c *card) clockNow() (int, bool) {
	switch {
	case c.FixedClockMHz != nil:
		return *c.FixedClockMHz, true
	case c.LockMHz != nil && *c.LockMHz == 0:
		return c.Model.MaxClockMHz(), true
	case c.LockMHz != nil:
		return *c.LockMHz, true
	}
	return 0, false
}
