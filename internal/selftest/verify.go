// Package selftest checks what a host needs (doctor), and whether sessions see their target
// GPU (verify).
package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/disguise"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/machine"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Verified is the result of the checks of one session.
type Verified struct {
	Session  resource.PriorSession
	Results  []verify.Result
	Outdated []resource.Outdated // parts that cosplay would create differently now; no check fails for them
	Locks    []ClockLock         // of its GPUs; only those with a result
}

// WithBroken adds to a difference the drift that only the self-test sees.
func WithBroken(d diff.Diff, verified []Verified) diff.Diff {
	d.Drift = slices.Clip(d.Drift)
	d.Unproven = slices.Clone(d.Unproven)
	withClockLocks(&d, verified)
	for _, v := range verified {
		known := slices.ContainsFunc(d.Drift, func(one diff.Drift) bool {
			return one.Class == diff.DisguiseBroken && one.Session != nil && *one.Session == v.Session.Address
		})
		for _, r := range v.Results {
			// The snapshot covers slices, settings and most files already. If an update of
			// the driver breaks something, another check fails as well.
			if r.Outcome != verify.Failed || r.Class == verify.Settings || r.Check == verify.DriverCheck || (r.Way == verify.Outside && (r.Class == verify.Slice || known)) {
				continue
			}
			d.Drift = append(d.Drift, diff.Drift{Class: diff.DisguiseBroken, Host: v.Session.Slice.Host, GPU: v.Session.Slice.GPU, Session: &v.Session.Address,
				Name: fmt.Sprintf("%s by %s", r.Check, r.Way), From: diff.Text(r.Expected), To: diff.Damage(r.Got.What)})
		}
	}
	return d
}

// VerifyOptions control the self-test.
type VerifyOptions struct {
	NoSSH bool // only by exec
}

const (
	verifyAtOnce = 4               // sessions
	questionTime = 2 * time.Minute // for the import of a large Python module from a cold disk
)

// Verify runs the self-test of the disguise in sessions, by exec and by ssh, and returns
// the results in the order of the sessions. It uses the caller's snapshot, and records the
// results for clock locks in the state.
func Verify(ctx context.Context, p *project.Project, prior resource.Prior, live resource.Live, sessions []resource.PriorSession, o VerifyOptions) ([]Verified, error) {
	var (
		all   = make([]*asked, len(sessions))
		errs  = make([]error, len(sessions))
		turns = make(chan struct{}, verifyAtOnce)
		group sync.WaitGroup
		alone sync.Mutex // of a session that tries its memory where others share it: contexts are beyond the caps
	)
	for i, s := range sessions {
		place, err := p.Runtime(ctx, s, prior) // opens hosts, which must not happen concurrently
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Address, err)
		}
		one := &asked{session: s, place: place}
		if one.beside, err = besides(ctx, p, s, prior); err != nil {
			return nil, err
		}
		all[i] = one
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			if s.Slice.Shared() {
				alone.Lock()
				defer alone.Unlock()
			}
			if err := askSession(ctx, p, one, prior, live, o); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.Address, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	devices := slices.Clone(all)
	for _, a := range all {
		devices = append(devices, a.later...)
	}
	loadGPUs(ctx, p, devices)
	var (
		verified []Verified
		locks    []ClockLock
	)
	for _, a := range all {
		v := a.verified(live)
		locks = append(locks, v.Locks...)
		verified = append(verified, v)
	}
	return verified, keepLocks(ctx, p, prior, locks)
}

// verified is the result of a session with that of its later devices.
func (a *asked) verified(live resource.Live) Verified {
	body, _ := live.Body(a.session.Slice.Host, a.session.Runtime, a.session.ID)
	v := Verified{Session: a.session, Results: verify.Judge(a.wanted, a.inside, a.observed), Outdated: body.Outdated}
	for _, d := range append([]*asked{a}, a.later...) {
		if d.device > 0 {
			v.Results = append(v.Results, verify.JudgeDevice(d.device, d.wanted, d.inside, d.observed)...)
		}
		if lock := d.lock(); lock != nil {
			v.Locks = append(v.Locks, *lock)
		}
	}
	for i, r := range v.Results { // whatever fails in an earlier device, only a restart repairs it
		if len(body.Earlier) > 0 && r.Outcome == verify.Failed && r.Way != verify.Outside {
			v.Results[i].Got.Fix = resource.DeviceHolders(body.Earlier) + " got the device before its last change; " + resource.RestartContainer
		}
	}
	return v
}

// asked is a session with the answers of its programs and what the host shows of it, or one of its later devices with
// what the host shows of its GPU.
type asked struct {
	session  resource.PriorSession
	device   int // from 0
	place    runtime.Runtime
	interior runtime.Interior
	wanted   verify.Wanted
	inside   []verify.Inside
	observed verify.Observed
	later    []*asked // the session's later devices
	beside   []*asked // the other sessions in its MIG slice, not asked
}

// besides are the other sessions in the MIG slice of a session.
func besides(ctx context.Context, p *project.Project, s resource.PriorSession, prior resource.Prior) (all []*asked, err error) {
	for _, other := range prior.Sessions {
		if s.Slice.Whole() || other.Address == s.Address || !other.Slice.Beside(s.Slice) {
			continue
		}
		place, err := p.Runtime(ctx, other, prior)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", other.Address, err)
		}
		all = append(all, &asked{session: other, place: place})
	}
	return all, nil
}

// on is the GPU of the device.
func (a *asked) on() resource.GPUKey { return a.session.On()[a.device] }

// laterDevices are the devices of the session after the first.
func (a *asked) laterDevices(prior resource.Prior, live resource.Live) (all []*asked) {
	for i, slice := range a.session.More {
		d := &asked{session: a.session, device: i + 1, place: a.place, interior: a.interior, wanted: a.wanted}
		d.wanted.UUID, d.wanted.Slice, d.wanted.Place, d.wanted.More = slice.GPU, slice.GPU, slice.String(), nil
		held, _ := prior.GPU(slice.Host, slice.GPU)
		d.wanted.Applied = held.Applied
		if d.observed = ofGPU(slice, prior, live); d.observed.Live != nil {
			d.observed.SliceUUID = d.observed.Live.UUID
		}
		all = append(all, d)
	}
	return all
}

func askSession(ctx context.Context, p *project.Project, a *asked, prior resource.Prior, live resource.Live, o VerifyOptions) (err error) {
	s := a.session
	if a.interior, err = a.place.Interior(s); err != nil {
		return err
	}
	if a.wanted, err = wanted(s, a.interior, prior, live); err != nil {
		return err
	}
	if a.observed, err = fromOutside(ctx, a.place, s, prior, live); err != nil {
		return err
	}
	if a.observed.Bypassed, err = bypassed(ctx, p, a); err != nil {
		return err
	}
	a.later = a.laterDevices(prior, live)
	if a.observed.Live == nil {
		return nil // the checks would only report that the GPU cannot be read
	}
	leave, err := enterAlone(ctx, a.interior)
	if err != nil {
		return err
	}
	defer leave()
	// One after the other: both fill the memory up to the cap.
	a.inside = []verify.Inside{ask(verify.Exec, a.interior, execute(ctx, a.place, s.ID))}
	for _, d := range a.later {
		if vacant := a.inside[0].Vacant; vacant != "" {
			d.inside = []verify.Inside{{Way: verify.Exec, Vacant: vacant}}
			continue
		}
		in := verify.Inside{Way: verify.Exec, Answers: map[string]verify.Output{}}
		_ = execute(ctx, a.place, s.ID).answer(verify.DeviceQuestion(a.interior.Probe, d.device), in) // the answer has the error
		d.inside = []verify.Inside{in}
	}
	if s.Spec.SSH.Enabled && !o.NoSSH {
		a.inside = append(a.inside, askBySSH(ctx, p, s, a.interior, prior, live))
	}
	return nil
}

const (
	turnTime = 5 * time.Minute
	turnNap  = 100 * time.Millisecond
)

// enterAlone waits until no other cosplay tests the session, if its memory is counted, since two tests would find each
// other's memory in use. It locks the session's folder, so no lock file remains, and no program in a container can hold
// the lock. Another check reports a folder that cannot be opened.
func enterAlone(ctx context.Context, in runtime.Interior) (leave func(), err error) {
	leave = func() {}
	if in.UsageFile == "" {
		return leave, nil
	}
	folder, err := os.Open(in.Folder)
	if err != nil {
		return leave, nil
	}
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	for syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			_ = folder.Close()
			return nil, errors.New("another cosplay process is testing the session; try again later")
		case <-time.After(turnNap):
		}
	}
	return func() { _ = folder.Close() }, nil
}

// wanted is what a session should show according to the state.
func wanted(s resource.PriorSession, interior runtime.Interior, prior resource.Prior, live resource.Live) (verify.Wanted, error) {
	lowest, highest := disguise.PowerLimits(s.Target)
	w := verify.Wanted{
		Name: s.Target.Name, UUID: disguise.ShownUUID(resource.Handle{UUID: s.SliceID()}), Slice: s.SliceID(), MemoryMiB: s.Target.MemoryMiB,
		Power:     verify.Power{Limit: highest, Default: highest, Min: lowest, Max: highest},
		LacksTF32: !slices.Contains(s.Target.TensorTypes, "tf32"),
		Env:       interior.Env, Private: map[string]bool{}, Secret: map[string]func(string) bool{}, Container: interior.OwnRoot,
		CUDA: interior.UsageFile != "", Place: s.Slice.String(), PythonIn: interior.PythonIn,
	}
	w.More = prose.Each(s.More, func(slice resource.Slice) string { return slice.GPU })
	if h, ok := live.Host(s.Slice.Host); ok {
		w.Simulated = h.Simulated != ""
	}
	for name := range s.Env {
		w.Private[name] = true
	}
	for name := range s.Sealed {
		w.Secret[name] = func(value string) bool { return s.IsSecret(live.KeyOn(s.Slice.Host, prior.Key), name, value) }
	}
	if g, ok := live.GPU(s.Slice.Host, s.Slice.GPU); ok {
		w.Host = g.Model.Name
	}
	if g, ok := prior.GPU(s.Slice.Host, s.Slice.GPU); ok {
		w.Applied = g.Applied
	}
	switch {
	case s.Device() != "": // the container of others has any user
		return w, nil
	case !s.Spec.IsZero():
		w.User = &s.Spec.User
		return w, nil
	case interior.User != nil:
		w.User = interior.User
		return w, nil
	}
	who, err := machine.Invoker()
	w.User = &who.User
	return w, err
}

// fromOutside is what the host and the session's folder show.
func fromOutside(ctx context.Context, place runtime.Runtime, s resource.PriorSession, prior resource.Prior, live resource.Live) (verify.Observed, error) {
	o := ofGPU(s.Slice, prior, live)
	if g := o.Live; g != nil {
		if own, there := diff.OwnSlice(s, live); there {
			o.SliceUUID = own.UUID
		} else if s.Slice.Whole() {
			o.SliceUUID = g.UUID
		} else if other := diff.Overlapping(*g, s.Slice); other != nil {
			o.SliceUUID = other.UUID
		}
	}
	var err error
	o.Altered, err = place.Altered(ctx, s)
	return o, err
}

// ofGPU is what the host shows of the GPU of a slice.
func ofGPU(slice resource.Slice, prior resource.Prior, live resource.Live) (o verify.Observed) {
	if g, there := live.GPU(slice.Host, slice.GPU); there {
		o.Live = &g
	} else {
		o.NoGPU = live.NoGPU(slice.Host, slice.GPU)
	}
	if held, ours := prior.GPU(slice.Host, slice.GPU); ours {
		o.LockLost = diff.LockLost(held, prior, live)
	}
	return o
}

// bypassed compares what NVML reports in use in a session's slice with what the usage files of all sessions there account
// for, read before and after, because programs allocate meanwhile. On a whole GPU other users' programs are not distinguishable.
func bypassed(ctx context.Context, p *project.Project, a *asked) (uint64, error) {
	s := a.session
	if s.Slice.Whole() || !a.wanted.CUDA || a.observed.Live == nil {
		return 0, nil
	}
	accounted := func() (sum uint64) {
		for _, one := range append([]*asked{a}, a.beside...) {
			if usage, err := one.place.Usage(one.session.ID); err == nil { // else another check reports the file
				sum += uint64(usage.Total)
			}
		}
		return sum
	}
	before := accounted()
	now, err := p.Machine.Hosts()[s.Slice.Host].Agent.Read(ctx, resource.MPSSearch{})
	if err != nil {
		return 0, err
	}
	live := resource.Live{Hosts: []resource.Host{{Name: s.Slice.Host, GPUs: now.GPUs, BootID: now.BootID}}}
	own, there := diff.OwnSlice(s, live)
	gpu, _ := live.GPU(s.Slice.Host, s.Slice.GPU)
	if !there {
		return 0, nil
	}
	used, processes := 0, 0
	for _, process := range gpu.Processes {
		if process.In(own.Handle) {
			used, processes = used+process.MemoryMiB, processes+1
		}
	}
	return verify.Unaccounted(uint64(used)<<20, max(before, accounted()), processes), nil
}
