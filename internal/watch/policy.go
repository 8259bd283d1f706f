// Package watch is the reconcile loop: it reads the hosts again and again, repairs the drift that its policy allows,
// and reports everything else. The decisions are pure; Loop carries them out.
package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Permission is what the loop may do about a class of drift.
type Permission int

// The permissions.
const (
	Never    Permission = iota
	Harmless            // repair it if no program that works has to end
	Always              // also if programs end
)

// Policy is what the loop may do without asking.
type Policy struct {
	Repairs map[diff.Class]Permission
	Apply   bool // apply a configuration that has changed
	PerHour int  // repairs of one session or GPU in an hour, at most
}

// The words for several classes.
const (
	RepairNone = "none"
	RepairSafe = "safe" // the default: whatever ends no program that works
	RepairAll  = "all"
)

// RepairWords are the words that ParseRepairs knows.
func RepairWords() []string {
	return append([]string{RepairNone, RepairSafe, RepairAll}, prose.Each(diff.Classes(), func(c diff.Class) string { return string(c) })...)
}

// ParseRepairs reads what to repair: "none", "safe", "all", or classes of drift. The last word for a class decides.
func ParseRepairs(typed []string) (map[diff.Class]Permission, error) {
	allowed := map[diff.Class]Permission{}
	for _, word := range typed {
		switch class := diff.Class(word); {
		case word == RepairNone:
			clear(allowed)
		case word == RepairSafe:
			for _, c := range diff.Classes() {
				allowed[c] = max(allowed[c], Harmless)
			}
		case word == RepairAll:
			for _, c := range diff.Classes() {
				allowed[c] = Always
			}
		case slices.Contains(diff.Classes(), class):
			allowed[class] = Always
		default:
			return nil, fmt.Errorf("--repair knows no drift %q; write words of these: %s", word, strings.Join(RepairWords(), ", "))
		}
	}
	return allowed, nil
}

// Why is a reason why drift stays.
type Why string

// The reasons.
const (
	NotAllowed   Why = "not-allowed"   // --repair does not name the class
	EndsPrograms Why = "ends-programs" // programs that work would end, and --repair does not name the class
	OnItsGPU     Why = "on-its-gpu"    // the repair would change settings of the GPU, which may not be changed
	Exhausted    Why = "exhausted"     // there were too many repairs in the last hour
	BackingOff   Why = "backing-off"   // the last repair failed, and the next one has to wait
	Differs      Why = "file-differs"  // the configuration has the session otherwise, and is not applied
	OthersUse    Why = "others-use-it" // others use the GPU, so that its settings stay
	AllDiffer    Why = "all-differ"    // the configuration has each session of the GPU otherwise, and is not applied
	Unread       Why = "engine-silent" // the container engine does not answer, so that the session was not read
)

// Left is a session or GPU whose drift or change stays as it is.
type Left struct {
	Address resource.Address // zero for a GPU
	GPU     resource.GPUKey  // zero for a session
	Why     Why
}

// Judgement is what the loop does about a plan.
type Judgement struct {
	Repairs []resource.Address // sessions that the next run may change, with those without a change on a GPU that is repaired
	Keys    []string           // of the history: what is repaired
	Changed []resource.Address // sessions that the configuration has otherwise than the state
	Left    []Left
}

// Judge decides about every session and GPU of a plan. blocked says of what the history has whether its repair has to
// wait.
func (p Policy) Judge(planned *plan.Plan, live resource.Live, prior resource.Prior, blocked func(key string) Why) Judgement {
	var j Judgement
	gpus := p.gpus(planned, prior, blocked)
	for i := range planned.Diff.Sessions {
		c := &planned.Diff.Sessions[i]
		on := gpusOf(*c)
		gpu := judged(gpus, on)
		why, keys := gpu.why, append([]string{c.Address.String()}, gpu.keys...)
		switch {
		case c.Action == diff.NoOp:
			if len(gpu.keys) > 0 && gpu.why == "" {
				j.Repairs, j.Keys = append(j.Repairs, c.Address), append(j.Keys, gpu.keys...)
			}
			continue
		case live.Unread(on[0].Host):
			why = Unread
		case configured(*c, planned.Diff):
			j.Changed = append(j.Changed, c.Address)
			why, keys = Differs, keys[:1]
			if p.Apply {
				why = blocked(keys[0])
			}
		default:
			if why == NotAllowed {
				why = OnItsGPU
			}
			if why = cmp.Or(p.session(*c, planned.Diff, live), why); why == "" {
				why = blocked(keys[0])
			}
		}
		if why != "" {
			j.Left = append(j.Left, Left{Address: c.Address, Why: why})
		} else {
			j.Repairs, j.Keys = append(j.Repairs, c.Address), append(j.Keys, keys...)
		}
	}
	slices.Sort(j.Keys)
	j.Keys = slices.Compact(j.Keys)
	j.Left = append(j.Left, leftGPUs(planned, gpus)...)
	return j
}

// leftGPUs are the GPUs of which a setting or the MPS daemon has drifted and stays so.
func leftGPUs(planned *plan.Plan, gpus map[resource.GPUKey]gpuJudgement) []Left {
	var all []Left
	for _, d := range planned.Diff.Drift {
		key := resource.GPUKey{Host: d.Host, UUID: d.GPU}
		if _, is := d.Class.Setting(); !is && d.Class != diff.MPSChanged || d.Session != nil || d.Informational {
			continue
		}
		left := Left{GPU: key, Why: OthersUse}
		if g, changes := gpus[key]; changes {
			left.Why = g.why
		}
		if left.Why != "" && !slices.Contains(all, left) {
			all = append(all, left)
		}
	}
	return all
}

// without makes a judgement about a plan that leaves sessions out complete.
func (j Judgement) without(changed []resource.Address, prior resource.Prior) Judgement {
	j.Changed = changed
	for i, left := range j.Left {
		if left.Why == OthersUse && !slices.ContainsFunc(prior.Sessions, func(s resource.PriorSession) bool {
			return s.IsOn(left.GPU) && !slices.Contains(changed, s.Address)
		}) {
			j.Left[i].Why = AllDiffer
		}
	}
	return j
}

// gpuJudgement is why the settings of a GPU stay as they are; "" if they are set.
type gpuJudgement struct {
	keys []string // of the history
	why  Why
}

// gpus decides about the GPUs whose settings or MPS daemon the plan changes.
func (p Policy) gpus(planned *plan.Plan, prior resource.Prior, blocked func(string) Why) map[resource.GPUKey]gpuJudgement {
	all := map[resource.GPUKey]gpuJudgement{}
	for _, g := range planned.Diff.GPUs {
		if g.Settings == (resource.Settings{}) && len(g.RunMPS)+len(g.StopMPS) == 0 && g.Action != diff.Create && g.Action != diff.Delete {
			continue
		}
		key := g.Host + " " + g.UUID
		why := p.gpu(g, prior)
		if why == "" {
			why = blocked(key)
		}
		all[g.Key()] = gpuJudgement{keys: []string{key}, why: why}
	}
	return all
}

// gpu says why a GPU may not be changed; "" if it may. That the configuration differs comes first.
func (p Policy) gpu(g diff.GPUChange, prior resource.Prior) (why Why) {
	held, ours := prior.GPU(g.Host, g.UUID)
	change := func(drifted bool, class diff.Class) {
		switch {
		case !drifted && !p.Apply:
			why = Differs
		case drifted && p.Repairs[class] == Never:
			why = cmp.Or(why, NotAllowed)
		}
	}
	for setting, value := range g.Settings.All() {
		change(ours && held.Applied.Value(setting) == value, diff.SettingClass(setting))
	}
	if len(g.RunMPS)+len(g.StopMPS) > 0 {
		others := func(m resource.MPS) bool { return !slices.Contains(held.All(), m) }
		change(ours && len(g.StopMPS) == 0 && !slices.ContainsFunc(g.RunMPS, others), diff.MPSChanged)
	}
	return why
}

// judged joins the judgements about all GPUs of a session: if the settings of one stay, all do.
func judged(gpus map[resource.GPUKey]gpuJudgement, on []resource.GPUKey) (all gpuJudgement) {
	for _, key := range on {
		if g, changes := gpus[key]; changes {
			all.keys, all.why = append(all.keys, g.keys...), cmp.Or(all.why, g.why)
		}
	}
	return all
}

func gpusOf(c diff.SessionChange) []resource.GPUKey {
	s := c.After
	if s == nil {
		s = &c.Before.Session
	}
	return s.On()
}

// configured reports whether a change comes from the configuration: what was applied is not what it has now. A session
// that an interrupted run left unfinished was approved.
func configured(c diff.SessionChange, d diff.Diff) bool {
	if slices.Contains(d.Unfinished, c.Address) && c.After != nil {
		return false
	}
	if c.Before == nil || c.After == nil || c.MovedFrom != nil || c.Imported != "" || c.Action == diff.Forget {
		return true
	}
	return slices.ContainsFunc(c.Fields, func(f diff.Field) bool {
		switch f.Kind {
		case diff.FieldSliceUUID, diff.FieldFacades, diff.FieldDriver, diff.FieldStopped:
			return false
		}
		return true
	})
}

// session says why a session may not be repaired; "" if it may.
func (p Policy) session(c diff.SessionChange, d diff.Diff, live resource.Live) Why {
	named := false // a class that may end programs
	for _, f := range d.Drift {
		if c.Before == nil || f.Session == nil || *f.Session != c.Before.Address {
			continue
		}
		switch allowed := p.Repairs[f.Class]; {
		case allowed == Always:
			named = true
		case allowed == Never && !f.Informational && !f.EndsPrograms():
			return NotAllowed
		}
	}
	if endsPrograms(c, live) && !named {
		return EndsPrograms
	}
	return ""
}

// endsPrograms reports whether a change ends programs that still have their slice.
func endsPrograms(c diff.SessionChange, live resource.Live) bool {
	if c.Before == nil || c.Body != diff.Remake && c.Body != diff.Remove {
		return false
	}
	now, there := live.Body(c.Before.Slice.Host, c.Before.Runtime, c.Before.ID)
	return there && (now.State == resource.Running || now.State == resource.Restarting) && c.Slice == diff.Keep
}
