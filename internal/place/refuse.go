package place

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/resource"
)

// refusals says of each class that does not fit wholly what is in its way.
func (f *fleet) refusals() []Refusal {
	var all []Refusal
	for _, cl := range f.classes {
		left := cl.waiting[cl.accepted:]
		if len(left) == 0 {
			continue
		}
		r := Refusal{}
		for _, i := range left {
			r.Addresses = append(r.Addresses, f.requests[i].Address)
		}
		r.Reason, r.Remedy = f.refusal(cl, r.Addresses)
		all = append(all, r)
	}
	return all
}

func (f *fleet) refusal(cl *class, addresses []resource.Address) (reason, remedy string) {
	var order []string
	blocked := map[string][]*card{}
	cure, full := "", false
	for _, c := range f.cards {
		if !cl.mayUse(c) {
			continue
		}
		why, first := f.obstacle(c, cl)
		if blocked[why] == nil {
			order = append(order, why)
		}
		blocked[why] = append(blocked[why], c)
		cure, full = cmp.Or(cure, first), full || first == ""
	}
	if len(order) == 0 {
		return f.nowhere(cl)
	}
	const shown = 3
	var parts []string
	for _, why := range order[:min(shown, len(order))] {
		parts = append(parts, f.cardNames(blocked[why])+": "+why)
	}
	if more := len(order) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more reasons on other GPUs", more))
	}
	ways := f.moreRoom(cl, addresses)
	switch {
	case full && cure != "":
		ways = append(ways, cure)
	case cure != "":
		ways = append([]string{cure}, ways...)
	case len(ways) == 0:
		ways = []string{"a smaller target"}
	}
	return f.need(cl) + "; " + strings.Join(parts, "; "), strings.Join(ways, ", or ")
}

// nowhere is the refusal of a class that no GPU is open to.
func (f *fleet) nowhere(cl *class) (reason, remedy string) {
	if cl.gpu != "" {
		return fmt.Sprintf("host %s has no GPU %s", cl.host, cl.gpu), "correct gpu, or leave it out"
	}
	return fmt.Sprintf("host %s has no GPU that may be used", cl.host), "name another host, or widen the host's gpus"
}

// need says what a session of a class takes.
func (f *fleet) need(cl *class) string {
	name := cl.target.ShortName()
	switch {
	case cl.aloneError >= impossible:
		return fmt.Sprintf("%s needs %d MiB", name, cl.target.MemoryMiB)
	case cl.alone.Profile == "":
		return name + " needs a whole GPU"
	}
	return fmt.Sprintf("%s needs a %s slice", name, cl.alone.Profile)
}

func (f *fleet) cardNames(cards []*card) string {
	if len(cards) == 1 {
		return f.label(cards[0])
	}
	return fmt.Sprintf("%s and %d more", f.label(cards[0]), len(cards)-1)
}

// obstacle says what keeps one more session of a class off a GPU and, where it is
// not the lack of room, what would clear it.
func (f *fleet) obstacle(c *card, cl *class) (why, cure string) {
	if len(c.board.clocks) == 0 {
		return "it reports no SM clock", "name its clock with baseline_clock"
	}
	holds := c.rowsFor(cl, impossible-1)
	near := c.rowsFor(cl, cl.maxError())
	switch {
	case len(holds) == 0:
		most := c.largestMiB()
		return fmt.Sprintf("its largest slice has %d MiB", most), fmt.Sprintf("a target of at most %d MiB, or a GPU with more memory", most)
	case len(near) == 0:
		closest := c.closest(cl, holds)
		return fmt.Sprintf("it comes no closer than %d %%, and fit.max_error is %d %%", percentUp(closest), percentUp(cl.maxError())),
			fmt.Sprintf("fit.max_error = \"%d%%\", or another target", percentUp(closest))
	case c.isWhole():
		return "one of ours has the whole of it", ""
	}
	smallest := near[len(near)-1]
	if len(near) > 1 && smallest == c.board.whole() {
		smallest = near[len(near)-2]
	}
	if smallest == c.board.whole() {
		return c.whyNotWhole(len(c.sitting)), ""
	}
	return c.whyNoSlice(c.board.profiles[smallest], smallest)
}

// rowsFor are the profiles in which a class stays within an error at some clock.
func (c *card) rowsFor(cl *class, limit int64) []int {
	var rows []int
	for row, errors := range c.board.chart(cl).first {
		if slices.ContainsFunc(errors, func(e int64) bool { return e <= limit }) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (c *card) closest(cl *class, rows []int) int64 {
	least := int64(impossible)
	for _, row := range rows {
		least = min(least, slices.Min(c.board.chart(cl).first[row]))
	}
	return least
}

func (c *card) largestMiB() int {
	most := c.Model.MemoryMiB
	for _, p := range c.Model.Profiles {
		most = max(most, p.MemoryMiB)
	}
	return most
}

func (c *card) whyNotWhole(ours int) string {
	switch {
	case ours > 0:
		return fmt.Sprintf("%d of ours in slices are on it", ours)
	case len(c.Foreign) > 0:
		return "slices of others are on it"
	case !c.canBeWhole():
		return "it is in MIG mode, which may not be changed"
	}
	return "it is wanted for others of this configuration"
}

// whyNoSlice says why a card does not take one more slice of a profile.
func (c *card) whyNoSlice(p resource.Profile, index int) (why, cure string) {
	free := c.room()
	started := slices.ContainsFunc(p.Starts, func(start int) bool { return free.takes(p, index, start) })
	switch {
	case !c.canBeSliced() && c.Busy:
		return "it is not in MIG mode, which cannot be switched while processes of others use it", "end those processes"
	case !c.canBeSliced():
		return "it is not in MIG mode, and the host leaves the mode alone", `add "mig-mode" to the host's manage list`
	case c.NoSlices:
		return "no slice may be made on it", `add "slices" to the host's manage list`
	case free.compute < p.ComputeSlices:
		all := c.Model.ComputeSlices
		return fmt.Sprintf("no free slot for a %s: %d of %d compute slices are taken (%s)", p.Name, all-free.compute, all, c.holders()), ""
	case free.left[index] == 0:
		return fmt.Sprintf("no more than %d %s fit on it", p.MaxInstances, p.Name), ""
	case !started:
		return fmt.Sprintf("no free slot for a %s, which starts at %s: %d of %d slots are taken (%s)",
			p.Name, startsText(p.Starts), bits.OnesCount64(free.slots), c.Model.MemorySlices, c.holders()), ""
	}
	return "there is room, but no clock keeps everybody on it within fit.max_error", "a higher fit.max_error"
}

// startsText lists slots: "0, 2 or 4".
func startsText(starts []int) string {
	text, last := "", len(starts)-1
	if last > 1 && starts[last]-starts[0] == last {
		return fmt.Sprintf("%d to %d", starts[0], starts[last])
	}
	for i, s := range starts {
		switch {
		case i == 0:
		case i == last:
			text += " or "
		default:
			text += ", "
		}
		text += strconv.Itoa(s)
	}
	return text
}

// holders counts who has slices: "5 ours, 2 of others".
func (c *card) holders() string {
	ours, others := len(c.sitting), len(c.taken())-len(c.sitting)
	switch {
	case others == 0:
		return fmt.Sprintf("%d ours", ours)
	case ours == 0:
		return fmt.Sprintf("%d of others", others)
	}
	return fmt.Sprintf("%d ours, %d of others", ours, others)
}

// moreRoom lists the smallest changes that make room.
func (f *fleet) moreRoom(cl *class, refused []resource.Address) (ways []string) {
	if first := refused[0]; first.Key.Kind == resource.ByCount {
		placed := 0
		for _, c := range f.cards {
			for _, s := range c.sitting {
				if f.requests[s.request].Address.Name == first.Name {
					placed++
				}
			}
		}
		if placed > 0 {
			ways = append(ways, fmt.Sprintf("count = %d for session.%s", placed, first.Name))
		}
	}
	if cl.gpu != "" {
		ways = append(ways, "gpu left out, for another GPU to be taken")
	} else if model, each := f.capacity(cl); each > 0 {
		ways = append(ways, fmt.Sprintf("%d more %s", (len(refused)+each-1)/each, model.ShortModel()))
	}
	return ways
}

// capacity is how many of a class an empty GPU takes, on the best of the models.
func (f *fleet) capacity(cl *class) (best resource.Model, most int) {
	var seen []*board
	for _, c := range f.cards {
		empty := &card{GPU: GPU{GPU: resource.GPU{Host: c.Host, UUID: c.UUID, Model: c.Model}}}
		empty.board = f.boardOf(empty.GPU)
		if !cl.mayUse(c) || slices.Contains(seen, empty.board) {
			continue
		}
		seen = append(seen, empty.board)
		k := newKind(empty, 0)
		k.cards = []*card{empty}
		p := &packer{fleet: f, rows: map[*board]map[*class][]uint32{}}
		l := make(load, len(f.classes))
		for l[cl.id] = 1; p.fit(k, l); l[cl.id]++ {
			if int(l[cl.id]) > most {
				best, most = c.Model, int(l[cl.id])
			}
		}
	}
	return best, most
}

// percentUp rounds an error up to whole percents.
func percentUp(e int64) int64 { return (e*100 + one - 1) / one }
