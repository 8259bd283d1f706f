package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"cosplay/driver"
	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// Deadlines of one request. Switching MIG mode resets the GPU on Ampere, which takes seconds.
const (
	readDeadline   = 20 * time.Second
	changeDeadline = 60 * time.Second
)

// Options say how the child is started.
type Options struct {
	Library  string        // path of the NVML library; "" is the system's
	Ledger   string        // folder of the host's ledger; "" keeps none
	Deadline time.Duration // of every request; default: 20 s to read, 60 s to change

	// Privileged sends changes to a second child, which root runs, by the admin's socket
	// or by sudo. It uses the ledger of the system instead of Ledger.
	Privileged bool
	User       string // the user who calls sudo

	Far *Far // the machine of the GPUs; nil is this one

	TimeSlices bool // Read reads the lengths of time slices, too: nvidia-smi runs for each GPU
}

// Client is the parent's side. It starts a child with the first request, and again after
// a child was lost. It is safe for concurrent use; a child gets one request at a time.
type Client struct {
	reads, changes *child          // one child for both, unless changes require root
	holder         resource.Holder // on whose behalf changes are made
	creates        *batches
}

// child is the agent process, shared by all clients that use it.
type child struct {
	options    Options
	privileged bool

	mu      sync.Mutex
	line    *line                // nil while none runs
	reading atomic.Pointer[line] // that a reading waits for; nil for none
	late    atomic.Int64         // ns after which the child was killed, since it did not answer; 0 if it was not
}

// Patience is the deadline of requests without one. Only tests set it, for calls that hang.
var Patience time.Duration

// InUseWait limits how long the agent repeats a call that the driver answers with IN_USE: a
// process that ends uses its slice for a moment longer. Only tests change it.
var InUseWait = 10 * time.Second

// New makes a client; nothing is started yet.
func New(o Options) *Client {
	if o.Deadline == 0 {
		o.Deadline = Patience
	}
	reads := &child{options: o}
	c := &Client{reads: reads, changes: reads, creates: &batches{}}
	if o.Privileged {
		c.changes = &child{options: o, privileged: true}
	}
	return c
}

// WithRoot returns a client of the same child for reading, whose changes root makes.
func (c *Client) WithRoot() *Client {
	return &Client{reads: c.reads, changes: &child{options: c.reads.options, privileged: true}, creates: &batches{}}
}

// For returns a client of the same children that makes changes on behalf of a holder.
func (c *Client) For(h resource.Holder) *Client {
	return &Client{reads: c.reads, changes: c.changes, holder: h, creates: &batches{}}
}

// Close ends the children: they finish what they are doing.
func (c *Client) Close() error {
	return errors.Join(c.reads.close(), c.changes.close())
}

func (c *child) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil {
		return nil
	}
	err := c.line.close()
	c.line = nil
	return err
}

// Abandon ends the agent if a reading waits for its answer, which a driver that hangs may not give for long.
func (c *Client) Abandon() {
	if l := c.reads.reading.Load(); l != nil {
		l.kill()
	}
}

// Read reads the host: GPUs, their settings, slices and processes, and the MPS daemons that are searched for.
func (c *Client) Read(ctx context.Context, daemons resource.MPSSearch) (resource.Host, error) {
	answer, err := c.reads.ask(ctx, request{Op: opRead, TimeSlices: c.reads.options.TimeSlices, Search: daemons}, readDeadline)
	if err != nil {
		return resource.Host{}, err
	}
	host := answer.Host.host()
	if far := c.reads.options.Far; far != nil {
		host.Ledger = far.known(host.Ledger)
	}
	return host, nil
}

// Clock reads the SM clock of a GPU.
func (c *Client) Clock(ctx context.Context, gpu string) (resource.ClockSample, error) {
	answer, err := c.reads.ask(ctx, request{Op: opClock, GPU: gpu}, readDeadline)
	if err != nil {
		return resource.ClockSample{}, err
	}
	return *answer.Clock, nil
}

// Activity measures for 110 ms how busy GPU instances are, in percent of that time; resource.ActivityUnknown where the
// driver does not say it.
func (c *Client) Activity(ctx context.Context, of []resource.GPUInstance) ([]int, error) {
	answer, err := c.reads.ask(ctx, request{Op: opActivity, Instances: of}, readDeadline)
	if err == nil && len(answer.Activity) != len(of) {
		err = fmt.Errorf("the agent answers for %d GPU instances instead of %d", len(answer.Activity), len(of))
	}
	return answer.Activity, err
}

// Set sets a setting and returns what the driver rounded its value to. A switch of MIG
// mode that would only be pending is canceled and is an error.
func (c *Client) Set(ctx context.Context, gpu string, s resource.Setting, value int) (now int, err error) {
	answer, err := c.changes.ask(ctx, request{Holder: c.holder, Op: opSet, GPU: gpu, Setting: &s, Value: value}, changeDeadline)
	return answer.Value, err
}

// Take acquires a GPU in the ledger of the host. It fails if there is a holder that the plan did not count on.
func (c *Client) Take(ctx context.Context, gpu string, t ledger.Take) error {
	return c.change(ctx, request{Op: opTake, GPU: gpu, Take: &t})
}

// Leave announces that the baseline of a GPU is restored: no other project can acquire the GPU until it is released.
func (c *Client) Leave(ctx context.Context, gpu string) error {
	return c.change(ctx, request{Op: opLeave, GPU: gpu})
}

// Release releases a GPU. asItIs leaves its settings, which another holder must restore later. Otherwise the last
// holder is refused until the GPU has its baseline, or abandon gives up what cannot be restored.
func (c *Client) Release(ctx context.Context, gpu string, asItIs, abandon bool) error {
	return c.change(ctx, request{Op: opRelease, GPU: gpu, AsItIs: asItIs, Abandon: abandon})
}

// DestroySlice removes a slice that is still the recorded one. That it does not exist is
// no error; that another one is at its place is one.
func (c *Client) DestroySlice(ctx context.Context, s resource.LiveSlice) error {
	s.Slice = s.Place()
	return c.change(ctx, request{Op: opDestroySlice, GPU: s.GPU, Slice: &s})
}

// Queue takes a ticket of the host's queue for some GPUs or, with one, says that the waiter is still there. room is the
// memory of each session that it waits for, in MiB.
func (c *Client) Queue(ctx context.Context, gpus []string, room []int) (Place, error) {
	answer, err := c.changes.ask(ctx, request{Holder: c.holder, Op: opQueue, GPUs: gpus, Room: room}, readDeadline)
	if err != nil {
		return Place{}, err
	}
	return *answer.Place, nil
}

// LeaveQueue gives the ticket back. The end of the child does so, too.
func (c *Client) LeaveQueue(ctx context.Context) error {
	_, err := c.changes.ask(ctx, request{Op: opLeaveQueue}, readDeadline)
	return err
}

func (c *Client) change(ctx context.Context, r request) error {
	r.Holder = c.holder
	_, err := c.changes.ask(ctx, r, changeDeadline)
	return err
}

// grace is how long the child may be late with its own report of a hung call.
const grace = 2 * time.Second

func (c *child) ask(ctx context.Context, r request, deadline time.Duration) (response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	return c.send(r, deadline)
}

// send sends a request. The caller has the child.
func (c *child) send(r request, deadline time.Duration) (response, error) {
	if c.options.Deadline != 0 {
		deadline = c.options.Deadline
	}
	r.Deadline = int64(deadline)
	fresh := c.line == nil
	if err := c.start(); err != nil {
		return response{}, err
	}
	c.late.Store(0)
	line := c.line
	if r.Op == opRead {
		c.reading.Store(line)
		defer c.reading.Store(nil)
	}
	late := time.AfterFunc(deadline+grace, func() {
		c.late.Store(int64(deadline + grace))
		line.kill()
	})
	defer late.Stop()
	if fresh {
		if err := c.greet(r); err != nil {
			return response{}, err
		}
	}
	said, err := c.exchange(r)
	if err != nil {
		return response{}, c.lost(r, err, fresh)
	}
	answer, err := parseAnswer(said)
	if err != nil {
		return response{}, c.lost(r, fmt.Errorf("an answer that is not the agent's: %q", said), fresh)
	}
	if answer.Last {
		c.end()
	}
	if answer.Error != nil {
		return answer, answer.Error
	}
	return answer, nil
}

func parseAnswer(line []byte) (answer response, err error) {
	err = jsonv2.Unmarshal(line, &answer)
	return answer, err
}

// greet compares the versions before the first request: an older child would drop fields that it does not know.
func (c *child) greet(next request) error {
	said, err := c.exchange(request{Op: opHello, Deadline: next.Deadline})
	if err != nil {
		return c.lost(next, err, true)
	}
	answer, err := parseAnswer(said)
	if far := c.options.Far; far != nil {
		if answer, err = c.afterGreeting(said); err != nil {
			return c.lost(next, err, true)
		}
		if answer.Version != Protocol {
			c.end()
			return far.OtherVersion(fmt.Sprint("of protocol ", Protocol), fmt.Sprint("of protocol ", answer.Version))
		}
	}
	if err != nil || answer.Version != Protocol {
		c.end()
		return otherVersion("the agent", answer.Version)
	}
	if answer.Error != nil { // the agent ends
		c.end()
		return answer.Error
	}
	return nil
}

func (c *child) exchange(r request) ([]byte, error) {
	r.Version = Protocol
	if err := writeLine(c.line, r); err != nil {
		return nil, err
	}
	return readLine(c.line.answers)
}

// lost ends a child that does not answer, and returns why it does not.
func (c *child) lost(r request, cause error, fresh bool) error {
	said := c.end()
	if far := c.options.Far; far != nil {
		switch after := time.Duration(c.late.Load()); {
		case after != 0:
			return far.gone(fmt.Sprintf("does not answer within %s", after))
		case !fresh:
			return far.gone("has ended: " + terminal.Lines(cmp.Or(said, cause.Error())))
		}
		return far.failed(cmp.Or(said, cause.Error()))
	}
	if why, refused := strings.CutPrefix(said, "sudo: "); refused && fresh && c.privileged {
		return c.options.refused(why)
	}
	if after := time.Duration(c.late.Load()); after != 0 {
		return &Error{Call: r.kind(), GPU: r.GPU, Message: fmt.Sprintf("the agent process does not answer within %s and was ended", after),
			Advice: prose.Advice{What: "Possible cause: the driver hangs, or the machine is overloaded.", Fix: "read the load (uptime) and the Xid errors in dmesg, then run the command again"}}
	}
	if said == "" {
		said = cause.Error()
	}
	return &Error{Call: r.kind(), GPU: r.GPU, Message: "the agent process has ended: " + said,
		Advice: prose.Advice{What: "The library or the driver ended it.", Fix: "run the command again; if it ends again, run nvidia-smi and read dmesg"}}
}

// end kills the child and returns its standard error.
func (c *child) end() string {
	c.line.kill()
	said := c.line.errors()
	c.line = nil
	return said
}

func (c *child) start() (err error) {
	if c.line != nil {
		return nil
	}
	if c.privileged {
		c.line, err = c.options.privilegedLine()
	} else {
		c.line, err = c.options.ownLine()
	}
	if _, refused := errors.AsType[*SudoError](err); err != nil && !refused {
		return fmt.Errorf("starting the agent: %w", err)
	}
	return err
}

// ownLine starts a child with the rights of this process.
func (o Options) ownLine() (*line, error) {
	if o.Far != nil {
		return o.Far.line()
	}
	if !driver.Here {
		return nil, driver.ErrNotHere
	}
	self, err := self()
	if err != nil {
		return nil, err
	}
	command := []string{self, "agent"}
	if o.Library != "" {
		command = append(command, "--library", o.Library)
	}
	if o.Ledger != "" {
		command = append(command, "--ledger", o.Ledger)
	}
	return spawn(command, &syscall.SysProcAttr{Setpgid: true})
}
