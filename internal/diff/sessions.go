package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"cosplay/internal/resource"
)

// sessionChanges pairs the sessions of the configuration with those of the state. The changes refer to these and do not
// copy them.
func sessionChanges(desired resource.Desired, prior resource.Prior, live resource.Live, o Options) []SessionChange {
	all := make([]SessionChange, 0, len(desired.Sessions))
	wanted := make(map[resource.Address]bool, len(desired.Sessions))
	for i := range desired.Sessions {
		d := &desired.Sessions[i]
		wanted[d.Address] = true
		switch was := prior.Lookup(d.Address); {
		case o.Left[d.Address]:
			all = append(all, leave(was))
		case was != nil:
			all = append(all, compare(was, d, live.KeyOn(d.Slice.Host, prior.Key), live))
		default:
			all = append(all, create(d))
		}
	}
	for i := range prior.Sessions {
		p := &prior.Sessions[i]
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
	keepShared(all)
	noteMoves(all, o)
	return all
}

// keepShared keeps the slice that some sessions leave and that others go on to share.
func keepShared(all []SessionChange) {
	var stay []resource.Slice
	for _, c := range all {
		if c.Before != nil && c.Before.Handle != nil && c.Slice == Keep && c.Action != Delete && c.Before.Slice.Shared() {
			stay = append(stay, c.Before.Slice)
		}
	}
	for i := range all {
		c := &all[i]
		if c.Slice != Remove && c.Slice != Remake || !slices.ContainsFunc(stay, c.Before.Slice.Beside) {
			continue
		}
		if c.Slice == Remake && c.After.Slice != c.Before.Slice {
			c.Slice = Make
		} else {
			c.Slice = Keep
		}
	}
}

func create(d *resource.Session) SessionChange {
	c := SessionChange{Address: d.Address, Action: Create, Slice: Make, Body: Make, After: d}
	if d.Slice.Whole() {
		c.Slice = Keep
	}
	return c
}

func remove(before *resource.PriorSession, live resource.Live) SessionChange {
	was := *before
	c := SessionChange{Address: was.Address, Action: Delete, Reason: resource.Reason{Kind: resource.NotConfigured},
		Slice: Keep, Body: Keep, Before: before}
	if _, ok := OwnSlice(was, live); ok || unread(was, live) && was.Handle.GPUInstance != resource.Unseen {
		c.Slice = Remove
	}
	// A body that is lost, or whose creation was interrupted, may have left files.
	_, there := live.Body(was.Slice.Host, was.Runtime, was.ID)
	if there || was.Body != nil || resource.RuntimeNamed(was.Runtime).LeavesFiles {
		c.Body = Remove
	}
	if c.Slice == Keep && was.Handle != nil && (gpuMissing(was, live) || unread(was, live)) {
		c.Action, c.Reason = Update, unplanned(was, live)
		if c.Body == Keep {
			c.Action = NoOp
		}
	}
	return c
}

// unplanned says why nothing can be planned with the slice of a session.
func unplanned(was resource.PriorSession, live resource.Live) resource.Reason {
	if !gpuMissing(was, live) {
		return resource.Reason{Kind: resource.SliceUnread}
	}
	missing := slices.IndexFunc(was.Slices(), func(s resource.Slice) bool { return !hasGPU(s, live) })
	_, reason := noGPU(was.Slice.Host, was.Slices()[missing].GPU, live)
	return reason
}

// noGPU says why a GPU that Live.GPU does not find is not available.
func noGPU(host, uuid string, live resource.Live) (Value, resource.Reason) {
	if u, is := live.Unusable(host, uuid); is {
		return Unanswered(u), resource.Reason{Kind: resource.GPUUnusable, Unusable: &u}
	}
	return IsMissing, resource.Reason{Kind: resource.GPUMissing}
}

// gpuMissing reports whether a GPU of a session is missing: lost, or hidden by the driver. The slice may come back
// with it.
func gpuMissing(was resource.PriorSession, live resource.Live) bool {
	return slices.ContainsFunc(was.Slices(), func(s resource.Slice) bool { return !hasGPU(s, live) })
}

func hasGPU(s resource.Slice, live resource.Live) bool {
	_, there := live.GPU(s.Host, s.GPU)
	return there
}

// unread reports whether the slice of a session cannot be read although its GPU answers.
func unread(was resource.PriorSession, live resource.Live) bool {
	_, readable := live.Sliced(was.Slice.Host, was.Slice.GPU)
	return was.Handle != nil && !readable && !gpuMissing(was, live)
}

// compare decides about a session that is in the configuration and in the state.
func compare(before *resource.PriorSession, after *resource.Session, key string, live resource.Live) SessionChange {
	was, want := *before, *after
	c := SessionChange{Address: want.Address, Action: NoOp, Slice: Keep, Body: Keep, Before: before, After: after}
	runtime := resource.RuntimeNamed(want.Runtime)
	if gpuMissing(was, live) || unread(was, live) {
		c.Reason = unplanned(was, live)
		return c
	}
	now, there := live.Body(was.Slice.Host, was.Runtime, was.ID)
	if there && now.State != resource.Stopped && want.Stopped {
		started := want // by another program
		started.Stopped = false
		want, c.After = started, &started
	}
	c.Fields = sessionFields(was.Session, want, key)
	c.Slice = slicePart(was, want, live)
	c.Body = bodyPart(was, want, key, live)
	if c.Body == Refit && there && was.Handle != nil && renamed(was, now) {
		c.Fields = append(c.Fields, Field{Kind: FieldSliceUUID, From: UUID(now.SliceID), To: UUID(was.Handle.UUID)})
	}
	if c.Slice != Keep && (c.Body == Keep || c.Body == Refit) {
		c.Body = Remake // what runs in a slice ends with it
	}
	if c.Body == Keep && want.Spec.Pull == resource.PullAlways && len(imageDrift(was, now, live)) > 0 {
		c.Body = Remake
	}
	because := func(action Action, kind resource.ReasonKind) {
		c.Action, c.Reason.Kind = action, kind
	}
	switch {
	case was.Body != nil && was.Body.Foreign && c.Body == Remake:
		because(Replace, resource.WasImported)
	case !was.SameSlices(want):
		c.Action = Replace
	case c.Slice == Make:
		because(Create, resource.SliceMissing)
	case c.Slice == Remake && was.Handle.UUID == "":
		because(Replace, resource.SliceUnfinished)
	case c.Slice == Remake:
		because(Replace, resource.ComputeMissing)
	case c.Body == Make && was.Body == nil:
		because(Create, resource.BodyUnmade)
	case c.Body == Make:
		because(Create, resource.BodyMissing)
	case c.Body == Remake && c.Slice == Keep:
		because(Replace, whyRemade(c, want, key, live))
	case was.Unfinished && c.Body == Refit:
		because(Update, resource.Interrupted)
	case c.Body == Refit && !runtime.Rewrites && len(c.Fields) == 0:
		because(Update, whyRefitted(was, now))
	case c.Body != Keep:
		c.Action = Update
		if len(c.Fields) == 0 {
			c.Reason.Kind = resource.BodyChanged
		}
	case len(c.Fields) > 0:
		c.Action, c.Record = Update, true
	}
	return renew(c, live)
}

// whyRefitted says why a container is brought up to date although its block has not changed.
func whyRefitted(was resource.PriorSession, now resource.Body) resource.ReasonKind {
	switch {
	case now.State == resource.Paused:
		return resource.BodyPaused
	case now.State == resource.Restarting:
		return resource.BodyRestarting
	case now.State == resource.Stopped && !was.Rests(now):
		return resource.BodyStopped
	case len(alterations(was, now)) > 0:
		return resource.BodyAltered
	case repairable(was, now):
		return resource.BoundsChanged
	}
	return resource.BodyStopped
}

// whyRemade says why the body of a session is replaced in a slice that stays.
func whyRemade(c SessionChange, want resource.Session, key string, live resource.Live) resource.ReasonKind {
	was := c.Before
	now, _ := live.Body(was.Slice.Host, was.Runtime, was.ID)
	if want.Spec.Pull == resource.PullAlways && bodyPart(*was, want, key, live) == Keep {
		return resource.ImageMoved
	}
	if resource.RuntimeNamed(was.Runtime).RunsPrograms && len(c.Fields) == 0 && now.Damaged == "" && !want.HasHash(key, now.Hash) {
		return resource.BodyUnproven
	}
	return resource.BodyReplaced
}

// renew updates the disguise of a session that stays. A container's disguise is mounted when it starts: it keeps it,
// which drift reports.
func renew(c SessionChange, live resource.Live) SessionChange {
	if !resource.RuntimeNamed(c.Before.Runtime).RenewsInPlace || c.Slice != Keep || c.Body != Keep && c.Body != Refit {
		return c
	}
	now, _ := live.Body(c.Before.Slice.Host, c.Before.Runtime, c.Before.ID)
	for _, o := range now.Outdated {
		c.Renew = c.Renew || c.Action == NoOp
		c.Action, c.Body, c.Record = Update, Refit, false
		c.Fields = append(c.Fields, Field{Kind: Kind(o.Part), From: Text(o.From), To: Text(o.To)})
	}
	return c
}

func slicePart(was resource.PriorSession, want resource.Session, live resource.Live) Part {
	own, there := OwnSlice(was, live)
	switch {
	case !was.SameSlices(want) && there && want.Slice.Whole():
		return Remove
	case !was.SameSlices(want) && there:
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

func bodyPart(was resource.PriorSession, want resource.Session, key string, live resource.Live) Part {
	now, there := live.Body(was.Slice.Host, was.Runtime, was.ID)
	rebounds := boundFields(want.Spec.Bounds(), was.Spec.Bounds())
	switch {
	case !there:
		return Make
	case !was.SameSlices(want), was.Runtime != want.Runtime:
		return Remake
	case !want.HasHash(key, now.Hash), now.Damaged != "", was.Handle != nil && renamed(was, now),
		was.Body != nil && now.ID != was.Body.ID, slices.ContainsFunc(rebounds, Field.stays):
		if resource.RuntimeNamed(want.Runtime).Rewrites {
			return Refit
		}
		return Remake
	case was.Body == nil, was.Unfinished, now.State != resource.Running && !want.Rests(now), repairable(was, now), len(rebounds) > 0, was.Spec.Name != want.Spec.Name:
		return Refit
	}
	return Keep
}

// renamed reports whether a body has another name of its slice than the driver gives it now. A container goes on with
// an older name that drivers accept; the files of a session without a container are written again.
func renamed(was resource.PriorSession, now resource.Body) bool {
	if !resource.RuntimeNamed(was.Runtime).Rewrites {
		return !resource.LiveSlice{Slice: was.Slice, Handle: *was.Handle}.IsCalled(now.SliceID)
	}
	return now.SliceID != was.Handle.UUID
}

// sessionFields lists what differs between the session of the state, which has the key, and that of the configuration.
func sessionFields(was, want resource.Session, key string) []Field {
	var all fields
	add(&all, FieldTarget, Text(was.Target.Key), Text(want.Target.Key))
	add(&all, FieldFraction, fraction(was), fraction(want))
	add(&all, FieldSharing, Text(cmp.Or(was.Request.Sharing, "auto")), Text(cmp.Or(want.Request.Sharing, "auto")))
	add(&all, FieldOversubscribe, Bool(was.Request.Oversubscribe), Bool(want.Request.Oversubscribe))
	add(&all, FieldGPUs, Count(was.Request.Devices()), Count(want.Request.Devices()))
	add(&all, FieldProfile, Text(cmp.Or(was.Request.Slice, "any")), Text(cmp.Or(want.Request.Slice, "any")))
	ofKind := was.Request.Fraction == 0 || was.Request.Sharing == want.Request.Sharing // the rates of a fraction depend on it
	if was.Target.Key == want.Target.Key && was.Request.Fraction == want.Request.Fraction && ofKind && was.Target.Envelope() != want.Target.Envelope() {
		add(&all, FieldTargetFigures, IsAsApplied, IsOfCatalog)
	}
	add(&all, FieldHost, Text(was.Request.Host), Text(want.Request.Host))
	add(&all, FieldGPU, GPU(was.Slice.GPU), GPU(want.Slice.GPU))
	for i := range min(len(was.More), len(want.More)) {
		add(&all, FieldGPU, GPU(was.More[i].GPU), GPU(want.More[i].GPU))
	}
	place := func(s resource.Slice) Value {
		return Slice{Profile: s.Profile, Start: s.Start, Size: s.Size, Sharing: s.Sharing, Percent: s.Percent, ComputeStart: s.ComputeStart}
	}
	add(&all, FieldSlice, place(was.Slice), place(want.Slice))
	add(&all, FieldMPS, limit(Text(was.MPS)), limit(Text(want.MPS)))
	add(&all, FieldFitClock, Clock{MHz: was.Fit.ClockMHz}, Clock{MHz: want.Fit.ClockMHz})
	add(&all, FieldFitPrefer, Text(was.Request.Fit.Prefer), Text(want.Request.Fit.Prefer))
	add(&all, FieldFitTolerance, Percent(was.Request.Fit.Tolerance), Percent(want.Request.Fit.Tolerance))
	add(&all, FieldFitMaxError, maxError(was), maxError(want))
	add(&all, FieldGPUSelector, selector(was), selector(want))
	add(&all, FieldRuntime, Text(was.Runtime), Text(want.Runtime))
	addList(&all, FieldCommand, Command(was.Command), Command(want.Command))
	add(&all, FieldWorkspace, Text(was.Workspace), Text(want.Workspace))
	addList(&all, FieldDependsOn, Names(was.DependsOn), Names(want.DependsOn))
	add(&all, FieldStrict, Bool(was.Strict), Bool(want.Strict))
	add(&all, FieldCapability, Text(was.ReportedCapability()), Text(want.ReportedCapability()))
	add(&all, FieldCompute, Text(was.Compute), Text(want.Compute))
	add(&all, FieldTTL, limit(Seconds(was.Lifetime.TTL)), limit(Seconds(want.Lifetime.TTL)))
	add(&all, FieldIdleTimeout, limit(Seconds(was.Lifetime.IdleTimeout)), limit(Seconds(want.Lifetime.IdleTimeout)))
	add(&all, FieldStopAt, limit(Moment(was.Lifetime.StopAt)), limit(Moment(want.Lifetime.StopAt)))
	add(&all, FieldStopped, Bool(was.Stopped), Bool(want.Stopped))
	add(&all, FieldPreventDestroy, Bool(was.PreventDestroy), Bool(want.PreventDestroy))
	if was.Trigger != want.Trigger {
		add(&all, FieldTriggeredBy, IsAsApplied, IsOfConfig)
	}
	all.containerFields(was.Spec, want.Spec)
	all.envFields(was, want, key)
	return all
}

// fraction is the part of a GPU that a session asks for; nil where it asks for a target.
func fraction(s resource.Session) Value {
	if s.Request.Fraction == 0 {
		return nil
	}
	return Text(fmt.Sprintf("%g", s.Request.Fraction))
}

func maxError(s resource.Session) Value {
	if s.Request.Fit.MaxError == nil {
		return nil
	}
	return Percent(*s.Request.Fit.MaxError)
}

func selector(s resource.Session) Value {
	if s.Request.GPU == "" {
		return IsAny
	}
	return GPU(s.Request.GPU)
}

// envFields adds what differs of the environment. A variable that is or was sensitive shows neither value. One that is
// sensitive now is a change with the same value, too: until then the state and the engine show it.
func (all *fields) envFields(was, want resource.Session, key string) {
	names := map[string]bool{}
	for _, env := range []map[string]string{was.Env, was.Sealed, want.Env, want.Sealed} {
		for name := range env {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := envValue(was, name), envValue(want, name)
		sealed, hadSecret := was.Sealed[name]
		seal, hasSecret := want.Sealed[name]
		switch {
		case hadSecret && hasSecret && (sealed == seal || was.Slice.Host != want.Slice.Host): // each host has its key
			continue
		case !hadSecret && hasSecret && from != nil && key != "" && want.IsSecret(key, name, was.Env[name]):
			from, to = IsPlain, IsSensitive
			if !want.Spec.IsZero() {
				from, to = IsInEnvironment, IsInFile // the engine shows it until the container is recreated
			}
		case hadSecret || hasSecret:
			from, to = masked(from, hadSecret), masked(to, hasSecret)
		case from == to:
			continue
		}
		*all = append(*all, Field{Kind: FieldEnv, Name: name, From: from, To: to})
	}
}

// envValue is the value of a variable; nil where a session does not have it.
func envValue(s resource.Session, name string) Value {
	if value, has := s.Env[name]; has {
		return EnvValue(value)
	}
	return nil
}

// masked hides a plain value next to a sensitive one.
func masked(plain Value, secret bool) Value {
	if plain == nil && !secret {
		return nil
	}
	return IsSensitive
}

// containerFields adds what differs of the attributes that only a session in a container has.
func (all *fields) containerFields(was, want resource.ContainerSpec) {
	if was.IsZero() || want.IsZero() {
		return // the runtime differs, and that is a difference already
	}
	add(all, FieldName, limit(Text(was.Name)), limit(Text(want.Name)))
	add(all, FieldImage, Text(was.Image), Text(want.Image))
	addList(all, FieldEntrypoint, Command(was.Entrypoint), Command(want.Entrypoint))
	add(all, FieldPull, Text(was.Pull), Text(want.Pull))
	addList(all, FieldVolumes, Volumes(was.Volumes), Volumes(want.Volumes))
	addList(all, FieldPorts, Ports(was.Ports), Ports(want.Ports))
	add(all, FieldNetwork, limit(Text(was.Network)), limit(Text(want.Network)))
	add(all, FieldSSH, Switch(was.SSH.Enabled), Switch(want.SSH.Enabled))
	add(all, FieldSSHPort, Port(was.SSH.Port), Port(want.SSH.Port))
	add(all, FieldSSHBind, Text(was.SSH.Bind), Text(want.SSH.Bind))
	if was.SSH.Enabled && want.SSH.Enabled {
		addList(all, FieldSSHAuthorizedKeys, Keys(was.SSH.AuthorizedKeys), Keys(want.SSH.AuthorizedKeys))
	}
	add(all, FieldLimits, Limits(was.Limits), Limits(want.Limits))
	add(all, FieldSudo, Switch(was.Sudo), Switch(want.Sudo))
	add(all, FieldRestart, Text(was.Restart), Text(want.Restart))
	add(all, FieldUser, User(was.User), User(want.User))
}

// listed is a list as a value; an empty one is none.
func listed[T interface {
	~[]E
	Value
}, E any](all T) Value {
	if len(all) == 0 {
		return nil
	}
	return all
}
