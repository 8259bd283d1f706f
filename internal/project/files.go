package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/state"
)

// Files are the folder of a project and its state, with the state's lock.
type Files struct {
	Dir     string // absolute
	Store   state.Store
	Waiting func(*durable.Holder) // called with the holder of the lock, after a wait of a second; may be nil

	lock    *durable.Lock
	command string // that took the lock
	once    bool   // they are a run's, with its own folder
}

// Name is that of the project's folder.
func (f *Files) Name() string { return filepath.Base(f.Dir) }

// Lock takes the state's lock for a command that changes something. It waits for the
// given time at most.
func (f *Files) Lock(ctx context.Context, command string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if f.once {
		if err := os.MkdirAll(filepath.Dir(f.Store.Path), 0o700); err != nil {
			return fmt.Errorf("creating a folder for the state: %w. Fix: use another folder (--chdir)", err)
		}
	}
	if err := f.Store.Writable(state.RoomToDestroy(0)); err != nil { // checkRoom checks what the plan needs
		return err
	}
	defer f.handOver() // a user may read the state while the command runs
	lock, err := durable.Acquire(ctx, f.Store.LockPath(), command, f.Waiting)
	if err != nil {
		return err
	}
	f.lock, f.command = lock, command
	durable.Sweep(f.Store.Path)
	return f.checkOwner(true)
}

// Locked reports whether the project has the lock, which means that an apply is under way.
func (f *Files) Locked() bool { return f.lock != nil }

// Unlock releases the lock, if the project has it.
func (f *Files) Unlock() error {
	if f.lock == nil {
		return nil
	}
	f.handOver()
	lock := f.lock
	f.lock = nil
	return lock.Release()
}
