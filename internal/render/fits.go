package render

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"cosplay/internal/capacity"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// FitsView is what fits found out about a command.
type FitsView struct {
	Argv      []string
	Command   string // as users type it
	Compute   string // of the simulated hosts; "" on hardware
	Verdicts  []capacity.Verdict
	Needed    []resource.Target
	PeakMiB   int
	Peak      *resource.ProgramReport // of the program that used most, with the largest memory; nil without a report
	Refused   *resource.ProgramReport // the same on RefusedOn, the largest card on which the command does not fit
	RefusedOn resource.Target
	Broken    *BrokenRun // the command fails whatever memory it has
	Took      time.Duration
	Runs      int
}

// BrokenRun is a run that failed with the largest memory.
type BrokenRun struct {
	Card   resource.Target
	Code   int
	Output string // its end, or why no session could be created
	NotRun bool
	RanOut bool // it failed for lack of memory
}

// CardName is the name of a GPU with its memory, because several share a name.
func CardName(t resource.Target) string {
	return fmt.Sprintf("%s (%s)", t.ShortName(), mib(t.MemoryMiB))
}

// smallest is the verdict on the smallest card that runs the command; nil if none does.
func (v FitsView) smallest() *capacity.Verdict { return capacity.Smallest(v.Verdicts) }

// on is the verdict on a GPU.
func (v FitsView) on(t resource.Target) capacity.Verdict {
	return v.Verdicts[slices.IndexFunc(v.Verdicts, func(o capacity.Verdict) bool { return o.Card.Has(t.Key) })]
}

// runs reports whether the command runs on a GPU.
func (v FitsView) runs(t resource.Target) bool { return v.on(t).Result.Runs() }

// Passes reports whether a GPU runs the command, and all that it has to run on do.
func (v FitsView) Passes() bool {
	return v.Broken == nil && v.smallest() != nil && count(v.Needed, v.runs) == len(v.Needed)
}

// Fits shows the table of memory sizes, what took the memory, and the smallest card.
func (v FitsView) draw(p *page) {
	if v.Broken != nil {
		p.broken(v)
		return
	}
	p.capacities(v)
	p.gap()
	if v.Peak != nil && v.Peak.Fullest != nil {
		p.memoryUse(0, "At the peak", *v.Peak.Fullest)
	}
	if v.Refused != nil && v.Refused.Error != nil {
		p.say("On " + together(CardName(v.RefusedOn)) + ":")
		p.memoryFailure(2, programName(*v.Refused), *v.Refused.Error)
	}
	p.gap()
	for _, line := range v.conclusions() {
		p.say(line)
	}
	for _, t := range v.Needed {
		if !v.runs(t) {
			p.flow(0, 2, inked(removed, fmt.Sprintf("%s does not run on %s, which --need names.", v.Command, together(CardName(t)))))
		}
	}
	p.flow(0, 2, inked(strong, v.answer()))
}

// broken shows the end of what a command printed that fails with the largest memory.
func (p *page) broken(v FitsView) {
	for _, l := range strings.Split(strings.TrimRight(v.Broken.Output, "\n"), "\n") {
		p.print(0, text(l))
	}
	p.gap()
	if v.Peak != nil && v.Peak.Error != nil {
		p.memoryFailure(0, programName(*v.Peak), *v.Peak.Error)
	}
	p.flow(0, 2, inked(strong, v.answer()))
}

// words say why nothing is known of the memory that a command needs.
func (b BrokenRun) words(command string) string {
	switch {
	case b.RanOut:
		return fmt.Sprintf("No GPU that was tried runs %s: it runs out of memory on %s, the largest.", command, CardName(b.Card))
	case b.NotRun:
		return "No session could be created. Fix: see the reason above; --on chooses other GPUs."
	case b.Code == 0:
		return command + " ended well and used no GPU memory, so that nothing is known. Without a GPU, cosplay counts PyTorch's memory. " +
			"Fix: check that the program uses its device \"cuda\", and the Python that has PyTorch."
	}
	return fmt.Sprintf("%s fails on %s with exit code %d, and not for lack of memory. Fix: make it run there first.", command, CardName(b.Card), b.Code)
}

// answer is the line that counts.
func (v FitsView) answer() string {
	if v.Broken != nil {
		return v.Broken.words(v.Command)
	}
	best := v.smallest()
	if best == nil {
		return fmt.Sprintf("No GPU that was tried runs %s.", v.Command)
	}
	words := fmt.Sprintf("The smallest GPU that runs %s is %s", v.Command, resource.WithArticle(CardName(best.Card.Target())))
	if best.Result == capacity.Squeezed {
		return words + ", where " + pressure(best.Trial) + "."
	}
	return words + fmt.Sprintf(", with %s to spare.", mib(best.HeadroomMiB()))
}

// edgeMiB is the memory that a real GPU can have less: what its driver reserves, and what a context takes beyond cosplay's figure. Source:
// docs/developers/measured/h100.md and reports of users.
const edgeMiB = 900

// conclusions are what a user has to know about the answer.
func (v FitsView) conclusions() (all []string) {
	best := v.smallest()
	if best == nil || v.Compute == "" {
		return nil
	}
	at := slices.IndexFunc(v.Verdicts, func(o capacity.Verdict) bool { return o.Result == capacity.Fits })
	if best.Result == capacity.Squeezed && at >= 0 {
		all = append(all, fmt.Sprintf("Without pressure it runs on %s.", resource.WithArticle(CardName(v.Verdicts[at].Card.Target()))))
	}
	if best.Result == capacity.Fits && best.HeadroomMiB() < edgeMiB {
		all = append(all, "It is close: the driver and the CUDA context of a real GPU can take up to "+mib(edgeMiB)+" more than on a simulated host.")
	}
	if v.leastTime(*best) != nil {
		all = append(all, v.timeOf()+" AT LEAST is of the first card: a bound from its floating point operations and copies "+
			"at the rates that the maker states, and no forecast.")
	}
	return all
}

func (v FitsView) timeOf() string {
	return either(v.Peak.Step != nil, "STEP", "RUN")
}

// leastTime is the bound of a step, or of the whole program if it has no optimizer; nil if nothing is known. Under pressure the program may
// do less.
func (v FitsView) leastTime(o capacity.Verdict) *capacity.Bound {
	if v.Peak == nil || o.Result != capacity.Fits {
		return nil
	}
	bound := capacity.LeastTime(v.work().Least, v.work().ToDevice, o.Card.Target())
	if bound.Seconds == 0 {
		return nil
	}
	return &bound
}

// work is that of a step, or of the whole program if it has no optimizer.
func (v FitsView) work() *resource.StepWork {
	if v.Peak.Step != nil {
		return v.Peak.Step
	}
	return &resource.StepWork{FLOPs: v.Peak.FLOPs, Least: v.Peak.Least, ToDevice: v.Peak.ToDevice}
}

// capacityRow is a line of the table: cards of about one size with the same result.
type capacityRow struct {
	least, most capacity.Verdict
	names       []string
}

// follows reports whether a card stands in the row of the one before: neither was tried, their memory is the same in
// GiB, as in product names, and so is the result.
func follows(o, before capacity.Verdict) bool {
	gib := func(o capacity.Verdict) float64 { return math.Round(float64(o.Card.MemoryMiB) / 1024) }
	return !o.Tried && !before.Tried && o.Result == before.Result && gib(o) == gib(before)
}

// rows joins cards that follow each other.
func (v FitsView) rows() (rows []capacityRow) {
	for _, o := range v.Verdicts {
		names := each(o.Card.Targets, resource.Target.ShortName)
		if last := len(rows) - 1; last >= 0 && follows(o, rows[last].most) {
			rows[last].most, rows[last].names = o, append(rows[last].names, names...)
		} else {
			rows = append(rows, capacityRow{o, o, names})
		}
	}
	return rows
}

// namesWidth is the room for the names of the cards of a row, in columns.
const namesWidth = 36

func (r capacityRow) cards() string {
	words := together(r.names[0])
	for i, name := range r.names[1:] {
		if more := len(r.names) - 1 - i; columns(words)+len(name)+2 > namesWidth {
			return words + together(fmt.Sprintf(" and %d more", more))
		}
		words += ", " + together(name)
	}
	return words
}

func (r capacityRow) memory() string {
	if r.least.Card.MemoryMiB == r.most.Card.MemoryMiB {
		return mib(r.least.Card.MemoryMiB)
	}
	return fmt.Sprintf("%d to %s", r.least.Card.MemoryMiB, mib(r.most.Card.MemoryMiB))
}

func (p *page) capacities(v FitsView) {
	t := &table{columns: slices.Concat(figureColumns("MEMORY"), textColumns("RESULT"), figureColumns("HEADROOM", v.timeTitle(), "TIME"),
		proseColumn("CARDS"))}
	for _, r := range v.rows() {
		least, measured := "", v.Compute == "" && r.least.Tried // of a slice of the GPU; a CPU's time says nothing
		headroom := given(r.least.Result == capacity.Fits, mib(r.least.HeadroomMiB()))
		took := given(measured, secondsWords(r.least.Seconds))
		if bound := v.leastTime(r.least); bound != nil {
			least = secondsWords(bound.Seconds) + ", " + bound.By
		}
		t.add(text(r.memory()), resultCell(r.least), text(headroom), text(least), text(took), text(r.cards()))
	}
	p.table(t)
	p.flow(0, 2, inked(dim, fmt.Sprintf("The command ran %s, where the result is \"runs\" or \"out of memory\"; the others follow from these.", prose.Plural(v.Runs, "time", "times"))))
}

func (v FitsView) timeTitle() string {
	if v.Peak == nil {
		return ""
	}
	return v.timeOf() + " AT LEAST"
}

// resultCell says what is known of a card. What was not tried follows from other cards.
func resultCell(v capacity.Verdict) line {
	switch {
	case v.Result == capacity.Fits && v.Tried:
		return inked(added, "runs")
	case v.Result == capacity.Fits:
		return inked(added, "fits")
	case v.Result == capacity.Squeezed && v.Tried:
		return inked(changed, "runs, "+brief(v.Trial))
	case v.Result == capacity.Squeezed:
		return inked(changed, "fits under pressure")
	case v.Result == capacity.TooSmall && v.Tried:
		return inked(removed, "out of memory")
	case v.Result == capacity.TooSmall:
		return inked(dim, "does not fit")
	case v.Result == capacity.Failed:
		return inked(removed, "failed, not for lack of memory")
	}
	return inked(dim, "not tried")
}

// results has the key of each result in JSON, and how a run ended.
var results = map[capacity.Result]struct{ key, trial string }{
	capacity.Fits: {"fits", "runs"}, capacity.Squeezed: {"under_pressure", "runs"}, capacity.TooSmall: {"does_not_fit", "out of memory"},
	capacity.Failed: {"failed", "failed"}, capacity.Absent: {"unknown", "no session"}, capacity.Untried: {"unknown", ""},
}

// TrialWords say how a run on a card ended, and with which exit code if it failed; -1 is none.
func TrialWords(t resource.Target, trial capacity.Trial, code int) string {
	result, peak := results[trial.Result].trial, "peak "+mib(trial.PeakMiB)
	switch {
	case trial.Result == capacity.Squeezed:
		result += ", " + brief(trial)
	case trial.Result == capacity.Failed && code == 0:
		result, peak = "used no GPU memory", ""
	case trial.Result == capacity.Failed && code > 0:
		result += fmt.Sprintf(" with exit code %d", code)
	}
	return t.ShortName() + ": " + strings.Join(present(result, peak, secondsWords(trial.Seconds)), ", ")
}

// pressure says what the command had to do to fit.
func pressure(t capacity.Trial) string {
	return strings.Join(present(given(t.Caught > 0, "it caught "+prose.Count(t.Caught, "error")+" of memory"),
		given(t.Rescued > 0, "PyTorch freed its cache "+prose.Plural(t.Rescued, "time", "times"))), " and ")
}

// brief is the same for a table.
func brief(t capacity.Trial) string {
	if t.Caught > 0 {
		return prose.Count(t.Caught, "error") + " caught"
	}
	return "cache freed"
}

// secondsWords writes a short time with three figures.
func secondsWords(s float64) string {
	switch {
	case s < 0.9995e-3:
		return fmt.Sprintf("%.3g us", s*1e6)
	case s < 0.9995:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}

func (v FitsView) data() any {
	out := public.Capacity{Format: public.V1, Command: v.Argv, Compute: v.Compute, PeakMiB: v.PeakMiB, Cards: each(v.Verdicts, v.cardOf),
		Needed: each(v.Needed, func(t resource.Target) public.NeededCard {
			return public.NeededCard{Target: t.Key, Runs: v.runs(t)}
		})}
	if best := v.smallest(); best != nil {
		t := best.Card.Target()
		out.Smallest = &public.SmallestCard{Target: t.Key, Name: t.ShortName(), MemoryMiB: t.MemoryMiB, HeadroomMiB: best.HeadroomMiB()}
	}
	if v.Peak != nil {
		out.Peak, out.Step = some(v.Peak.Fullest, memoryUseOf), (*public.StepWork)(v.work())
	}
	if v.Broken != nil {
		out.Reason = strings.TrimSpace(v.Broken.words(v.Command) + "\n" + v.Broken.Output)
	}
	if v.Refused != nil {
		out.Failure = some(v.Refused.Error, memoryFailureOf)
	}
	return out
}

func (v FitsView) cardOf(o capacity.Verdict) public.CapacityCard {
	keys := each(o.Card.Targets, func(t resource.Target) string { return t.Key })
	card := public.CapacityCard{MemoryMiB: o.Card.MemoryMiB, Targets: keys, Result: results[o.Result].key, Tried: o.Tried,
		PeakMiB: o.NeedMiB, Seconds: o.Seconds, HeadroomMiB: o.HeadroomMiB(), Caught: o.Caught, Rescued: o.Rescued}
	if bound := v.leastTime(o); bound != nil {
		card.LeastStep = &public.LeastSecond{Seconds: bound.Seconds, By: bound.By}
	}
	return card
}
