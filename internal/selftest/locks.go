package selftest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cosplay/internal/diff"
	"cosplay/internal/disguise/verify"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

const (
	loadBegins = time.Minute     // for the driver to start, and the container engine
	loadTime   = 3 * time.Second // of readings, at most
	loadNap    = 25 * time.Millisecond
)

// loadGPUs proves the clock locks. NVML cannot read one, so a session fills memory for a
// moment while the agent reads the SM clock. Each GPU is tested once, by the first of its
// sessions that can.
func loadGPUs(ctx context.Context, p *project.Project, all []*asked) {
	on := map[resource.GPUKey][]*asked{}
	for _, a := range all {
		if a.wanted.Locked() && a.observed.Live != nil {
			on[a.on()] = append(on[a.on()], a)
		}
	}
	var (
		turns = make(chan struct{}, verifyAtOnce)
		group sync.WaitGroup
	)
	for id, sessions := range on {
		agent := p.Machine.Hosts()[id.Host].Agent
		read := func(ctx context.Context) (resource.ClockSample, error) { return agent.Clock(ctx, id.UUID) }
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			loadGPU(ctx, sessions, read)
		})
	}
	group.Wait()
}

// loadGPU tries the sessions of a GPU one after the other until one succeeds, and stores
// the result in all of them.
func loadGPU(ctx context.Context, sessions []*asked, read clockOf) {
	var load verify.Load
	for _, a := range sessions {
		if len(a.inside) > 0 && a.inside[0].Vacant != "" {
			load.Failed = a.inside[0].Vacant
			continue
		}
		leave, err := enterAlone(ctx, a.interior)
		if err != nil {
			load.Failed = err.Error()
			continue
		}
		load = underLoad(ctx, a.place, a.session.ID, a.load(), a.wanted.Applied.Value(resource.SMClock), read)
		leave()
		if load.Failed == "" {
			break
		}
	}
	for _, a := range sessions {
		a.observed.Load = load
	}
}

// load is the program that loads the GPU of the device.
func (a *asked) load() []string {
	argv := []string{a.interior.Probe, "load"}
	if a.device > 0 {
		argv = append(argv, strconv.Itoa(a.device))
	}
	return argv
}

// clockOf reads the SM clock of a GPU.
type clockOf func(context.Context) (resource.ClockSample, error)

// underLoad loads a session's GPU, and reads the clock until the readings are settled or
// the time is up.
func underLoad(ctx context.Context, place runtime.Runtime, session string, argv []string, lock int, read clockOf) verify.Load {
	ctx, cancel := context.WithTimeout(ctx, loadBegins+loadTime)
	defer cancel()
	loaded, unloaded := context.WithCancel(ctx)
	input, end := io.Pipe()
	var (
		out   = firstWords{begun: make(chan struct{})}
		said  bytes.Buffer
		ended = make(chan int, 1)
		load  verify.Load
	)
	go func() {
		code, err := place.Exec(ctx, session, runtime.Program{Argv: argv}, runtime.Streams{In: input, Out: &out, Err: &said})
		if err != nil {
			code = cmp.Or(code, 1)
			said.WriteString(firstLine(err))
		}
		_ = input.Close()
		unloaded()
		ended <- code
	}()
	select {
	case <-out.begun:
		load = sample(loaded, lock, read)
	case <-loaded.Done():
	}
	_ = end.Close() // which ends the load
	code := <-ended
	if len(load.Samples) == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		load.Failed = fmt.Sprintf("the load has not begun within %s", loadBegins)
	} else if words, failed := verify.LoadFailed(verify.Output{Text: out.String(), Error: said.String(), Code: code}); failed {
		load.Failed = words
	}
	return load
}

// sample reads the clock until it is settled, the time is up, or it cannot be read.
func sample(ctx context.Context, lock int, read clockOf) (load verify.Load) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	for ctx.Err() == nil && !load.Settled(lock) {
		s, err := read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				load.Failed = "the SM clock cannot be read: " + firstLine(err)
			}
			return load
		}
		load.Samples = append(load.Samples, s)
		select {
		case <-ctx.Done():
		case <-time.After(loadNap):
		}
	}
	return load
}

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// firstWords keeps what is written to it, and signals the first write.
type firstWords struct {
	begun chan struct{}
	mu    sync.Mutex
	text  bytes.Buffer
}

func (f *firstWords) Write(data []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text.Len() == 0 && len(data) > 0 {
		close(f.begun)
	}
	return f.text.Write(data)
}

func (f *firstWords) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// ClockLock is the result of verify for the clock lock of a GPU.
type ClockLock struct {
	Host, GPU string // GPU: UUID
	LockMHz   int
	FoundMHz  int  // the SM clock under load
	Unmanaged bool // the driver does not offer the calls for a lock, so it cannot be refuted
}

// Proven reports whether the lock is in effect.
func (l ClockLock) Proven() bool { return l.FoundMHz == l.LockMHz }

// lock is the result of a load for the lock of the session's GPU; nil without a result.
func (a *asked) lock() *ClockLock {
	if !a.wanted.Locked() {
		return nil
	}
	lock := a.wanted.Applied.Value(resource.SMClock)
	mhz, known := a.observed.Load.MHz(lock)
	if !known {
		return nil
	}
	unmanaged := a.observed.Live != nil && a.observed.Live.Without(resource.FeatureClock)
	return &ClockLock{Host: a.on().Host, GPU: a.on().UUID, LockMHz: lock, FoundMHz: mhz, Unmanaged: unmanaged}
}

// keepLocks records in the state which locks were refuted, so that drift reports them and
// the next apply sets them again, and which are in effect again.
func keepLocks(ctx context.Context, p *project.Project, prior resource.Prior, locks []ClockLock) error {
	if noted, changed := withLocks(prior, locks); !changed || noted.Lineage == "" {
		return nil
	}
	if !p.Locked() {
		if err := p.Lock(ctx, "verify", project.RecoveryWait); err != nil {
			return fmt.Errorf("record the result for clock locks in the state: %w", err)
		}
		defer func() { _ = p.Unlock() }()
	}
	now, err := p.Settled(ctx)
	if err != nil {
		return err
	}
	noted, changed := withLocks(now, locks)
	if changed {
		_, err = p.Store.Save(noted)
	}
	return err
}

// withLocks is a state with the results for its locks.
func withLocks(prior resource.Prior, locks []ClockLock) (noted resource.Prior, changed bool) {
	noted = prior.Clone()
	for _, l := range locks {
		for i := range noted.GPUs {
			g, refuted := &noted.GPUs[i], 0
			if !l.Proven() && !l.Unmanaged {
				refuted = l.FoundMHz
			}
			if g.Host == l.Host && g.UUID == l.GPU && g.Applied.Is(resource.SMClock, l.LockMHz) && g.ClockRefutedMHz != refuted {
				g.ClockRefutedMHz, changed = refuted, true
			}
		}
	}
	return noted, changed
}

// withClockLocks adds refuted locks to the drift, and removes proven ones from the
// unproven locks.
func withClockLocks(d *diff.Diff, verified []Verified) {
	locks := prose.Each(verified, func(v Verified) []ClockLock { return v.Locks })
	for _, l := range slices.Concat(locks...) {
		if l.Unmanaged && !l.Proven() {
			continue
		}
		at := func(host, gpu string) bool { return host == l.Host && gpu == l.GPU }
		d.Unproven = slices.DeleteFunc(d.Unproven, func(u diff.UnprovenLock) bool { return at(u.Host, u.GPU) })
		known := slices.ContainsFunc(d.Drift, func(one diff.Drift) bool { return one.Class == diff.ClockLock && at(one.Host, one.GPU) })
		if !l.Proven() && !known {
			d.Drift = append(d.Drift, diff.Drift{Class: diff.ClockLock, Host: l.Host, GPU: l.GPU,
				From: diff.Clock{MHz: l.LockMHz}, To: diff.Clock{MHz: l.FoundMHz, As: diff.ClockOther, Read: l.FoundMHz}})
		}
	}
}
