package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Remembered is the state as it was last written; no host is read. It is open if a run is
// under way, or was interrupted and its journal is not yet folded in.
func (f *Files) Remembered() (prior resource.Prior, open bool, err error) {
	prior, err = f.Store.Load()
	return prior, f.Unfinished(), err
}

// Settled is the state with the journal of an interrupted run folded in; it reads the hosts
// only if there is a journal. The caller has the lock, and may save the state.
func (p *Project) Settled(ctx context.Context) (resource.Prior, error) {
	if !p.Unfinished() {
		return p.Store.Load()
	}
	prior, _, err := p.Refresh(ctx)
	return prior, err
}

// Addresses are those of the configuration's sessions.
func (l *Fleet) Addresses() []resource.Address {
	return prose.Each(l.Intent.Sessions, func(s config.Session) resource.Address { return s.Address })
}

// SimDirs are the folders of the simulated hosts, by host.
func (l *Fleet) SimDirs() map[string]string {
	dirs := map[string]string{}
	for _, h := range l.Intent.Hosts {
		if h.Simulate != "" && h.Connect == "" {
			dirs[h.Name] = l.Machine.SimDir(h.Name)
		}
	}
	return dirs
}

// LockState is the process that has the state's lock, or ended and left its note in it.
func (f *Files) LockState() (durable.Inspection, error) {
	return durable.Inspect(f.Store.LockPath())
}

// Interrupted is the journal's summary of a run that is under way or was interrupted.
type Interrupted struct {
	Begun time.Time
	Done  int // steps
	Open  int // steps that have started and have no outcome yet
}

// Interrupted reads the journal; nil if there is none.
func (f *Files) Interrupted() (*Interrupted, error) {
	info, err := os.Stat(f.Store.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := f.journal()
	if err != nil {
		return nil, err
	}
	run := Interrupted{Begun: info.ModTime(), Open: len(apply.Open(entries))}
	if len(entries) > 0 { // else it was interrupted in its first line
		run.Begun = entries[0].Time
	}
	run.Done = len(prose.Only(entries, func(e apply.Entry) bool { return e.Event == apply.Done }))
	return &run, nil
}

// Readdress writes the new addresses of sessions into their folders, where state rebuild
// reads them.
func (l *Fleet) Readdress(prior resource.Prior, moves []resource.Renamed) error {
	var problems []error
	owner := prior.Owner()
	for _, m := range moves {
		s, there := prior.Session(m.To)
		c, err := l.Host(s.Slice.Host)
		if !there || err != nil {
			continue // it has been removed, or its host cannot be reached
		}
		h, err := l.Machine.Open(c)
		if err != nil && l.Machine.Elsewhere(c) {
			continue
		}
		if err == nil {
			err = h.Readdress(context.Background(), s, owner, m.To)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("write the new address of %s into its folder: %w", m.To, err))
		}
	}
	return errors.Join(problems...)
}

// moves are the new addresses that the operations of steps, or of a journal, give to
// sessions.
func moves[T any](all []T, opOf func(T) *plan.OpJSON) (moves []resource.Renamed) {
	for _, one := range all {
		done := opOf(one)
		if done == nil {
			continue
		}
		if op, is := done.Op.(plan.MoveSessions); is {
			moves = append(moves, op.Moves...)
		}
	}
	return moves
}
