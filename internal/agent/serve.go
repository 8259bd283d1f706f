package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
)

// maxRequest bounds the length of one request, in bytes.
const maxRequest = 1 << 20

// Serve is the child: it answers requests from in on out until in ends. A call
// that hangs past its request's deadline is answered with an error, and the
// process ends, since nothing else can stop it.
//
// ledgerDir is the folder of the host's ledger, against which every change is
// held; "" keeps none.
func Serve(in io.Reader, out io.Writer, library, ledgerDir string) error {
	lib, err := open(library)
	if err != nil {
		// The first request gets the reason; a child that just dies tells nothing.
		lib = &nvmlLibrary{broken: err}
	}
	lib.book = ledger.Book{Dir: ledgerDir}
	return lib.serve(in, out)
}

func (l *nvmlLibrary) serve(in io.Reader, out io.Writer) error {
	// The parent may be gone before its answer is: that must not end us before
	// the driver is closed.
	signal.Ignore(syscall.SIGPIPE)
	defer l.close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRequest)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		r, err := parse(lines.Bytes())
		if err != nil {
			l.record(r, err)
			return errors.Join(err, encoder.Encode(answered(response{Last: true}, r, err)))
		}
		deadline := time.Duration(r.Deadline)
		// Who could cut root off in the middle of a step would leave what he likes.
		if l.guard != nil || deadline <= 0 || deadline > changeDeadline {
			deadline = changeDeadline
		}
		watchdog := time.AfterFunc(deadline, func() {
			time.AfterFunc(time.Second, func() { os.Exit(1) }) // a client that reads nothing keeps no lock
			hung := l.hung(deadline)
			if r.alters() {
				l.record(r, hung)
			}
			_ = encoder.Encode(answered(response{Last: true}, r, hung))
			os.Exit(1)
		})
		answer := l.handle(r, deadline)
		if !watchdog.Stop() {
			select {} // the watchdog is answering and ends the process
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a request without an end: %d bytes are too many", maxRequest)
		l.record(request{}, err)
		return errors.Join(err, encoder.Encode(answered(response{Last: true}, request{}, err)))
	}
	return lines.Err()
}

// handle carries out one request.
func (l *nvmlLibrary) handle(r request, deadline time.Duration) response {
	var (
		answer response
		err    = r.check()
	)
	l.deadline = deadline
	if err == nil && r.Op != opHello {
		err = l.broken
	}
	switch {
	case err != nil, r.Op == opHello:
	case r.Op == opRead:
		// Somebody's agent may be in the middle of a step, and its parent dead: what
		// would be seen now is not what will be.
		if err = l.book.Quiet(min(deadline, readDeadline) * 3 / 4); err == nil {
			answer.Host, err = packed(l.read())
		}
	case r.Op == opClock:
		answer.Clock, err = l.sampleClock(r.GPU)
	default:
		err = l.inUseBy(l.alter(r, &answer))
	}
	if r.alters() {
		l.record(r, err)
	}
	if errors.Is(err, ledger.ErrNotHeld) { // recorded as refused, and no failure
		err = nil
	}
	return answered(answer, r, err)
}

// answered completes an answer with its version and with what went wrong.
func answered(answer response, r request, err error) response {
	answer.Version = Protocol
	var (
		known   *Error
		refused *ledger.RefusedError
	)
	switch {
	case err == nil:
	case errors.As(err, &known):
		answer.Error = known
	default: // not NVML's: the ledger's
		advice := prose.AdviceOf(err)
		answer.Error = &Error{GPU: r.GPU, Message: advice.What, Advice: prose.Advice{Fix: advice.Fix}}
		answer.Error.Refused = errors.As(err, &refused) && refused.Overtaken
	}
	return answer
}

// record writes a request into the history of the ledger, with why it was refused.
func (l *nvmlLibrary) record(r request, refused error) {
	a := ledger.Attempted{At: time.Now().UTC().Format(time.RFC3339), UID: os.Getuid(), Op: r.kind(), GPU: r.GPU, Value: r.value(),
		Lineage: r.Holder.Lineage, State: r.Holder.State, User: r.Holder.User}
	if l.guard != nil {
		a.UID, a.User = l.guard.uid, l.guard.user // whatever the request says
	}
	if refused != nil {
		a.Refused = refused.Error()
	}
	_ = l.book.Record(a) // on a full disk the change itself counts more than its line
}

// alter carries out a request that leaves something different.
func (l *nvmlLibrary) alter(r request, answer *response) (err error) {
	l.users = nil
	if err := l.begin(r.GPU, l.deadline/2); err != nil { // the other half is for the driver
		return err
	}
	defer func() { l.turn.End() }()
	if l.guard != nil {
		if r, err = l.guard.admit(l, r); err != nil {
			return err
		}
	}
	if r.onlyLedger() {
		return l.changeLedger(r)
	}
	g, err := l.device(r.GPU)
	if err != nil {
		return err
	}
	before, err := l.page(r)
	if err != nil {
		return err
	}
	l.permission = func() error { return l.explain(r, l.allowed(r)) }
	if err := l.permission(); err != nil {
		return err
	}
	err = g.change(r, answer)
	if isCode(err, nvml.ERROR_UNKNOWN) && leavesNothing(r, err) {
		err = g.change(r, answer) // an unknown error that passes is no reason to give anything up
	}
	if err != nil {
		err = l.giveUp(r, before, err)
	}
	return l.noted(r, answer, err)
}

// leavesNothing reports whether a change that failed can be made again: a setting can,
// and a slice of which nothing is left.
func leavesNothing(r request, err error) bool {
	at, known := failedCall(err)
	return r.Op != opCreateSlice || known && at.Sure && at.GPUInstance == nil
}

// begin waits for the turn to change a GPU, which alter ends.
func (l *nvmlLibrary) begin(gpu string, wait time.Duration) (err error) {
	uid := 0
	if l.guard != nil {
		uid = l.guard.uid
	}
	l.turn, err = l.book.Turn(uid, gpu, wait)
	return err
}

// nap waits between two tries and ends the turn meanwhile: a user whose process holds a
// slice must not block other users. Their changes can end the permission for this change,
// so nap checks it again.
func (l *nvmlLibrary) nap(gpu string, d time.Duration) error {
	l.turn.End()
	time.Sleep(d)
	if err := l.begin(gpu, l.deadline/6); err != nil {
		return err
	}
	if l.guard != nil && l.guard.abandoned() {
		return errGone
	}
	return l.permission()
}

// change changes one GPU.
func (d device) change(r request, answer *response) (err error) {
	switch r.Op {
	case opSet:
		answer.Value, err = drivers[*r.Setting].set(d, r.Value)
		return err
	case opCreateSlice:
		answer.Slice, err = d.createSlice(r.Slice.Slice, *r.Need)
		return err
	case opDestroySlice:
		return d.destroySlice(r.Slice)
	}
	return errors.New("no such operation")
}
