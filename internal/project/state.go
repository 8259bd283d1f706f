package project

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// Remembered is the state as it was last written, without a look at any host.
// It is open while a run is under way, or was cut off and is not yet folded in.
func (p *Project) Remembered() (prior resource.Prior, open bool, err error) {
	prior, err = p.Store.Load()
	return prior, p.Unfinished(), err
}

// Settled is the state with nothing open: what a run that was cut off has left
// is folded into it, for which the hosts are looked at. The caller has the lock,
// and may save what he makes of it.
func (p *Project) Settled(ctx context.Context) (resource.Prior, error) {
	if !p.Unfinished() {
		return p.Store.Load()
	}
	prior, _, err := p.Refresh(ctx)
	return prior, err
}

// Addresses are those of the configuration's sessions.
func (p *Project) Addresses() []resource.Address {
	var all []resource.Address
	for _, s := range p.Intent.Sessions {
		all = append(all, s.Address)
	}
	return all
}

// SimDirs are the folders of the hosts that are no hardware, by host.
func (p *Project) SimDirs() map[string]string {
	dirs := map[string]string{}
	for _, h := range p.Intent.Hosts {
		if h.Simulate != "" {
			dirs[h.Name] = p.Machine.SimDir(h.Name)
		}
	}
	return dirs
}

// LockState is who has the state's lock, or left a note in it and died.
func (p *Project) LockState() (durable.Inspection, error) {
	return durable.Inspect(p.Store.LockPath())
}

// CutOff is what the journal tells of a run that is under way or was cut off.
type CutOff struct {
	Begun time.Time
	Done  int // steps
	Open  int // steps of which nobody knows how far they came
}

// CutOff reads the journal; nil where there is none.
func (p *Project) CutOff() (*CutOff, error) {
	info, err := os.Stat(p.Store.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := p.journal()
	if err != nil {
		return nil, err
	}
	run := CutOff{Begun: info.ModTime()} // of one that was cut off in its first line
	open := map[string]bool{}
	for _, e := range entries {
		switch e.Event {
		case apply.Begin:
			run.Begun = e.Time
		case apply.Started:
			open[e.Step] = true
		case apply.Done:
			run.Done++
			delete(open, e.Step)
		case apply.Failed:
			delete(open, e.Step)
		}
	}
	run.Open = len(open)
	return &run, nil
}
