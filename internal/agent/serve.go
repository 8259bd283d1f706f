//go:build cgo && linux

package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"golang.org/x/sys/unix"

	"cosplay/internal/ledger"
	"cosplay/internal/mps"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// maxRequest bounds the length of one request, in bytes. A client on another machine sends sessions and what programs are
// given.
const maxRequest = 1 << 20

func (l *nvmlLibrary) maxRequest() int {
	if l.sessions != nil {
		return maxAnswer
	}
	return maxRequest
}

// longestSessions is how much longer than others a question to a runtime may take: programs that end have their time.
const longestSessions = 2 * time.Hour

// Serve is the child: it answers requests from in on out until in ends. If a call takes longer than its request's
// deadline, Serve answers with an error and ends the process, since nothing else stops the call.
func Serve(in io.Reader, out io.Writer, s Service) error {
	lib, err := open(s.Library)
	if err != nil {
		// The answer to the first request states the reason.
		lib = &nvmlLibrary{broken: err}
	}
	lib.book, lib.sessions = ledger.Book{Dir: s.Ledger}, s.Sessions
	return lib.serve(in, out)
}

func (l *nvmlLibrary) serve(in io.Reader, out io.Writer) error {
	// If the parent ends before it has read the answer, the agent still closes the driver.
	signal.Ignore(syscall.SIGPIPE)
	defer l.close()
	l.client, _ = in.(*os.File)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, l.maxRequest())
	for lines.Scan() {
		r, err := parse(lines.Bytes())
		if err != nil {
			l.record(r, "", response{}, err)
			return errors.Join(err, writeLine(out, answered(response{Last: true}, r, err)))
		}
		deadline := time.Duration(r.Deadline)
		// A caller able to interrupt the root agent could leave the GPU in any state.
		most := changeDeadline
		if r.Op == opSessions {
			most += longestSessions
		}
		if l.guard != nil || deadline <= 0 || deadline > most {
			deadline = changeDeadline
		}
		watchdog := time.AfterFunc(deadline, func() {
			time.AfterFunc(time.Second, func() { os.Exit(1) }) // even if the client does not read the answer
			hung := l.hung(deadline)
			answer := l.unfinished(r, hung)
			if r.alters() {
				l.record(r, "", answer, hung)
			}
			_ = writeLine(out, answered(answer, r, hung))
			os.Exit(1)
		})
		answer := l.handle(r, deadline)
		if !watchdog.Stop() {
			select {} // the watchdog is answering and ends the process
		}
		if err := writeLine(out, answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a request without an end: %d bytes are too many", maxRequest)
		l.record(request{}, "", response{}, err)
		return errors.Join(err, writeLine(out, answered(response{Last: true}, request{}, err)))
	}
	return lines.Err()
}

func (l *nvmlLibrary) handle(r request, deadline time.Duration) response {
	var (
		answer response
		err    = r.check()
	)
	l.deadline = deadline
	l.created.Store(nil)
	clear(l.tables)
	clear(l.profiles)
	clear(l.clocks)
	l.readsTimeSlices(r)
	if err == nil && r.Op != opHello && !r.ofUser() {
		err = l.broken
	}
	switch {
	case err != nil, r.Op == opHello:
	case r.ofUser():
		err = l.ofUser(r, &answer)
	case r.Op == opRead:
		// Another agent, whose parent has ended, may still be in the middle of a step.
		if err = l.book.Quiet(min(deadline, readDeadline) * 3 / 4); err == nil {
			answer.Host, err = l.readForLine(r.Search)
		}
	case r.Op == opClock:
		answer.Clock, err = l.sampleClock(r.GPU)
	case r.Op == opActivity:
		answer.Activity = l.activity(r.Instances)
	case r.Op == opQueue:
		answer.Place, err = l.wait(r)
	case r.Op == opEvent:
		answer.Happened, answer.Last, err = l.await()
	case r.Op == opLeaveQueue:
		err = l.waiter.Leave(l.book)
	default:
		err = l.inUseBy(l.alter(r, &answer))
	}
	if r.alters() {
		l.record(r, l.was, answer, err)
	}
	if errors.Is(err, ledger.ErrNotHeld) { // recorded as refused, and no failure
		err = nil
	}
	return answered(answer, r, err)
}

func (l *nvmlLibrary) readForLine(daemons resource.MPSSearch) (*wireHost, error) {
	host, err := l.read()
	if err != nil {
		return nil, err
	}
	if l.book.Dir == ledger.SystemDir { // of a host with hardware
		host.Admin = resource.Admin{Rules: adminFile(PolicyFile), Clocks: adminFile(BaselineClocks)}
	}
	service := mps.Of(daemons)
	switch {
	case l.guard != nil: // the user cannot read what processes of others serve
		every := prose.Each(host.GPUs, func(g resource.GPU) string { return g.UUID })
		host.MPS.Foreign = mps.Others(l.guard.uid, strings.Join(every, ","))
	case daemons.Key != "" && (daemons.Uses || service.Exist()):
		ctx, cancel := context.WithTimeout(context.Background(), l.deadline/4)
		defer cancel()
		if host.MPS, err = service.Read(ctx); err != nil {
			return nil, err
		}
	}
	return hostToWire(*host), nil
}

// answered adds the version and the error to an answer.
func answered(answer response, r request, err error) response {
	answer.Version = Protocol
	if err != nil {
		answer.Error = asError(r, err)
	}
	return answer
}

func asError(r request, err error) *Error {
	if known, is := errors.AsType[*Error](err); is {
		return known
	}
	refused, is := errors.AsType[*ledger.RefusedError](err) // not NVML's: the ledger's
	advice := prose.AdviceOf(err)
	return &Error{GPU: r.GPU, Message: advice.What, Advice: prose.Advice{Fix: advice.Fix}, Refused: is && refused.Overtaken}
}

// record appends a request to the history of the ledger, with the value before it, and the error if it was refused;
// each slice that it creates by itself.
func (l *nvmlLibrary) record(r request, was string, answer response, refused error) {
	if r.Op != opCreateSlices || len(r.Creates) > maxCreates { // so many are refused
		_ = l.book.Record(l.attempted(r, was, refused)) // on a full disk the change itself counts more than its line
		return
	}
	var all []ledger.Attempted
	for i, c := range r.Creates {
		why := refused
		if i < len(answer.Created) {
			why = nil
			if failed := answer.Created[i].Error; failed != nil {
				why = failed
			}
		}
		all = append(all, l.attempted(r.part(c), "", why))
	}
	_ = l.book.Record(all...)
}

func (l *nvmlLibrary) attempted(r request, was string, refused error) ledger.Attempted {
	a := ledger.Attempted{At: ledger.Stamp(time.Now()), Op: r.kind(), GPU: r.GPU, Was: was, Value: r.value(),
		Lineage: r.Holder.Lineage, State: r.Holder.State}
	a.UID, a.User = l.actor()
	if whose := r.Holder.User; whose != a.User && a.UID == 0 { // only root acts for others
		a.For = whose
	}
	if refused != nil {
		a.Refused = refused.Error()
	}
	return a
}

// actor is the user who makes the requests, as the kernel or sudo states, and not those.
func (l *nvmlLibrary) actor() (uid int, name string) {
	if l.guard != nil {
		return l.guard.uid, l.guard.user
	}
	uid = os.Getuid()
	if said, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && uid == 0 {
		uid = said
	}
	return uid, userName(uid)
}

func (l *nvmlLibrary) alter(r request, answer *response) (err error) {
	l.users, l.was = nil, ""
	if err := l.begin(r.GPU, l.deadline/2); err != nil { // the other half is for the driver
		return err
	}
	defer func() { l.turn.End() }()
	if r.Op == opCreateSlices {
		answer.Created, err = l.createSlices(r)
		return err
	}
	if l.guard != nil {
		if r, err = l.guard.admit(l, r, 0); err != nil {
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
	if r.Op == opSet {
		l.was = g.was(*r.Setting, before)
	}
	l.permission = func() error { return l.explain(r, l.allowed(r)) }
	if err := l.permission(); err != nil {
		return err
	}
	err = g.change(r, answer)
	if isCode(err, nvml.ERROR_UNKNOWN) {
		err = g.change(r, answer) // an unknown error may be temporary
	}
	if err != nil {
		err = l.giveUp(r, before, err)
	}
	return l.noted(r, answer, err)
}

// begin waits for the turn to change a GPU, which announces the change; alter ends the turn.
func (l *nvmlLibrary) begin(gpu string, wait time.Duration) (err error) {
	uid := 0
	if l.guard != nil {
		uid = l.guard.uid
	}
	if l.turn, err = l.book.Turn(uid, gpu, wait); err == nil && l.abandoned() {
		l.turn.End()
		err = errors.New("the client of the agent has ended")
	}
	return err
}

// abandoned reports whether the client has ended. Its last request may still be in the pipe while the next command
// reads the host already. That command cannot miss a change that is announced before this check.
func (l *nvmlLibrary) abandoned() bool {
	if l.client == nil {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(l.client.Fd()), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR) != 0
}

// nap waits between two tries and ends the turn meanwhile: a user whose process holds a slice must not block other
// users. Their changes can end the permission for this change, so nap checks it again.
func (l *nvmlLibrary) nap(gpu string, d time.Duration) error {
	l.turn.End()
	time.Sleep(d)
	if err := l.begin(gpu, l.deadline/6); err != nil {
		return err
	}
	return l.permission()
}

func (d device) change(r request, answer *response) (err error) {
	switch r.Op {
	case opSet:
		answer.Value, err = drivers[*r.Setting].set(d, r.Value)
		return err
	case opDestroySlice:
		return d.destroySlice(r.Slice)
	}
	return errors.New("no such operation")
}

// ofUser does what the agent of the user does, and asks no GPU.
func (l *nvmlLibrary) ofUser(r request, answer *response) (err error) {
	if l.guard != nil { // what its user may do, that user's agent does
		return errors.New("an agent of root shows no records and runs no MPS daemon")
	}
	switch r.Op {
	case opLedger:
		var pages []resource.Page
		if answer.Stamp, err = l.book.Stamp(); err == nil && answer.Stamp != r.Known {
			pages, err = l.book.Read()
		}
		answer.Ledger = prose.Each(pages, pageToWire)
	case opHistory:
		answer.History, err = l.book.History()
	case opReleased:
		answer.Released, err = l.book.Released(r.Holder.Lineage)
	case opMayChange:
		err = l.book.Writable()
	case opRunMPS, opStopMPS:
		err = l.runOrStop(r)
	case opSessions:
		if l.sessions == nil {
			return errors.New("this agent is not asked from another machine")
		}
		answer.Sessions, err = l.sessions(r.Sessions)
	}
	return err
}

// runOrStop starts or ends an MPS daemon. Where the user may write the ledger, it announces that.
func (l *nvmlLibrary) runOrStop(r request) error {
	if l.book.Writable() == nil {
		if err := l.begin(r.GPU, l.deadline/4); err != nil {
			return err
		}
		defer l.turn.End()
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.deadline/2)
	defer cancel()
	if r.Op == opRunMPS {
		return mps.Of(resource.MPSSearch{}).Run(ctx, r.GPU, *r.Daemon)
	}
	return mps.Of(resource.MPSSearch{}).Stop(ctx, *r.Daemon)
}
