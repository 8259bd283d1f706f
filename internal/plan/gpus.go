package plan

import (
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// takeAgain puts a GPU of the state back into the host's ledger, before a step changes it.
func (b *builder) takeAgain(c diff.GPUChange) {
	if !c.Take || c.Baseline != nil {
		return
	}
	at := c.Key()
	b.taken[at] = []string{b.step(c.UUID, "take", nil, b.take(c))}
	b.freed[at], b.ended[at] = b.taken[at], b.taken[at]
}

// take is the entry for the host's ledger. A GPU that the state has already keeps its baseline.
func (b *builder) take(c diff.GPUChange) TakeGPU {
	op := TakeGPU{Host: c.Host, GPU: c.UUID, Holds: c.Holds, LockBefore: c.LockBefore, Whole: c.Whole}
	if c.Baseline != nil {
		op.Baseline = *c.Baseline
	} else if held, ok := b.prior.GPU(c.Host, c.UUID); ok {
		op.Baseline, op.LockBefore, op.FromState = held.Baseline, held.LockBefore, true
	}
	op.Others = prose.Each(c.Others, func(o resource.Holder) string { return o.Lineage })
	for _, s := range b.prior.Sessions {
		if s.Handle != nil && s.Slice.On() == c.Key() {
			slice := resource.LiveSlice{Slice: s.Slice.Place(), Handle: *s.Handle}
			if !slices.Contains(op.Slices, slice) {
				op.Slices = append(op.Slices, slice)
			}
		}
	}
	return op
}

// setUp changes a GPU after the sessions that have to leave it, one step after the other.
func (b *builder) setUp(c diff.GPUChange) {
	after := b.freed[c.Key()]
	step := func(what string, do Op) { after = []string{b.step(c.UUID, what, after, do)} }
	if c.Baseline != nil {
		step("take", b.take(c))
	}
	if c.Baseline == nil && c.Holds != (resource.Settings{}) {
		step("hold", HoldGPU{Host: c.Host, GPU: c.UUID, Holds: c.Holds})
	}
	if c.LockLost {
		step("doubt", DoubtClock{Host: c.Host, GPU: c.UUID})
	}
	for _, m := range b.stopped(c) {
		step(daemonStep("stop-mps", m), StopMPS{Host: c.Host, GPU: c.UUID, MPS: m})
	}
	for _, setting := range resource.SettingOrder {
		if value, changes := c.Settings.Get(setting); changes {
			step(setting.String(), SetGPU{Host: c.Host, GPU: c.UUID, Setting: setting, Value: value, Baseline: b.lateBaseline(c, setting)})
		}
	}
	for _, m := range c.RunMPS {
		if m.Profile == "" || b.goesOn(c.Key(), m) { // else it is started with the slice
			step(daemonStep("mps", m), RunMPS{Host: c.Host, GPU: c.UUID, MPS: m})
		}
	}
	b.last[c.Key()] = after
}

// lateBaseline is the value of a setting that has no baseline in the state: the length of time slices of a GPU that the
// project acquired before its host block had timeslice.
func (b *builder) lateBaseline(c diff.GPUChange, s resource.Setting) *int {
	held, ours := b.prior.GPU(c.Host, c.UUID)
	if !ours || s != resource.TimeSlice || held.Baseline.Has(s) || held.Applied.Has(s) {
		return nil
	}
	g, _ := b.live.GPU(c.Host, c.UUID)
	now, known := g.Now(s)
	if !known {
		return nil
	}
	return &now
}

// giveBack restores a GPU once no session runs on it. A setting that cannot be restored does not block the others,
// nor does a slice that stays: only MIG mode needs all slices removed, and only the release needs everything.
func (b *builder) giveBack(c diff.GPUChange) {
	at := c.Key()
	begin, before := b.ended[at], b.freed[at]
	step := func(what string, needs []string, do Op) {
		id := b.add(Step{ID: at.UUID + "/" + what, Group: at.UUID, Needs: needs, After: without(before, needs), Do: OpJSON{do}})
		before = append(slices.Clone(before), id)
	}
	for _, m := range b.stopped(c) { // before the compute mode lets other programs use the GPU
		step(daemonStep("stop-mps", m), begin, StopMPS{Host: c.Host, GPU: c.UUID, MPS: m})
		begin = before[len(before)-1:]
		for _, uuid := range strings.Split(m.GPUs, ",") { // the others come later
			if other := (resource.GPUKey{Host: c.Host, UUID: uuid}); other != at {
				b.ended[other] = append(b.ended[other], begin...)
			}
		}
	}
	// If the project has to wait for others with the rest, it must not make others wait.
	if c.Action == diff.Delete && c.Settings != (resource.Settings{}) {
		step("leave", begin, LeaveGPU{c.Host, c.UUID})
		begin = before[len(before)-1:]
	}
	for _, setting := range slices.Backward(resource.SettingOrder[:]) {
		value, changes := c.Settings.Get(setting)
		if !changes {
			continue
		}
		needs := begin
		if setting == resource.MIGMode {
			needs = slices.Concat(begin, b.freed[at])
		}
		step("restore-"+setting.String(), needs, SetGPU{Host: c.Host, GPU: c.UUID, Setting: setting, Value: value, Restore: true})
	}
	if c.Action == diff.Delete { // else a setting or slice is not restored yet
		needs := before
		if c.Abandon { // what cannot be restored does not keep the GPU
			needs = slices.Concat(begin, b.freed[at])
		}
		step("release", needs, ReleaseGPU{Host: c.Host, GPU: c.UUID, AsItIs: len(c.Others) > 0, Abandon: c.Abandon})
	}
}

// goesOn reports whether the MIG slice of an MPS daemon exists, and stays.
func (b *builder) goesOn(gpu resource.GPUKey, m resource.MPS) bool {
	for at := range b.shared {
		if at.On() == gpu && m.Serves(at) {
			return true
		}
	}
	return false
}

// stopped are the MPS daemons that end, without those that end with their slices.
func (b *builder) stopped(c diff.GPUChange) []resource.MPS {
	return slices.DeleteFunc(slices.Clone(c.StopMPS), func(m resource.MPS) bool { return b.withSlice[m.Folder] })
}

// daemonStep names a step with an MPS daemon within the group of its GPU.
func daemonStep(what string, m resource.MPS) string {
	if m.Profile == "" {
		return what
	}
	return fmt.Sprintf("%s-%d", what, m.Start)
}
