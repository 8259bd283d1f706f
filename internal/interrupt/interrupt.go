// Package interrupt handles the signals that ask a command to end, in two stages: the
// first signal lets it finish what it has begun, the second ends it at once.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals are those that ask the process to end. From Catch to Release they do not end it.
type Signals struct{ caught chan os.Signal }

// Catch catches SIGINT, SIGTERM and, unless the process was started to ignore it, as by
// nohup, SIGHUP. A shell starts what runs in the background to ignore SIGINT.
func Catch() Signals {
	s := Signals{make(chan os.Signal, 4)}
	signal.Notify(s.caught, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.caught, syscall.SIGHUP)
	}
	return s
}

// Release lets signals end the process again.
func (s Signals) Release() { signal.Stop(s.caught) }

// Pending reports whether a signal was caught and not handled.
func (s Signals) Pending() bool { return len(s.caught) > 0 }

// Forget drops the signals that were caught.
func (s Signals) Forget() {
	for len(s.caught) > 0 {
		<-s.caught
	}
}

// Handle calls first at the first signal and second at each later one, until release. A
// terminal that hangs up sends SIGHUP more than once, from the shell and from the kernel:
// only the first signal can be a SIGHUP.
func (s Signals) Handle(first, second func()) (release func()) {
	released := make(chan struct{})
	go func() {
		for began := false; ; {
			select {
			case <-released:
				return
			case caught := <-s.caught:
				switch {
				case !began:
					first()
				case caught != syscall.SIGHUP:
					second()
				}
				began = true
			}
		}
	}()
	return func() { close(released) }
}

// Context ends at the first signal, after it has called first; each later signal calls
// second. The caller calls release in the end.
func Context(ctx context.Context, first, second func()) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	s := Catch()
	unhandle := s.Handle(func() { first(); cancel() }, second)
	return ctx, func() {
		s.Release()
		unhandle()
		cancel()
	}
}

// OutliveReaders makes writing to a pipe that no process reads an error, instead of the
// end of the process. The signal is not ignored: a child process would ignore it, too.
func OutliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
