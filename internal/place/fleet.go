package place

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/resource"
)

// A fleet is everything that placement knows and decides, in fixed orders.
type fleet struct {
	requests []Request // by address
	cards    []*card   // in the order in which they are filled
	hosts    int
	models   []*gpuModel
	classes  []*class // by their first address
	classOf  []*class // by request
	refused  map[*class]string
	warnings []string
}

// A card is one GPU with the sessions that sit on it.
type card struct {
	GPU
	model     *gpuModel
	occupants []occupant
	clockMHz  int // chosen for all of them
}

// occupant is a session on a card.
type occupant struct {
	request int
	class   *class
	slice   resource.Slice
	limit   int64 // the error that newcomers may bring it to
}

func newFleet(gpus []GPU, requests []Request) *fleet {
	f := &fleet{requests: slices.Clone(requests), refused: map[*class]string{}}
	slices.SortFunc(f.requests, func(a, b Request) int { return a.Address.Compare(b.Address) })
	known := map[classKey]*class{}
	for _, r := range f.requests {
		k := keyOf(r)
		if known[k] == nil {
			known[k] = &class{id: len(f.classes), host: k.host, gpu: k.gpu, target: r.Target, options: r.Want.Fit}
			f.classes = append(f.classes, known[k])
		}
		f.classOf = append(f.classOf, known[k])
	}
	hosts := map[string]bool{}
	for _, g := range gpus {
		f.cards = append(f.cards, &card{GPU: g, model: f.modelOf(g)})
		hosts[g.Host] = true
	}
	f.hosts = len(hosts)
	slices.SortFunc(f.cards, func(a, b *card) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
	})
	return f
}

func (f *fleet) modelOf(g GPU) *gpuModel {
	for _, b := range f.models {
		if b.is(g.Model, g.FixedClockMHz) {
			return b
		}
	}
	f.models = append(f.models, newModel(g.Model, g.FixedClockMHz))
	return f.models[len(f.models)-1]
}

// settle places the sessions whose slice is given and sorts the GPUs: those that
// we use come first, then those that we have to ourselves.
func (f *fleet) settle() {
	type place struct{ host, uuid string }
	byPlace := map[place]*card{}
	for _, c := range f.cards {
		byPlace[place{c.Host, c.UUID}] = c
	}
	for i, r := range f.requests {
		at := r.settled()
		if at == nil {
			f.classOf[i].waiting = append(f.classOf[i].waiting, i)
			continue
		}
		c := byPlace[place{at.Host, at.GPU}]
		if problem := f.problem(c, r, *at); problem != "" {
			f.warnings = append(f.warnings, fmt.Sprintf("%s cannot stay in its slice: %s; it is placed anew", r.Address, problem))
			f.classOf[i].waiting = append(f.classOf[i].waiting, i)
			continue
		}
		c.occupants = append(c.occupants, occupant{request: i, class: f.classOf[i], slice: *at})
	}
	slices.SortStableFunc(f.cards, func(a, b *card) int {
		return cmp.Or(orderBool(len(a.occupants) == 0, len(b.occupants) == 0), orderBool(a.shared(), b.shared()))
	})
}

// problem says why a session cannot be in a slice, "" if it can.
func (f *fleet) problem(c *card, r Request, at resource.Slice) string {
	switch {
	case c == nil:
		return "its GPU is not there"
	case c.Host != r.Want.Host || r.Want.GPU != "" && r.Want.GPU != c.UUID:
		return "it is to run on another GPU"
	case at.Whole() && !c.canBeWhole():
		return fmt.Sprintf("GPU %d is in MIG mode or has slices of others", c.Index)
	case !at.Whole() && r.Fixed == nil && !c.canBeSliced():
		return fmt.Sprintf("GPU %d is not in MIG mode, which may not be changed", c.Index)
	}
	if p, ok := c.Model.Profile(at.Profile); !at.Whole() && (!ok || p.MemorySlices != at.Size || !slices.Contains(p.Starts, at.Start)) {
		return fmt.Sprintf("GPU %d has no place for a %s at slot %d", c.Index, at.Profile, at.Start)
	}
	if p, _ := c.Model.Profile(at.Profile); !at.Whole() && r.Fixed == nil && c.room().compute < p.ComputeSlices {
		return fmt.Sprintf("the compute slices of GPU %d are taken", c.Index)
	}
	for _, s := range c.occupants {
		if s.slice.Overlaps(at) {
			return fmt.Sprintf("%s has it", f.requests[s.request].Address)
		}
	}
	for _, s := range c.Foreign {
		if s.Overlaps(at) && !(r.Fixed != nil && s.Slice == at) {
			return fmt.Sprintf("a slice of others, %s at slot %d, is in it", s.Profile, s.Start)
		}
	}
	return ""
}

// shared reports whether others use the GPU too.
func (c *card) shared() bool { return len(c.Foreign) > 0 || c.Busy }

// stuckMIG reports whether the MIG mode has to stay as it is.
func (c *card) stuckMIG() bool { return c.FixedMIG || c.Busy || len(c.Foreign) > 0 }

// canBeSliced reports whether the GPU is in MIG mode or may be put into it.
func (c *card) canBeSliced() bool { return c.Model.MIG() && (c.MIG || !c.stuckMIG()) }

// canTakeSlices reports whether new slices may be made.
func (c *card) canTakeSlices() bool { return c.canBeSliced() && !c.NoSlices && !c.isWhole() }

// canBeWhole reports whether the GPU is out of MIG mode or may be taken out.
func (c *card) canBeWhole() bool { return len(c.Foreign) == 0 && (!c.MIG || !c.stuckMIG()) }

// isWhole reports whether a session has the GPU without MIG.
func (c *card) isWhole() bool { return len(c.occupants) > 0 && c.occupants[0].slice.Whole() }

// measure finds what each class would get alone and, from that, how far
// newcomers may move the clock under those who sit already.
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
		if c.gpu != "" {
			cards := slices.DeleteFunc(slices.Clone(f.cards), func(card *card) bool { return card.UUID != c.gpu })
			f.measureClass(c, cards)
			continue
		}
		f.measureClass(c, cards)
	}
	for _, c := range f.cards {
		for i := range c.occupants {
			c.occupants[i].limit = c.limitOf(c.occupants[i], f.requests[c.occupants[i].request].Fixed != nil)
		}
	}
}

// measureClass finds the best slice of these cards, were they empty.
func (f *fleet) measureClass(c *class, cards []*card) {
	var best cost
	for _, card := range cards {
		if !c.mayUse(card) {
			continue
		}
		b := card.model
		for row := range b.whole() + 1 {
			if row == b.whole() && !card.canBeWhole() || row < b.whole() && (!card.canBeSliced() || card.NoSlices) {
				continue
			}
			for i, clock := range b.clocks {
				first := b.chart(c).first[row][i]
				if first >= impossible {
					continue
				}
				if found := b.cost(c, row, i); c.aloneError == impossible || found.compare(best) < 0 {
					best, c.aloneError = found, first
					c.alone = b.at(c, b.profileName(row), clock)
				}
			}
		}
	}
}

// limitOf is the error up to which the clock may be moved under a session: its
// tolerance over its error alone, or the error that it has already.
func (c *card) limitOf(s occupant, fixed bool) int64 {
	if fixed {
		return impossible
	}
	errors, _ := c.errorsOf(s)
	now := slices.Min(append(slices.Clone(errors), impossible))
	if clock, ok := c.clockNow(); ok {
		now, _ = s.class.errors(c.model.at(s.class, s.slice.Profile, clock))
	}
	return max(now, s.class.limit(0))
}

// errorsOf gives the errors of an occupant at each clock, as a chart does.
func (c *card) errorsOf(s occupant) (first, second []int64) {
	for row := range c.model.whole() + 1 {
		if c.model.profileName(row) == s.slice.Profile {
			chart := c.model.chart(s.class)
			return chart.first[row], chart.second[row]
		}
	}
	return c.model.errors(s.class, s.slice.Profile, s.class.target.MemoryMiB)
}

// occupantCosts gives the cost, at each clock, of the sessions on a card.
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

// clockNow is the clock that the GPU is held at, in MHz, if that is known.
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

// orderBool puts false before true.
func orderBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
