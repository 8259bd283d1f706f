package diff

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cosplay/internal/resource"
)

// sessionChanges pairs the sessions that are wanted with those that were made.
func sessionChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []SessionChange {
	all := make([]SessionChange, 0, len(desired.Sessions))
	wanted := make(map[resource.Address]bool, len(desired.Sessions))
	for _, d := range desired.Sessions {
		wanted[d.Address] = true
		switch was, ok := prior.Session(d.Address); {
		case o.Left[d.Address]:
			all = append(all, leave(was))
		case ok:
			all = append(all, compare(was, d, prior.Key, live))
		default:
			all = append(all, create(d))
		}
	}
	for _, p := range prior.Sessions {
		switch {
		case wanted[p.Address]:
		case o.Left[p.Address]:
			all = append(all, leave(p))
		case o.Forgets[p.Address]:
			all = append(all, forget(p))
		default:
			all = append(all, remove(p, live))
		}
	}
	slices.SortFunc(all, func(a, b SessionChange) int { return a.Address.Compare(b.Address) })
	replace(all, live, o)
	noteMoves(all, o)
	return all
}

func create(d resource.Session) SessionChange {
	c := SessionChange{Address: d.Address, Action: Create, Slice: Make, Container: Make, After: &d}
	if d.Slice.Whole() {
		c.Slice = Keep
	}
	return c
}

func remove(was resource.PriorSession, live resource.Live) SessionChange {
	c := SessionChange{Address: was.Address, Action: Delete, Reason: "not in the configuration",
		Slice: Keep, Container: Keep, Before: &was}
	if _, ok := OwnSlice(was, live); ok || unread(was, live) && was.Handle.GPUInstance != resource.Unseen {
		c.Slice = Remove
	}
	// A container that is gone, or that was about to be made when all was cut off,
	// has left its folder all the same.
	if _, ok := live.Container(was.Slice.Host, was.Runtime, was.ID); ok || was.Container != nil || resource.RuntimeNamed(was.Runtime).LeavesFiles {
		c.Container = Remove
	}
	if c.Slice == Keep && was.Handle != nil && (gpuGone(was, live) || unread(was, live)) {
		c.Action, c.Reason = Update, unplanned(was, live)+"; the state keeps what is left of the session until cosplay can remove it"
		if c.Container == Keep {
			c.Action = NoOp
		}
	}
	return c
}

// unplanned says why nothing can be planned with the slice of a session.
func unplanned(was resource.PriorSession, live resource.Live) string {
	if gpuGone(was, live) {
		wrong, _ := live.NoGPU(was.Slice.Host, was.Slice.GPU)
		return "its GPU is " + wrong
	}
	return "its slice cannot be read"
}

// gpuGone reports whether the GPU that a slice was made on is not there: lost,
// or hidden by the driver. The slice may come back with it.
func gpuGone(was resource.PriorSession, live resource.Live) bool {
	_, there := live.GPU(was.Slice.Host, was.Slice.GPU)
	return !there
}

// unread reports whether the slice of a session cannot be read, though its GPU is
// there.
func unread(was resource.PriorSession, live resource.Live) bool {
	_, readable := live.Sliced(was.Slice.Host, was.Slice.GPU)
	return was.Handle != nil && !readable && !gpuGone(was, live)
}

// compare decides about a session that is both wanted and made.
func compare(was resource.PriorSession, want resource.Session, key string, live resource.Live) SessionChange {
	c := SessionChange{Address: want.Address, Action: NoOp, Slice: Keep, Container: Keep, Before: &was, After: &want}
	runtime := resource.RuntimeNamed(want.Runtime)
	if gpuGone(was, live) || unread(was, live) {
		c.Reason = unplanned(was, live) + "; it is left as it is"
		return c
	}
	c.Fields = fields(was.Session, want)
	c.Slice = slicePart(was, want, live)
	c.Container = containerPart(was, want, key, live)
	if now, there := live.Container(was.Slice.Host, was.Runtime, was.ID); c.Container == Refit && there && was.Handle != nil && renamed(was, now) {
		c.Fields = append(c.Fields, Field{Name: "MIG UUID", From: now.SliceID, To: was.Handle.UUID})
	}
	if c.Slice != Keep && c.Container == Refit {
		c.Container = Remake
	}
	if c.Slice != Keep && c.Container == Keep {
		// What runs in a slice that goes cannot stay.
		c.Container = Remake
	}
	switch {
	case was.Container != nil && was.Container.Foreign && c.Container == Remake:
		c.Action, c.Reason = Replace, "its container was imported and not made by cosplay: it is made anew, what runs in it ends"
	case was.Slice != want.Slice:
		c.Action = Replace
	case c.Slice == Make:
		c.Action, c.Reason = Create, "its slice is gone"
	case c.Slice == Remake && was.Handle.UUID == "":
		c.Action, c.Reason = Replace, "its slice was not finished"
	case c.Slice == Remake:
		c.Action, c.Reason = Replace, "its slice has lost its compute instance"
	case c.Container == Make && was.Container == nil:
		c.Action, c.Reason = Create, "its "+runtime.Body+" was not made yet"
	case c.Container == Make:
		c.Action, c.Reason = Create, "its "+runtime.Body+" is gone; the slice stays"
	case c.Container == Remake && c.Slice == Keep:
		c.Action, c.Reason = Replace, whyRemade(c, want, key, live)
	case was.Unfinished && c.Container == Refit:
		c.Action, c.Reason = Update, "a run was interrupted while it worked on the "+runtime.Body
	case c.Container == Refit && !runtime.Rewrites && len(c.Fields) == 0:
		c.Action, c.Reason = Update, "its "+runtime.Body+" does not run; it is started again"
		if now, _ := live.Container(was.Slice.Host, was.Runtime, was.ID); now.State == resource.Running && mendable(was, now) {
			c.Reason = "docker update changed its container; it is set back while it runs"
		}
	case c.Container != Keep:
		c.Action = Update
		if len(c.Fields) == 0 {
			c.Reason = "its " + runtime.Body + " was changed outside of cosplay"
		}
	case len(c.Fields) > 0:
		c.Action, c.Record = Update, true
	}
	return renew(c, live)
}

// whyRemade says what becomes of a container in a slice that stays and, where no
// field tells it, why.
func whyRemade(c SessionChange, want resource.Session, key string, live resource.Live) string {
	was := c.Before
	runtime := resource.RuntimeNamed(want.Runtime)
	if !resource.RuntimeNamed(was.Runtime).RunsPrograms {
		return "its " + runtime.Body + " is made anew; the slice stays"
	}
	subject := "its container"
	now, _ := live.Container(was.Slice.Host, was.Runtime, was.ID)
	if len(c.Fields) == 0 && now.Damaged == "" && now.Hash != want.Hash(key) {
		subject = "nothing proves what its container was made from; it"
	}
	return subject + " is made anew: what runs in it ends, what is neither in the workspace nor in a volume goes; the slice stays"
}

// renew brings the disguise of a session that stays up to date. That of a
// container is mounted when it starts: it keeps what it has, which is told.
func renew(c SessionChange, live resource.Live) SessionChange {
	if !resource.RuntimeNamed(c.Before.Runtime).RenewsInPlace || c.Slice != Keep || c.Container != Keep && c.Container != Refit {
		return c
	}
	now, _ := live.Container(c.Before.Slice.Host, c.Before.Runtime, c.Before.ID)
	for _, o := range now.Outdated {
		c.Renew = c.Renew || c.Action == NoOp
		c.Action, c.Container, c.Record = Update, Refit, false
		c.Fields = append(c.Fields, Field{Name: o.Part, From: o.From, To: o.To})
	}
	return c
}

func slicePart(was resource.PriorSession, want resource.Session, live resource.Live) Part {
	own, there := OwnSlice(was, live)
	switch {
	case was.Slice != want.Slice && there && want.Slice.Whole():
		return Remove
	case was.Slice != want.Slice && there:
		return Remake
	case want.Slice.Whole():
		return Keep
	case !there:
		return Make
	case own.UUID == "":
		return Remake // a GPU instance without its compute instance
	}
	return Keep
}

func containerPart(was resource.PriorSession, want resource.Session, key string, live resource.Live) Part {
	now, there := live.Container(was.Slice.Host, was.Runtime, was.ID)
	switch {
	case !there:
		return Make
	case was.Slice != want.Slice, was.Runtime != want.Runtime:
		return Remake
	case now.Hash != want.Hash(key), now.Damaged != "", was.Handle != nil && renamed(was, now), was.Container != nil && now.ID != was.Container.ID:
		if resource.RuntimeNamed(want.Runtime).Rewrites {
			return Refit
		}
		return Remake
	case was.Container == nil, was.Unfinished, now.State != resource.Running, mendable(was, now):
		return Refit
	}
	return Keep
}

// renamed reports whether a container has another name of its slice than the driver
// gives it now. What runs goes on with a name of before that drivers accept; the
// files of a session without a container are written again.
func renamed(was resource.PriorSession, now resource.Container) bool {
	if !resource.RuntimeNamed(was.Runtime).Rewrites {
		return !resource.LiveSlice{Slice: was.Slice, Handle: *was.Handle}.IsCalled(now.SliceID)
	}
	return now.SliceID != was.Handle.UUID
}

// fields lists what differs between the session as made and as wanted.
func fields(was, want resource.Session) []Field {
	var all []Field
	add := func(name, from, to string) {
		if from != to {
			all = append(all, Field{Name: name, From: from, To: to})
		}
	}
	add("target", was.Target.Key, want.Target.Key)
	if was.Target.Key == want.Target.Key && was.Target.Envelope() != want.Target.Envelope() {
		add("target's figures", "as applied", "the catalog's of now")
	}
	add("host", was.Request.Host, want.Request.Host)
	if was.Slice.GPU != want.Slice.GPU {
		add("GPU", was.Slice.GPU, want.Slice.GPU)
	}
	add("slice", was.Slice.String(), want.Slice.String())
	add("clock of the fit", resource.Clock(was.Fit.ClockMHz), resource.Clock(want.Fit.ClockMHz))
	add("fit.prefer", string(was.Request.Fit.Prefer), string(want.Request.Fit.Prefer))
	add("fit.tolerance", percent(was.Request.Fit.Tolerance), percent(want.Request.Fit.Tolerance))
	add("fit.max_error", limit(was.Request.Fit.MaxError), limit(want.Request.Fit.MaxError))
	add("gpu", selector(was.Request.GPU), selector(want.Request.GPU))
	add("runtime", was.Runtime, want.Runtime)
	add("command", resource.CommandWords(was.Command), resource.CommandWords(want.Command))
	add("workspace", was.Workspace, want.Workspace)
	add("depends_on", orNone(was.DependsOn), orNone(want.DependsOn))
	add("strict", strconv.FormatBool(was.Strict), strconv.FormatBool(want.Strict))
	add("prevent_destroy", strconv.FormatBool(was.PreventDestroy), strconv.FormatBool(want.PreventDestroy))
	if was.Trigger != want.Trigger {
		add("replace_triggered_by", "the values as applied", "those of now")
	}
	all = append(all, boxFields(was.Box, want.Box)...)
	return append(all, envFields(was, want)...)
}

// hidden stands for a value that is not to be shown.
const hidden = "(sensitive)"

// envFields lists what differs of the environment. A variable that is or was
// sensitive shows neither value.
func envFields(was, want resource.Session) []Field {
	names := map[string]bool{}
	for _, env := range []map[string]string{was.Env, was.Sealed, want.Env, want.Sealed} {
		for name := range env {
			names[name] = true
		}
	}
	var all []Field
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, had := was.Env[name]
		to, has := want.Env[name]
		sealed, hadSecret := was.Sealed[name]
		seal, hasSecret := want.Sealed[name]
		switch {
		case hadSecret && hasSecret && sealed == seal:
		case hadSecret || hasSecret:
			all = append(all, Field{Name: "env." + name, From: masked(had || hadSecret), To: masked(has || hasSecret)})
		case had != has || from != to:
			all = append(all, Field{Name: "env." + name, From: quoted(from, had), To: quoted(to, has)})
		}
	}
	return all
}

func masked(set bool) string {
	if !set {
		return "(none)"
	}
	return hidden
}

func quoted(value string, set bool) string {
	if !set {
		return "(none)"
	}
	return fmt.Sprintf("%q", value)
}

// percent writes a ratio with every digit that a person typed, and without the
// noise of binary fractions: 0.07 times 100 is not quite 7.
func percent(ratio float64) string { return fmt.Sprintf("%.12g %%", ratio*100) }

func limit(ratio *float64) string {
	if ratio == nil {
		return "(none)"
	}
	return percent(*ratio)
}

func selector(gpu string) string {
	if gpu == "" {
		return "(any)"
	}
	return gpu
}
