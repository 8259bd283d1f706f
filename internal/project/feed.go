package project

import (
	"context"
	"maps"
	"slices"
	"time"

	"cosplay/internal/machine"
	"cosplay/internal/observe"
	"cosplay/internal/resource"
)

// Feed reads a project again and again, for a live view. What is cheap is read each time, the rest as often as its cost
// permits: a thousand sessions must not keep a processor busy. One goroutine uses it.
type Feed struct {
	Project *Project

	last             Outlook
	stamp            string // of the state
	allAt, nextFull  time.Time
	gpusAt, nextGPUs time.Time
	costOfGPUs       time.Duration // of the last reading of the GPUs alone
	accounts         accounts
	used             map[resource.Address]resource.Use // as the last reading has it
	ended            map[resource.Address]int64        // as of the last reading of the GPUs
	busy             map[resource.Address]int          // likewise
	agentsSince      time.Time                         // when the agents of this machine were started
}

// Reading is what a feed has read.
type Reading struct {
	Outlook
	Used    map[resource.Address]resource.Use // of each session that counts its memory
	Changed []resource.Address                // sessions whose use differs from that of the reading before
	Busy    map[resource.Address]int          // in percent, of each session whose driver says it
	Full    bool                              // all was read, not the figures alone

	GPUsAt, AllAt time.Time // when the GPUs were read, and when all was
}

// heldAgents is how long the agents of this machine stay: the driver can refuse to switch MIG mode while a process has
// the GPU open, and the agent that switches it waits longer than that (agent.InUseWait).
const heldAgents = 4 * time.Second

// Next reads the figures, and the rest if it is time for it or the state has changed. After an error, the next call reads
// all again.
func (f *Feed) Next(ctx context.Context) (Reading, error) {
	p, now, before := f.Project, time.Now(), processorTime()
	if f.agentsSince.IsZero() {
		f.agentsSince = now
	}
	stamp := p.Store.Stamp()
	full := stamp != f.stamp || p.Unfinished() || !now.Before(f.nextFull)
	gpus := full || !now.Before(f.nextGPUs)
	err := f.read(ctx, full, gpus)
	cost := func() time.Duration { return processorTime() - before }
	// Elsewhere, a rest would end the connection.
	here := !slices.ContainsFunc(p.Intent.Hosts, p.Machine.Elsewhere)
	if err != nil || here && (time.Since(f.agentsSince) >= heldAgents || paceOfGPUs.after(cost()) >= heldAgents) {
		p.Machine.Rest()
		f.agentsSince = time.Time{}
	}
	if gpus && !full { // the first reading of all is dearer than any later one
		f.costOfGPUs = cost()
	}
	if gpus {
		f.gpusAt, f.nextGPUs = now, now.Add(paceOfGPUs.after(f.costOfGPUs))
	}
	if full {
		f.allAt, f.nextFull, f.stamp = now, now.Add(paceOfAll.after(cost())), stamp
	}
	if err != nil {
		f.nextFull = time.Time{}
		return Reading{}, err
	}
	var changed []resource.Address
	if full {
		f.accounts = p.accounts(f.last.Prior, f.last.Live)
	} else {
		changed = f.accounts.read(&p.Fleet, f.last.Prior, now)
	}
	if gpus {
		f.ended = ended(f.accounts.uses, f.last.Prior, f.last.Live)
	}
	if earlier := f.used; gpus || len(changed) > 0 { // callers keep the one before
		f.used = maps.Clone(f.accounts.uses)
		free(f.used, f.ended)
		if gpus {
			changed = differences(earlier, f.used)
		}
	}
	return Reading{f.last, f.used, changed, f.busy, full, f.gpusAt, f.allAt}, nil
}

// differences are the sessions that do not have the same use in both.
func differences(before, now map[resource.Address]resource.Use) (all []resource.Address) {
	for a, use := range now {
		if was, there := before[a]; !there || !use.Equals(was) {
			all = append(all, a)
		}
	}
	for a := range before {
		if _, there := now[a]; !there {
			all = append(all, a)
		}
	}
	return all
}

func (f *Feed) read(ctx context.Context, full, gpus bool) (err error) {
	p := f.Project
	switch {
	case full:
		f.last, err = p.Peek(ctx)
	case gpus:
		var now resource.Live
		if now, err = p.Hardware(ctx); err == nil {
			f.last.Live = withGPUs(f.last.Live, now)
			observe.ResolveMarks(f.last.Live, f.last.Prior, machine.Runs)
		}
	}
	if err == nil && gpus {
		f.busy = p.busy(ctx, f.last.Prior, f.last.Live)
	}
	return err
}

// withGPUs is a snapshot with the GPUs of a later one. A host that could not be read again stays as it was.
func withGPUs(live, later resource.Live) resource.Live {
	live.Hosts = slices.Clone(live.Hosts)
	for i := range live.Hosts {
		h := &live.Hosts[i]
		if now, there := later.Host(h.Name); there && now.Unreachable == "" && h.Unreachable == "" {
			h.GPUs, h.Unusable, h.BootID = now.GPUs, now.Unusable, now.BootID
			h.Index()
		}
	}
	return live
}
