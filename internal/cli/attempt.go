package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cosplay/catalog"
	"cosplay/internal/capacity"
	"cosplay/internal/machine"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// attempt is a run of the command on a card.
type attempt struct {
	capacity.Trial
	render.JUnitView
	output string // the end of what the command printed, or why its session could not be created
}

// largest is the program that used most memory; nil if none reports.
func (a attempt) largest() *resource.ProgramReport {
	reserved := func(p resource.ProgramReport) int {
		if p.Fullest == nil {
			return 0
		}
		return p.Fullest.Reserved
	}
	if len(a.Report.Programs) == 0 {
		return nil
	}
	p := slices.MaxFunc(a.Report.Programs, func(p, q resource.ProgramReport) int { return cmp.Compare(reserved(p), reserved(q)) })
	return &p
}

// tryAll runs the command on cards, on as many at a time as the machine has room for. One that fails beside others, and not for lack of
// memory, runs again alone: two may need the same port or file.
func (f *finder) tryAll(ctx context.Context, cards []int) {
	names := prose.Each(cards, func(card int) string { return render.CardName(f.search.Cards[card].Target()) })
	fmt.Fprintf(f.Err, "Running on %s ...\n", strings.Join(names, ", "))
	var (
		lock  sync.Mutex
		group sync.WaitGroup
		slots = make(chan struct{}, f.atOnce())
	)
	limit := f.limit()
	for _, card := range cards {
		slots <- struct{}{}
		group.Go(func() {
			a := f.try(ctx, card, limit)
			lock.Lock()
			f.attempts[card] = a
			code := a.Code
			if a.Failure != nil { // the command has not ended by itself
				code = -1
			}
			fmt.Fprintln(f.Err, " ", render.TrialWords(a.Target, a.Trial, code))
			lock.Unlock()
			<-slots
		})
		if f.signals.Pending() {
			break
		}
	}
	group.Wait()
	for _, card := range cards {
		if f.attempts[card].Result == capacity.Failed && len(cards) > 1 && !f.signals.Pending() {
			f.attempts[card] = f.try(ctx, card, limit)
		}
	}
}

// processMiB is the memory of this machine that a PyTorch process takes beside its tensors.
const processMiB = 2 << 10

// atOnce is the number of runs for which this machine has processors and memory. With shapes the tensors take none. On hardware the runs
// could take the GPU's room from each other.
func (f *finder) atOnce() int {
	need := processMiB
	if _, t, _ := f.search.Reference(); f.compute == "cpu" {
		need += t.PeakMiB
	}
	if f.compute == "" {
		return 1
	}
	return max(1, min(runtime.NumCPU(), machine.MemoryMiB()/need))
}

// try runs the command on a card, for at most a time. It only reads the finder: others run at the same time.
func (f *finder) try(ctx context.Context, card int, limit time.Duration) attempt {
	target := f.search.Cards[card].Target()
	session := f.flags.session
	session.Target = target.Key
	if f.compute != "" {
		session.Alone, session.Compute, session.Runtime = true, f.compute, "process"
		session.Simulate = fmt.Sprintf("%d x %s", max(1, session.GPUs), simulatedFor(target))
	}
	said, printed := &tail{}, &tail{}
	quiet := *f.invocation
	quiet.Streams = Streams{In: strings.NewReader(""), Out: terminal.NewWriter(said), Err: terminal.NewWriter(said)}
	quiet.stdout, quiet.stderr, quiet.projects = printed, printed, nil
	a := attempt{JUnitView: render.JUnitView{Command: terminal.ShellWords(f.argv), Target: target, Began: time.Now(), Targets: catalog.Targets}}
	ctx, release := context.WithTimeout(ctx, limit)
	defer release()
	err := quiet.runOnce(ctx, session, f.argv, waitFlag{}, &a.JUnitView)
	a.Took = time.Since(a.Began)
	if code, is := errors.AsType[exit](err); is {
		a.Code = int(code)
	} else if err != nil {
		a.Code, a.Failure = exitError, err
		fmt.Fprintln(said, err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.Failure = fmt.Errorf("the command was killed after %s, %d times as long as it takes with the largest memory. Possible cause: it tries for ever to make room", limit, longer)
	}
	switch a.output = printed.String(); {
	case !a.Ran:
		a.output = said.String()
	case a.Failure != nil:
		a.output += a.Failure.Error()
	}
	a.Trial = trialOf(a.JUnitView)
	a.Seconds = a.Took.Seconds()
	return a
}

// A run that takes so much longer than that with the largest memory does not end: it may try for ever to make room.
const (
	longer   = 10
	least    = time.Minute
	unending = 365 * 24 * time.Hour
)

// limit is the time for a run; for the first one there is none.
func (f *finder) limit() time.Duration {
	card, _, tried := f.search.Reference()
	if !tried {
		return unending
	}
	return max(least, longer*f.attempts[card].Took)
}

// trialOf is what a run says about its card.
func trialOf(v render.JUnitView) capacity.Trial {
	t := capacity.Trial{PeakMiB: v.Used.PeakMiB}
	ranOut := v.Used.RanOut() > 0
	for _, p := range v.Report.Programs {
		t.Caught += p.OutOfMemory
		t.Rescued += p.Rescued
		ranOut = ranOut || p.RanOut()
	}
	if len(v.Report.Programs) == 0 {
		t.Caught = v.Used.Overcome
	}
	switch {
	case !v.Ran:
		t.Result = capacity.Absent
	case v.Code == 0 && t.PeakMiB == 0: // nothing is known of it
		t.Result = capacity.Failed
	case v.Code == 0 && t.Caught+t.Rescued > 0:
		t.Result = capacity.Squeezed
	case v.Code == 0:
		t.Result = capacity.Fits
	case ranOut || t.Caught > 0:
		t.Result = capacity.TooSmall
	default:
		t.Result = capacity.Failed
	}
	return t
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	lock sync.Mutex
	text []byte
}

// tailBytes is how much a tail keeps.
const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.text = append(t.text, p...)
	if more := len(t.text) - tailBytes; more > 0 {
		t.text = bytes.Clone(t.text[more:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return string(t.text)
}
