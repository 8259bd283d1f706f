package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/resource"
)

// Deadlines of one request. Switching MIG mode resets the GPU on Ampere, which
// takes seconds.
const (
	readDeadline   = 20 * time.Second
	changeDeadline = 60 * time.Second
)

// Options say how the child is started.
type Options struct {
	Library  string        // path of the NVML library; "" is the system's
	Ledger   string        // folder of the host's ledger; "" keeps none
	Command  []string      // the child; default: this binary's hidden agent command
	Deadline time.Duration // of every request; default: 20 s to read, 60 s to change
	Hold     *os.File      // kept open by the child: a lock that must outlast us while it works
}

// Client is the parent's side. It starts the child with the first request and
// again after one that was lost. It is safe for concurrent use; requests go one
// at a time.
type Client struct {
	*child
	holder resource.Holder // on whose behalf changes are made
}

// child is the other side, for all that speak to it.
type child struct {
	options Options

	mu      sync.Mutex
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *bytes.Buffer
}

// New makes a client; nothing is started yet.
func New(o Options) *Client { return &Client{child: &child{options: o}} }

// For gives a client of the same child that changes things on behalf of a holder.
func (c *Client) For(h resource.Holder) *Client { return &Client{child: c.child, holder: h} }

// Close ends the child: it finishes what it is doing.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return nil
	}
	_ = c.in.Close()
	err := c.process.Wait()
	c.process = nil
	return err
}

// Read looks at the host: GPUs, their settings, slices and processes.
func (c *Client) Read(ctx context.Context) (resource.Host, error) {
	answer, err := c.ask(ctx, request{Op: opRead}, readDeadline)
	if err != nil {
		return resource.Host{}, err
	}
	return *answer.Host, nil
}

// SetMIG switches MIG mode; a switch that would only be pending is taken back
// and is an error.
func (c *Client) SetMIG(ctx context.Context, gpu string, on bool) error {
	return c.change(ctx, request{Op: opSetMIG, GPU: gpu, On: on})
}

// SetPersistence switches persistence mode.
func (c *Client) SetPersistence(ctx context.Context, gpu string, on bool) error {
	return c.change(ctx, request{Op: opSetPersistence, GPU: gpu, On: on})
}

// LockClock pins the SM clock, in MHz.
func (c *Client) LockClock(ctx context.Context, gpu string, mhz int) error {
	return c.change(ctx, request{Op: opLockClock, GPU: gpu, Value: mhz})
}

// UnlockClock lets the SM clock go.
func (c *Client) UnlockClock(ctx context.Context, gpu string) error {
	return c.change(ctx, request{Op: opUnlockClock, GPU: gpu})
}

// SetPower sets the power management limit, in mW.
func (c *Client) SetPower(ctx context.Context, gpu string, mw int) error {
	return c.change(ctx, request{Op: opSetPower, GPU: gpu, Value: mw})
}

// CreateSlice makes a GPU instance at its placement with the compute instance
// that fills it, or nothing. A profile that is not what the plan counted on is
// refused.
func (c *Client) CreateSlice(ctx context.Context, s resource.Slice, need resource.Need) (resource.LiveSlice, error) {
	answer, err := c.ask(ctx, request{Op: opCreateSlice, GPU: s.GPU, Slice: &resource.LiveSlice{Slice: s}, Need: &need}, changeDeadline)
	if err != nil {
		return resource.LiveSlice{}, err
	}
	return *answer.Slice, nil
}

// Take takes a GPU in hand, in the ledger of the host. A holder that the plan did
// not count on refuses it.
func (c *Client) Take(ctx context.Context, gpu string, t ledger.Take) error {
	return c.change(ctx, request{Op: opTake, GPU: gpu, Take: &t})
}

// Leave announces that the baseline of a GPU is restored: from now on no other
// project can take it until it is released.
func (c *Client) Leave(ctx context.Context, gpu string) error {
	return c.change(ctx, request{Op: opLeave, GPU: gpu})
}

// Release lets a GPU go.
func (c *Client) Release(ctx context.Context, gpu string) error {
	return c.change(ctx, request{Op: opRelease, GPU: gpu})
}

// DestroySlice removes a slice that is still the recorded one; one that is gone
// already is no error, another one in its place is.
func (c *Client) DestroySlice(ctx context.Context, s resource.LiveSlice) error {
	return c.change(ctx, request{Op: opDestroySlice, GPU: s.GPU, Slice: &s})
}

func (c *Client) change(ctx context.Context, r request) error {
	_, err := c.ask(ctx, r, changeDeadline)
	return err
}

// grace is how long the child may be late with its own report of a hung call.
const grace = 2 * time.Second

func (c *Client) ask(ctx context.Context, r request, deadline time.Duration) (response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	if c.options.Deadline != 0 {
		deadline = c.options.Deadline
	}
	r.Deadline, r.Holder = deadline, c.holder
	if err := c.start(); err != nil {
		return response{}, err
	}
	late := time.AfterFunc(deadline+grace, func() { _ = c.process.Process.Kill() })
	defer late.Stop()
	line, err := c.exchange(r)
	if err != nil {
		return response{}, c.lost(r, err)
	}
	var answer response
	if err := json.Unmarshal(line, &answer); err != nil {
		return response{}, c.lost(r, fmt.Errorf("an answer that is not ours: %q", line))
	}
	if answer.Last {
		c.end()
	}
	if answer.Error != nil {
		return answer, answer.Error
	}
	return answer, nil
}

func (c *child) exchange(r request) ([]byte, error) {
	if err := json.NewEncoder(c.in).Encode(r); err != nil {
		return nil, err
	}
	return c.out.ReadBytes('\n')
}

// lost puts an end to a child that does not answer.
func (c *child) lost(r request, cause error) error {
	c.end()
	said := strings.TrimSpace(c.stderr.String())
	if said == "" {
		said = cause.Error()
	}
	return &Error{Call: r.Op, GPU: r.GPU, Message: "the agent process is gone: " + said,
		Hint: "The library or the driver ended it. Run the command again; if it stays so, try nvidia-smi and look at dmesg."}
}

// end stops the child, whatever it does.
func (c *child) end() {
	_ = c.process.Process.Kill()
	_ = c.in.Close()
	_ = c.process.Wait()
	c.process = nil
}

// start runs the child if there is none.
func (c *child) start() error {
	if c.process != nil {
		return nil
	}
	command := c.options.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the cosplay binary to start its agent: %w", err)
		}
		command = []string{self, "agent"}
	}
	if c.options.Library != "" {
		command = append(command[:len(command):len(command)], "--library", c.options.Library)
	}
	if c.options.Ledger != "" {
		command = append(command[:len(command):len(command)], "--ledger", c.options.Ledger)
	}
	process := exec.Command(command[0], command[1:]...)
	in, err := process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	c.stderr = &bytes.Buffer{}
	process.Stderr = c.stderr
	if c.options.Hold != nil {
		process.ExtraFiles = []*os.File{c.options.Hold}
	}
	detach(process)
	if err := process.Start(); err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	c.process, c.in, c.out = process, in, bufio.NewReader(out)
	return nil
}
