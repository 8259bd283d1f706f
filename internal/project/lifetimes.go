package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/resolve"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// ends are the ends of the sessions that have one, as of now. Sessions with an idle_timeout are checked for activity,
// and their last activity is recorded.
func (p *Project) ends(ctx context.Context, prior resource.Prior, live resource.Live) map[resource.Address]resource.End {
	ends, active := map[resource.Address]resource.End{}, p.active(ctx, prior, live)
	for _, s := range prior.Sessions {
		if s.Lifetime == (resource.Lifetime{}) || s.Body == nil {
			continue
		}
		var last resource.Moment
		if s.Lifetime.IdleTimeout != 0 {
			last = p.lastActive(s, prior, active[s.Address])
		}
		if end := s.End(last); end.At != 0 {
			ends[s.Address] = end
		}
	}
	return ends
}

// Ended are the ends that have come.
func Ended(ends map[resource.Address]resource.End, now resource.Moment) map[resource.Address]resource.End {
	ended := maps.Clone(ends)
	maps.DeleteFunc(ended, func(_ resource.Address, end resource.End) bool { return !end.Expired(now) })
	return ended
}

// Now is the present moment.
func Now() resource.Moment { return resource.Moment(time.Now().Unix()) }

func activityFile(dir string, s resource.PriorSession, prior resource.Prior) string {
	return filepath.Join(dir, resource.ShortLineage(prior.Lineage)+"-"+s.ID)
}

// activityDir is the folder, in the scratch folder of a project, with a file for each session that can become idle. The
// file's time is that of the last activity that cosplay has seen.
func activityDir(project string) string {
	return filepath.Join(project, machine.ScratchDir, "activity")
}

// forgetActivity removes the files of sessions that no longer exist, also of those that another run removed.
func (f *Files) forgetActivity(prior resource.Prior) {
	dir := activityDir(f.Dir)
	files, _ := os.ReadDir(dir)
	known := map[string]bool{}
	for _, s := range prior.Sessions {
		known[activityFile(dir, s, prior)] = true
	}
	for _, e := range files {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), resource.ShortLineage(prior.Lineage)+"-") && !known[path] {
			_ = os.Remove(path) // at worst a name is left
		}
	}
}

// lastActive is the last moment at which a session was seen active; 0 for never. A user who may not write into the
// project's folder sees what others have recorded.
func (f *Files) lastActive(s resource.PriorSession, prior resource.Prior, active bool) resource.Moment {
	file, now := activityFile(activityDir(f.Dir), s, prior), time.Now()
	if active {
		_ = touch(file, now)
		return resource.Moment(now.Unix())
	}
	return touched(file, now)
}

// touched is when a file was last touched; 0 if it does not exist. cosplay trusts no recorded time that lies in the
// future, by a clock that was ahead then: it counts as the moment at which cosplay first sees that, which the file has
// from now on.
func touched(file string, now time.Time) resource.Moment {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return 0
	case info.ModTime().After(now):
		_ = touch(file, now)
		return resource.Moment(now.Unix())
	}
	return resource.Moment(info.ModTime().Unix())
}

// trust replaces the starts of sessions that lie in the future, as touched does: a file beside that of the activity has
// when cosplay first saw it, until a run records it in the state.
func (f *Files) trust(prior resource.Prior) resource.Prior {
	for i, now := 0, time.Now(); i < len(prior.Sessions); i++ {
		s := &prior.Sessions[i]
		if s.Lifetime.TTL+s.Lifetime.IdleTimeout > 0 && s.UpAt != 0 {
			file := fmt.Sprintf("%s.%d", activityFile(activityDir(f.Dir), *s, prior), s.UpAt)
			if seen := touched(file, now); seen != 0 {
				s.UpAt = min(s.UpAt, seen)
			} else if s.UpAt > resource.Moment(now.Unix()) {
				_ = touch(file, now)
			}
		}
		s.UpAt = min(s.UpAt, resource.Moment(now.Unix()))
	}
	return prior
}

func touch(file string, now time.Time) error {
	err := os.Chtimes(file, now, now)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = durable.WriteFile(file, nil, 0o644)
		}
	}
	return err
}

// active are the sessions with an idle_timeout that have a process on their slice, or a user in them. What cannot be
// read counts as active: cosplay ends no session that it cannot see to be idle.
func (l *Fleet) active(ctx context.Context, prior resource.Prior, live resource.Live) map[resource.Address]bool {
	active, quiet := map[resource.Address]bool{}, map[[2]string][]resource.PriorSession{} // by host and runtime
	for _, s := range prior.Sessions {
		if s.Lifetime.IdleTimeout == 0 || s.Body == nil {
			continue
		}
		if usesGPU(s, live) {
			active[s.Address] = true
		} else if body, there := live.Body(s.Slice.Host, s.Runtime, s.ID); there && body.State != resource.Stopped {
			of := [2]string{s.Slice.Host, s.Runtime}
			quiet[of] = append(quiet[of], s)
		}
	}
	for _, some := range quiet {
		in, err := l.Runtime(ctx, some[0], prior)
		entered, can := in.(runtime.Entered)
		if err == nil && !can {
			continue
		}
		inside := map[string]bool{}
		if err == nil {
			inside, err = entered.Entered(ctx, prose.Each(some, func(s resource.PriorSession) string { return s.ID }))
		}
		for _, s := range some {
			active[s.Address] = err != nil || inside[s.ID]
		}
	}
	return active
}

// usesGPU reports whether a process is on the slice of a session, or may be.
func usesGPU(s resource.PriorSession, live resource.Live) bool {
	return slices.ContainsFunc(s.On(), func(gpu resource.GPUKey) bool {
		g, readable := live.GPU(gpu.Host, gpu.UUID)
		return !readable || g.Without(resource.ReadingProcesses) || slices.ContainsFunc(g.Processes, func(one resource.Process) bool {
			inSlice := s.Handle != nil && one.In(*s.Handle)
			return inSlice || s.Slice.Whole() && one.Session == s.ID
		})
	})
}

// expiring are the records of the sessions that are to be ended: those whose lifetime has ended, without those that
// prevent_destroy keeps.
func (l *Fleet) expiring(prior resource.Prior, ended map[resource.Address]resource.End) map[resource.Address]resource.Expired {
	all := map[resource.Address]resource.Expired{}
	for _, s := range prior.Sessions {
		if end, is := ended[s.Address]; is && !s.PreventDestroy {
			all[s.Address] = resolve.Expired(l.Intent, prior, s.Address, end)
		}
	}
	return all
}

// EndExpired ends the sessions whose lifetime has ended, all or those that are named, and changes nothing else. grace is
// the time between SIGTERM and SIGKILL. The caller has the lock.
func (p *Project) EndExpired(ctx context.Context, names []string, grace resource.Seconds, o ApplyOptions, by Operator) error {
	return p.Reconcile(ctx, Aim{Goal: ExpiredEnded, Target: names, Grace: grace}, o, AfterOthers, by)
}

// Extension is the new end of a session.
type Extension struct {
	Address resource.Address
	To      resource.Moment
	Down    bool // it has expired and was ended; an apply creates it again
}

// Extend gives sessions more time. Names are as users type them. The caller has the lock.
func (p *Project) Extend(ctx context.Context, names []string, by resource.Seconds) ([]Extension, error) {
	prior, live, err := p.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	expired := prose.Each(prior.Expired, func(e resource.Expired) resource.Address { return e.Address })
	all := append(prior.Addresses(), expired...)
	chosen, err := p.meant(all, "extend", names)
	if err != nil {
		return nil, err
	}
	next, now := prior.Clone(), Now()
	var done []Extension
	for _, a := range slices.SortedFunc(maps.Keys(chosen), resource.Address.Compare) {
		extension := Extension{Address: a, To: now + resource.Moment(by)}
		if i := slices.IndexFunc(next.Expired, func(e resource.Expired) bool { return e.Address == a }); i >= 0 {
			extension.To, extension.Down = max(extension.To, next.Expired[i].ExtendedTo+resource.Moment(by)), true
			next.Expired[i].ExtendedTo = extension.To
			for _, h := range live.Hosts { // it is on no GPU, and may get any
				every := prose.Each(h.GPUs, func(g resource.GPU) string { return g.UUID })
				if err := p.refuseLonger(live, h.Name, every, resource.Seconds(extension.To-now)); err != nil {
					return nil, err
				}
			}
		}
		if i := slices.IndexFunc(next.Sessions, func(s resource.PriorSession) bool { return s.Address == a }); i >= 0 {
			s := &next.Sessions[i]
			if s.Lifetime == (resource.Lifetime{}) {
				return nil, prose.Advice{What: fmt.Sprintf("%s has no ttl, idle_timeout or stop_at, so it does not expire. Nothing was changed", a), Fix: "leave it out"}
			}
			s.ExtendedTo = s.Extended(by, now)
			extension.To = s.ExtendedTo
			if err := p.refuseLonger(live, s.Slice.Host, gpusOf(s.Session), resource.Seconds(extension.To-now)); err != nil {
				return nil, err
			}
		}
		done = append(done, extension)
	}
	_, err = p.Store.Save(next)
	return done, err
}
