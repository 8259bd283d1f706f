package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cosplay/internal/ledger"
)

// Serve is the child: it answers requests from in on out until in ends. A call
// that hangs past its request's deadline is answered with an error, and the
// process ends, since nothing else can stop it.
//
// ledgerDir is the folder of the host's ledger, against which every change is
// held; "" keeps none.
func Serve(in io.Reader, out io.Writer, library, ledgerDir string) error {
	// The parent may be gone before its answer is: that must not end us before
	// the driver is closed.
	signal.Ignore(syscall.SIGPIPE)
	lib, err := open(library)
	if err != nil {
		// The first request gets the reason; a child that just dies tells nothing.
		lib = &nvmlLibrary{broken: err}
	}
	defer lib.close()
	lib.book = ledger.Book{Dir: ledgerDir}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		watchdog := time.AfterFunc(r.Deadline, func() {
			_ = encoder.Encode(response{Error: lib.hung(r.Deadline), Last: true})
			os.Exit(1)
		})
		answer := lib.handle(r)
		if !watchdog.Stop() {
			select {} // the watchdog is answering and ends the process
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// handle carries out one request.
func (l *nvmlLibrary) handle(r request) response {
	var (
		answer response
		err    = l.broken
	)
	if err == nil {
		err = l.do(r, &answer)
	}
	if err != nil {
		var known *Error
		if !errors.As(err, &known) {
			known = &Error{GPU: r.GPU, Message: err.Error()} // not NVML's: the ledger's
		}
		answer.Error = known
	}
	return answer
}

func (l *nvmlLibrary) do(r request, answer *response) (err error) {
	switch r.Op {
	case opRead:
		answer.Host, err = l.read()
		return err
	case opTake, opLeave, opRelease:
		return l.keepBooks(r)
	}
	g, err := l.device(r.GPU)
	if err != nil {
		return err
	}
	if err := l.allowed(r); err != nil {
		return err
	}
	err = g.change(r, answer)
	return l.noted(r, answer, err)
}

// change changes one GPU.
func (d device) change(r request, answer *response) (err error) {
	switch r.Op {
	case opSetMIG:
		return d.setMIG(r.On)
	case opSetPersistence:
		return d.setPersistence(r.On)
	case opLockClock:
		return d.lockClock(r.Value)
	case opUnlockClock:
		return d.unlockClock()
	case opSetPower:
		return d.setPower(r.Value)
	case opCreateSlice:
		answer.Slice, err = d.createSlice(r.Slice.Slice, *r.Need)
		return err
	case opDestroySlice:
		return d.destroySlice(*r.Slice)
	}
	return &Error{Call: r.Op, Message: "unknown operation"}
}
