package place

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// refusals states, for each class of which some sessions do not fit, what blocks them.
func (f *fleet) refusals() []Refusal {
	var all []Refusal
	for _, cl := range f.classes {
		left := cl.waiting[cl.accepted:]
		if len(left) == 0 {
			continue
		}
		refusal := Refusal{Addresses: f.addresses(left), Advice: cl.refused}
		if cl.slot < 0 {
			refusal.Advice = f.refusal(cl, refusal.Addresses)
		}
		all = append(all, refusal)
	}
	return all
}

func (f *fleet) addresses(requests []int) []resource.Address {
	return prose.Each(requests, func(i int) resource.Address { return f.requests[i].Address })
}

func (f *fleet) refusal(cl *class, addresses []resource.Address) prose.Advice {
	var blocked prose.Groups[*card]
	cure, full, free := "", false, 0
	for _, c := range f.cards {
		if !cl.mayUse(c) {
			continue
		}
		if cl.devices > 1 && f.hasRoom(c, cl) {
			free++
			continue
		}
		why, first := f.obstacle(c, cl)
		blocked.Add(why, c)
		cure, full = cmp.Or(cure, first), full || first == ""
	}
	if len(blocked.Texts) == 0 && free == 0 {
		return f.nowhere(cl)
	}
	usable := f.count(cl, func(c *card) bool { return len(c.rowsFor(cl, cl.maxError())) > 0 })
	if 0 < usable && usable < cl.devices {
		return prose.Advice{What: fmt.Sprintf("%s needs %d MiB on each of %d GPUs of one model; host %s has %s with as much", cl.target.ShortName(), cl.target.MemoryMiB, cl.devices, cl.place(), prose.Count(usable, "GPU")),
			Fix: fmt.Sprintf("gpus = %d, or %d more such %s", usable, cl.devices-usable, prose.Choose(cl.devices-usable, "GPU", "GPUs"))}
	}
	const shown = 3
	var parts []string
	for _, why := range blocked.Texts[:min(shown, len(blocked.Texts))] {
		parts = append(parts, f.cardNames(blocked.Of[why])+": "+why)
	}
	if more := len(blocked.Texts) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more reasons on other GPUs", more))
	}
	ways := f.moreRoom(cl, addresses)
	mayShare := func(c *card) bool { return c.permits(resource.SharingTime) }
	if cure == "" && f.couldShare(cl) && f.count(cl, mayShare) > 0 {
		ways = append(ways, `sharing = "time-slice", which divides the memory alone`)
	}
	if move := f.move(cl); move != "" {
		ways = append([]string{move}, ways...)
	}
	switch {
	case full && cure != "":
		ways = append(ways, cure)
	case cure != "":
		ways = append([]string{cure}, ways...)
	case len(ways) == 0:
		ways = []string{"a smaller target"}
	}
	need := fmt.Sprintf("%s needs %d MiB", cl.target.ShortName(), cl.target.MemoryMiB)
	if cl.devices > 1 {
		need += fmt.Sprintf(" on each of %d GPUs of one model", cl.devices)
		there := f.count(cl, func(*card) bool { return true })
		parts = append([]string{fmt.Sprintf("of the GPUs of host %s, %d %s of this model, and %s room", cl.place(), there, cl.model, prose.Plural(free, "has", "have"))}, parts...)
		if f.count(cl, func(c *card) bool { return c.Model.MIG() && !c.canBeWhole() }) > 0 {
			parts = append(parts, "a CUDA process enumerates one MIG device, so that several devices are whole GPUs")
		}
		if free > 1 {
			ways = append([]string{fmt.Sprintf("gpus = %d", free)}, ways...)
		}
	}
	if len(addresses) > 1 {
		need = resource.AddressNames(addresses, 3) + ": " + need + " each"
	}
	return prose.Advice{What: need + "; " + strings.Join(parts, "; "), Fix: strings.Join(ways, ", or ")}
}

// count counts the GPUs of a kind that a class may use.
func (f *fleet) count(cl *class, which func(*card) bool) (n int) {
	for _, c := range f.cards {
		if cl.mayUse(c) && which(c) {
			n++
		}
	}
	return n
}

// permits reports whether the host of a card permits a kind of sharing.
func (c *card) permits(kind resource.Sharing) bool {
	return len(c.Sharing) == 0 || slices.Contains(c.Sharing, kind)
}

// couldShare reports whether time slices may make room: for sessions that want slices alone, or that would have whole
// GPUs without MIG and leave half of the memory free.
func (f *fleet) couldShare(cl *class) bool {
	halfEmpty := func(c *card) bool {
		return c.isWhole() && !c.Model.MIG() && c.Model.MemoryMiB >= 2*cl.target.MemoryMiB
	}
	return cl.sharing == resource.SharingMIG || cl.sharing == resource.SharingAuto && f.count(cl, halfEmpty) > 0
}

// nowhere returns the refusal of a class that may use no GPU.
func (f *fleet) nowhere(cl *class) prose.Advice {
	for _, c := range f.cards {
		if d := c.ForeignMPS; d != nil && cl.mayBeOn(c.Host) && (cl.gpu == "" || cl.gpu == c.UUID) {
			return prose.Advice{What: fmt.Sprintf("%s has an MPS daemon of %s, process %d, which cosplay leaves alone, and no other GPU may be used", c.label(), d.User, d.PID),
				Fix: "that its owner ends it " + d.Ending() + `, or sharing = "time-slice"`}
		}
	}
	if cl.gpu != "" {
		return prose.Advice{What: fmt.Sprintf("%s of host %s may not be used", cl.gpu, cl.place()),
			Fix: "another GPU, or gpu left out"}
	}
	return prose.Advice{What: fmt.Sprintf("host %s has no GPU that may be used", cl.place()), Fix: "another host, or more GPUs in the host's gpus list"}
}

// cardNames lists GPUs: "GPU 0 and GPU 1", "GPU 0, GPU 1 and 6 more".
func (f *fleet) cardNames(cards []*card) string {
	return prose.And(prose.Few(prose.Each(cards, (*card).label), 2))
}

const noParts = "its driver offers no slice that is a part of a GPU instance"

// obstacle returns what keeps one more session of a class off a GPU and, unless the cause is lack of room, how to
// remove the obstacle.
func (f *fleet) obstacle(c *card, cl *class) (why, cure string) {
	if why, cure = c.unsuited(cl); why != "" {
		return why, cure
	}
	near := c.rowsFor(cl, cl.maxError())
	smallest := near[len(near)-1]
	if len(near) > 1 && smallest == c.model.whole() {
		smallest = near[len(near)-2]
	}
	switch {
	case smallest == c.model.whole():
		return c.whyNotWhole(len(c.occupants)), ""
	case cl.slot >= 0 && c.canTakeSlices():
		return f.whyNotThere(c, cl)
	}
	return c.whyNoSlice(smallest)
}

// unsuited returns why a GPU does not suit a class however much room it has, and how to change that; "" if it does.
func (c *card) unsuited(cl *class) (why, cure string) {
	if len(c.model.clocks) == 0 {
		return "it reports no SM clock", "baseline_clock in the host block"
	}
	named, known := c.Model.Profile(cl.slice)
	switch wantsSlice := cl.slice != "" || cl.sharing == resource.SharingMIG || cl.sharing == resource.SharingCompute; {
	case wantsSlice && !c.Model.MIG() && c.permits(resource.SharingTime):
		return "no MIG slices", `sharing = "time-slice"`
	case wantsSlice && !c.Model.MIG():
		return "no MIG slices", "a GPU with MIG"
	case cl.slice != "" && !known:
		return fmt.Sprintf("it has no profile %s; it has %s", cl.slice, prose.And(c.profileNames())), "one of its profiles"
	case c.model.noParts && (resource.Slice{Profile: cl.slice}).Divides():
		return noParts, fmt.Sprintf("slice = %q, or a newer driver", resource.Slice{Profile: cl.slice}.Instance().Profile)
	case c.model.noParts && cl.sharing == resource.SharingCompute:
		return noParts, `sharing = "time-slice", which divides the memory alone, or a newer driver`
	}
	holds := c.rowsFor(cl, impossible-1)
	near := c.rowsFor(cl, cl.maxError())
	switch {
	case len(holds) == 0 && known:
		return fmt.Sprintf("a %s has %d MiB", cl.slice, named.MemoryMiB), fmt.Sprintf("a target of at most %d MiB, or a larger slice", named.MemoryMiB)
	case len(holds) == 0:
		most := c.largestMiB()
		return fmt.Sprintf("its largest slice has %d MiB", most), fmt.Sprintf("a target of at most %d MiB, or a GPU with more memory", most)
	case len(near) == 0:
		closest := c.closest(cl, holds)
		return fmt.Sprintf("it comes no closer than %d %%, and fit.max_error is %d %%", percentUp(closest), percentUp(cl.maxError())),
			fmt.Sprintf("fit.max_error = \"%d%%\", or another target", percentUp(closest))
	case c.isShared() && c.occupants[0].slice.Sharing != cl.sharing:
		way := fmt.Sprintf("sharing = %q", c.occupants[0].slice.Sharing)
		return "sessions of this plan share it with " + way, way
	case c.isShared() && c.occupants[0].slice.Oversubscribed != cl.over:
		way := fmt.Sprintf("oversubscribe = %t", !cl.over)
		return "sessions of this plan share it with " + way, way
	case c.isShared() && cl.sharing == resource.SharingMPS && c.freeMiB(resource.Slice{}) >= cl.target.MemoryMiB:
		why = fmt.Sprintf("it needs %d %% of the SMs, and what shares them leaves %d %%", c.leastPercent(cl), c.freePercent(resource.Slice{}))
		if c.permits(resource.SharingTime) {
			cure = `sharing = "time-slice" for all of them, which does not divide the SMs`
		}
		return why, cure
	case c.isShared() && cl.shares():
		return fmt.Sprintf("of its %d MiB, what shares it leaves %d MiB", c.Model.MemoryMiB, c.freeMiB(resource.Slice{})), ""
	case c.isWhole():
		return "a session of this plan has the whole of it", ""
	case c.Hindered && !cl.acceptsError():
		error := c.closest(cl, []int{c.model.whole()})
		if error >= impossible {
			return c.whyNoSlice(near[0])
		}
		return fmt.Sprintf("foreign processes use it, so its MIG mode cannot be switched on, and a session would get the whole of it beside them, with an error of at least %d %%", percentUp(error)),
			fmt.Sprintf("to stop those processes, or fit { max_error = \"%d%%\" } to accept that error", percentUp(error))
	}
	return "", ""
}

// leastPercent is the smallest part of the SMs of a whole GPU that a class gets at any clock.
func (c *card) leastPercent(cl *class) int {
	if percents := c.model.chart(cl).percents[c.model.whole()]; len(percents) > 0 {
		return slices.Min(percents)
	}
	return 100
}

// rowsFor returns the profiles in which a class stays within an error at some clock.
func (c *card) rowsFor(cl *class, limit int64) []int {
	var rows []int
	for row, errors := range c.model.chart(cl).first {
		if c.model.offers(cl, row) && slices.ContainsFunc(errors, func(e int64) bool { return e <= limit }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// profileNames lists the profiles of a card, of GPU instances and of parts of them.
func (c *card) profileNames() (names []string) {
	for _, p := range c.Model.Profiles {
		names = append(names, p.Name)
		for _, part := range c.Model.Divisions(p) {
			names = append(names, part.Name)
		}
	}
	return names
}

func (c *card) closest(cl *class, rows []int) int64 {
	least := int64(impossible)
	for _, row := range rows {
		least = min(least, slices.Min(c.model.chart(cl).first[row]))
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
		return fmt.Sprintf("it would take the whole of it, and this plan has slices there (%d)", ours)
	case c.Mine > 0 && c.Mine == len(c.Foreign):
		return "it would take the whole of it, and your other projects have slices there"
	case len(c.Foreign) > 0:
		return "it would take the whole of it, and others have slices there"
	case !c.canBeWhole():
		return "it is in MIG mode, which may not be changed"
	}
	return "it is wanted for others of this configuration"
}

// whyNoSlice returns why one more slice of a profile does not fit on a card.
func (c *card) whyNoSlice(row int) (why, cure string) {
	p, index := c.model.profiles[row], c.model.parents[row]
	free := c.room()
	started := slices.ContainsFunc(p.Starts, func(start int) bool { return free.takes(p, index, start) })
	switch {
	case !c.canBeSliced() && c.Busy:
		return "it is not in MIG mode, which cannot be switched while foreign processes use it", "to stop those processes"
	case !c.canBeSliced():
		return "it is not in MIG mode, and the host leaves the mode alone", `"mig-mode" in the host's manage list`
	case c.NoSlices:
		return "no slice may be made on it", `"slices" in the host's manage list`
	case free.compute < p.ComputeSlices:
		return fmt.Sprintf("a %s takes %d of its %d compute slices, and %s free (%s)", p.Name, p.ComputeSlices, c.Model.ComputeSlices, stillFree(free.compute), c.holders()), ""
	case free.left[index] == 0:
		return fmt.Sprintf("no more than %d %s fit on it", p.MaxInstances, p.Name), ""
	case !started:
		return fmt.Sprintf("no place for a %s, which starts at slot %s and takes %d: %d of %d slots are taken (%s)",
			p.Name, startsText(p.Starts), p.MemorySlices, bits.OnesCount64(free.slots), c.Model.MemorySlices, c.holders()), ""
	}
	return "there is room, but no clock keeps all sessions on it within fit.max_error", "a higher fit.max_error"
}

func stillFree(n int) string {
	if n == 0 {
		return "none is"
	}
	return prose.Plural(n, "is", "are")
}

// startsText lists slots: "0, 2 or 4".
func startsText(starts []int) string {
	last := len(starts) - 1
	if last > 1 && starts[last]-starts[0] == last {
		return fmt.Sprintf("%d to %d", starts[0], starts[last])
	}
	return prose.Or(prose.Each(starts, strconv.Itoa))
}

// holders counts the slices on a card by owner: "5 sessions of this plan, a slice of your other projects, 2 foreign
// slices".
func (c *card) holders() string {
	var who []string
	if n := len(c.occupants); n > 0 {
		who = append(who, prose.Count(n, "session")+" of this plan")
	}
	if c.Mine > 0 {
		who = append(who, prose.Count(c.Mine, "slice")+" of your other projects")
	}
	if n := len(c.taken()) - len(c.own()) - c.Mine; n > 0 {
		who = append(who, prose.Count(n, "foreign slice"))
	}
	return strings.Join(who, ", ")
}

// moreRoom lists the smallest changes that make room.
func (f *fleet) moreRoom(cl *class, refused []resource.Address) (ways []string) {
	if first := refused[0]; first.Key.Kind == resource.ByCount {
		placed := 0
		for _, c := range f.cards {
			for _, s := range c.occupants {
				if f.requests[s.request].Address.Name == first.Name {
					placed++
				}
			}
		}
		if placed /= cl.devices; placed > 0 {
			ways = append(ways, fmt.Sprintf("count = %d for session.%s", placed, first.Name))
		}
	}
	if cl.slot >= 0 {
		return ways
	}
	if cl.gpu != "" {
		ways = append(ways, "gpu left out, for another GPU to be taken")
	} else if model, each := f.capacity(cl); each > 0 {
		ways = append(ways, fmt.Sprintf("%d more %s", (len(refused)*cl.devices+each-1)/each, model.ShortModel()))
	}
	return ways
}

// capacity returns how many sessions of a class fit on an empty GPU of the best model.
func (f *fleet) capacity(cl *class) (best resource.Model, most int) {
	var seen []*gpuModel
	for _, c := range f.cards {
		empty := &card{GPU: GPU{GPU: resource.GPU{Host: c.Host, UUID: c.UUID, Model: c.Model}}}
		empty.model = f.modelOf(empty.GPU)
		if !cl.mayUse(c) || slices.Contains(seen, empty.model) {
			continue
		}
		seen = append(seen, empty.model)
		if n := f.roomFor(cl, empty, 0, maxLoad); n > most {
			best, most = c.Model, n
		}
	}
	return best, most
}

// roomFor returns how many sessions of a class a card has room for with a slack, up to a limit. The class may be one
// that the fleet does not have, in the place of one that it has.
func (f *fleet) roomFor(cl *class, c *card, slack int64, limit int) int {
	trial := *f
	trial.classes = slices.Clone(f.classes)
	trial.classes[cl.id] = cl
	k := newKind(c, 0, trial.classes)
	k.cards = []*card{c}
	p := &packer{fleet: &trial, slack: slack, rows: map[*gpuModel]map[*class][]uint32{}}
	l := make(load, len(trial.classes))
	p.fill(k, l, cl.id, limit)
	return int(l[cl.id])
}

func percentUp(e int64) int64 { return (e*100 + one - 1) / one }
