package ledger

import (
	"slices"
	"strings"

	"cosplay/internal/resource"
)

// Parting is the request of a holder to be released.
type Parting struct {
	AsItIs  bool // other holders restore the GPU later
	Abandon bool // the baseline is given up where it cannot be restored
	Trusted bool // as in Take

	Found *Found // nil if the GPU cannot be read
}

const (
	maxLeft     = 16 // records of settings that were left; the oldest are dropped
	maxDeparted = 64 // slices: a GPU has room for far fewer
)

// Leave announces that the last holder restores the baseline: until it is done, no other project can acquire the GPU.
func Leave(g *resource.Page, lineage string) error {
	if _, holds := g.Holder(lineage); !holds {
		return notHeld()
	}
	if others := g.Binding(lineage); len(others) > 0 {
		return overtaken(planAgain, "%s has taken the GPU since the plan was made, so its settings stay", describe(others))
	}
	g.Leaving = lineage
	return nil
}

// Release removes a holder; one that does not hold the GPU is no error. The last holder is refused until every
// setting that cosplay changed has its baseline, or is given up: a setting that cosplay set itself, and a slice that
// cosplay created, by a trusted request alone. Slices that stay are kept in the page.
func Release(g *resource.Page, who resource.Holder, p Parting) error {
	us, holds := g.Holder(who.Lineage)
	if !holds {
		return nil
	}
	last := len(g.Binding(who.Lineage)) == 0
	if last && p.AsItIs {
		return overtaken(planAgain, "the others have left the GPU since the plan was made, so that its baseline is for this project to restore")
	}
	if p.Found != nil {
		rebooted(g, p.Found)
	}
	if last {
		rest := unrestored(g, us, p.Found)
		switch {
		case len(rest.left) == 0:
		case !p.Abandon:
			return overtaken(planAgain+"; if the baseline cannot be restored: cosplay destroy --abandon-baseline", "the GPU does not have its baseline: %s", listed(rest.left))
		case rest.ours && !p.Trusted:
			return refuse("sudo cosplay destroy --abandon-baseline", "the GPU does not have its baseline: %s. cosplay changed it, or cannot exclude that it did, so only root can give it up", listed(rest.left))
		}
		for _, l := range rest.left {
			l.Why = "given up"
			note(g, l, who, p.Found)
		}
		for _, l := range rest.foreign {
			l.Why = "another process changed it"
			note(g, l, who, p.Found)
		}
		g.Leaving, g.Set, g.Was, g.Undone, g.Lock, g.Unkept = "", resource.Settings{}, resource.Settings{}, resource.Settings{}, nil, false
	}
	for _, s := range us.Slices {
		if s.Imported {
			continue
		}
		g.Departed = append(g.Departed, resource.Departed{LiveSlice: s, Lineage: us.Lineage, User: us.User, UID: us.UID, At: when(who, p.Found)})
	}
	g.Departed = existing(g.Departed, p.Found)
	g.Holders = g.Others(who.Lineage)
	if len(g.Holders) == 1 { // it is free to decide
		g.Undone = resource.Settings{}
	}
	return nil
}

// remainder is what the last holder would leave behind.
type remainder struct {
	left    []resource.Left // what cosplay changed
	ours    bool            // whether any of it has, or may have, the value that cosplay gave it
	foreign []resource.Left // what another process changed, and cosplay never did
}

func unrestored(g *resource.Page, us resource.Holder, found *Found) (r remainder) {
	if found == nil {
		return remainder{left: []resource.Left{{Setting: "GPU", Value: "not readable", Baseline: "unknown"}}, ours: true}
	}
	for _, setting := range resource.AllSettings {
		if setting.Readable() {
			r.setting(setting, g, found)
		}
	}
	r.clock(g, found)
	for _, s := range us.Slices {
		if !s.Imported && exists(s, found) {
			r.left = append(r.left, resource.Left{Setting: "slice", Value: s.Slice.String(), Baseline: "none"})
			r.ours = true
		}
	}
	return r
}

func (r *remainder) setting(setting resource.Setting, g *resource.Page, found *Found) {
	set, was, base, now := Exact(g.Set, setting), Exact(g.Was, setting), Exact(g.Baseline, setting), Exact(found.Settings, setting)
	restored := set == base && was == "" // as the driver confirmed
	left := resource.Left{Setting: setting.Words(), Value: now, Baseline: base}
	switch {
	case base == "" || now == base:
	case now == "" && (set == "" || restored): // the driver does not report it any more
	case set == "" && !g.Unkept:
		r.foreign = append(r.foreign, left)
	default:
		if now == "" {
			left.Value = "not readable"
		}
		r.left = append(r.left, left)
		r.ours = r.ours || g.Unkept || now == set || now == was || now == ""
	}
}

// clock compares the commands that were sent: NVML has no getter for a lock.
func (r *remainder) clock(g *resource.Page, found *Found) {
	base := g.Baseline.Value(resource.SMClock)
	locked, set := g.Set.Get(resource.SMClock)
	if g.Lock != nil {
		locked = g.Lock.MHz
	}
	touched := set || g.Lock != nil || g.Unkept && base != 0
	if !touched || g.Lock != nil && g.Lock.Done && g.Lock.MHz == base {
		return
	}
	value := resource.Clock(locked)
	if locked == base {
		value = "not confirmed"
	}
	r.left = append(r.left, resource.Left{Setting: resource.SMClock.Words(), Value: value, Baseline: resource.Clock(base)})
	r.ours = r.ours || g.Unkept || !found.GPU.RefutesLock(locked)
}

func listed(left []resource.Left) string {
	var words []string
	for _, l := range left {
		words = append(words, l.Setting+" "+l.Value+" instead of "+l.Baseline)
	}
	return strings.Join(words, ", ")
}

func note(g *resource.Page, l resource.Left, who resource.Holder, found *Found) {
	l.User, l.UID, l.At = who.User, who.UID, when(who, found)
	g.Changes = append(g.Changes, l)
	g.Changes = g.Changes[max(0, len(g.Changes)-maxLeft):]
}

func when(who resource.Holder, found *Found) string {
	if found != nil {
		return found.Now
	}
	return who.Since
}

// existing drops the slices of released holders that do not exist any more, as far as the GPU can be read.
func existing(all []resource.Departed, found *Found) []resource.Departed {
	if found != nil {
		all = slices.DeleteFunc(all, func(d resource.Departed) bool { return !exists(d.LiveSlice, found) })
	}
	return all[max(0, len(all)-maxDeparted):]
}

// exists reports whether a slice that was noted is on the GPU. One without a UUID
// was noted before it was made. Where slices cannot be read, all may exist.
func exists(s resource.LiveSlice, found *Found) bool {
	return found.GPU.Unread(resource.FeatureMIG) || slices.ContainsFunc(found.GPU.Slices, func(l resource.LiveSlice) bool {
		if s.UUID == "" || l.UUID == "" {
			return l.Profile == s.Profile && l.Start == s.Start
		}
		l.Boot = found.BootID
		return s.Match(l) != resource.OtherSlice
	})
}

// reclaim returns the slices that a new holder created before it was released.
func reclaim(g *resource.Page, who resource.Holder) []resource.LiveSlice {
	var own []resource.LiveSlice
	g.Departed = slices.DeleteFunc(g.Departed, func(d resource.Departed) bool {
		same := who.UID == nil || *who.UID == 0 || d.UID != nil && *d.UID == *who.UID
		if d.Lineage != who.Lineage || !same {
			return false
		}
		own = append(own, d.LiveSlice)
		return true
	})
	return own
}
