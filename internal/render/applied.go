package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/diff"
	"cosplay/internal/plan"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// AppliedView is the result of a run.
type AppliedView struct {
	Result   apply.Result
	Plan     *plan.Plan
	Live     resource.Live // as it was when the plan was made
	Took     time.Duration
	Destroy  bool
	Flags    []string // global flags that were given, for the commands that are suggested
	Narrowed []string // and those that left sessions out

	Targets func() []resource.Target // the catalog's, for the verdict on sessions that ended

	NvidiaSMI bool            // nvidia-smi can run in a session
	NVMLCode  func(error) int // NVML's code; 0 for other failures
	Outputs   []config.Output
	Checks    hcl.Diagnostics // those that failed, and errors of outputs
	Far       hcl.Diagnostics // the warnings about sessions whose fit is far from the best
	Files     map[string]*hcl.File
	Err       error // of the run itself: its journal or the state could not be written

	Verify *VerifyView // the self-test after the run; nil without --verify
}

// Applied shows the result of a run: each failure with what is left of it, the counts, and the next command.
func (v AppliedView) draw(p *page) {
	for _, f := range v.Result.Failures {
		p.gap()
		p.failure(v, f)
	}
	if len(v.Result.Failures) > 0 {
		p.standing(v)
	}
	p.gap()
	p.verdicts(v.ended(), nil)
	if v.Err != nil {
		p.problem(0, 0, inked(removed, "Error:"), v.Err.Error())
		p.gap()
	}
	if v.Plan.Partial {
		p.flow(0, 2, inked(dim, "The plan was limited by --target or --exclude: cosplay plan shows whether anything is left to do."))
	}
	p.outcome(v)
	if v.Verify != nil {
		p.gap()
		v.Verify.draw(p)
	}
	p.diagnostics(slices.Concat(v.Far, v.Checks), v.Files)
	p.outputsAfter(v.Outputs)
}

// Failures shows the steps that failed.
func Failures(w io.Writer, s Style, all []apply.Failure, live resource.Live) {
	for _, f := range all {
		Error(w, s, errors.New(words.Failure(f.Step, f.Err, live)))
	}
}

// failure shows one step that failed and what its undo left.
func (p *page) failure(v AppliedView, f apply.Failure) {
	message := words.Failure(f.Step, f.Err, v.Live)
	if advice := v.byHand(f).Error(); advice != "" { // instead of the agent's
		first, _, _ := strings.Cut(p.known(message), "\n")
		message = first + "\n  " + prose.Stop(advice)
	}
	p.problem(0, 2, inked(removed, p.cross()), message)
	what := f.Step.Group
	i := slices.IndexFunc(v.Plan.Diff.GPUs, func(g diff.GPUChange) bool { return g.UUID == what })
	gpu := i >= 0
	if gpu {
		what = words.GPU(v.Live, v.Plan.Diff.GPUs[i].Host, what)
	}
	_, image := f.Step.Do.Op.(plan.EnsureImage)
	switch {
	case image:
		p.detail("no session was created from it; the engine keeps what it has of it for the next try.")
	case f.Left != nil:
		message := p.known(words.Failure(f.Left.Step, f.Left.Err, v.Live))
		kept := "What is left of " + what + " is in the state; cosplay destroy removes it."
		if strings.Contains(message, "\n") {
			message = strings.TrimRight(message, "\n") + "\n" + kept
		} else {
			message = prose.Stop(message) + " " + kept
		}
		p.problem(2, 4, inked(removed, "not undone:"), message)
	case f.Undone && gpu:
		p.detail("nothing was changed on " + what + ".")
	case f.Undone:
		p.detail("undone: nothing of " + what + " is left.")
	case v.released(f.Step.Group):
		p.detail(what + " was released without it.")
	case v.givesBack(f.Step.Group):
		p.detail("the state and the host's ledger keep the baseline of " + what + ".")
	case gpu:
		p.detail("what was set on " + what + " before stays and is in the state; cosplay destroy restores it.")
	default:
		p.detail("the objects of " + what + " that exist are kept and in the state; the next " + v.command() + " continues from there.")
	}
}

// command is the command that the run was of.
func (v AppliedView) command() string {
	return either(v.Destroy, "destroy", "apply")
}

// standing reports what is up in spite of the failures.
func (p *page) standing(v AppliedView) {
	up := count(v.Result.Prior.Sessions, func(s resource.PriorSession) bool { return s.Body != nil })
	words := either(up == 0, "no session is up", prose.Plural(up, "session is", "sessions are")+" up and in the state")
	untouched, unfinished := untried(v)
	words += given(unfinished, fmt.Sprintf("; %d unfinished, which the next %s continues", unfinished, v.command())) +
		given(untouched, fmt.Sprintf("; %d not tried", untouched))
	p.detail(words + ".")
}

// untried counts the sessions and GPUs of which no step began, and those of which some did when the run was stopped.
func untried(v AppliedView) (untouched, unfinished int) {
	begun, seen := map[string]bool{}, map[string]bool{}
	for _, s := range v.Plan.Steps {
		begun[s.Group] = begun[s.Group] || slices.Contains(v.Result.Done, s.ID)
	}
	for _, f := range v.Result.Failures {
		seen[f.Step.Group] = true
	}
	for _, s := range v.Result.NotTried {
		_, image := s.Do.Op.(plan.EnsureImage)
		if seen[s.Group] || image || plan.Bookkeeping(s.Do.Op) {
			continue
		}
		seen[s.Group] = true
		if begun[s.Group] {
			unfinished++
		} else {
			untouched++
		}
	}
	return untouched, unfinished
}

// achieved counts the changes of which every step was done.
func achieved(v AppliedView) tally {
	var t tally
	open := map[string]bool{} // groups with a step that was not done
	for _, s := range v.Plan.Steps {
		if slices.Contains(v.Result.Done, s.ID) {
			t.image(s.Do.Op)
			if strings.HasPrefix(s.Group, plan.LeftoverGroup) {
				t.Sweep++
			}
		} else {
			open[s.Group] = true
		}
	}
	for _, c := range v.Plan.Diff.Sessions {
		if !open[c.Address.String()] {
			t.session(c)
		}
	}
	for _, c := range v.Plan.Diff.GPUs {
		if !open[c.UUID] {
			t.gpu(c)
		}
	}
	return t
}

// outcome prints the counts and the next command.
func (p *page) outcome(v AppliedView) {
	t := achieved(v)
	failed := len(v.Result.Failures)
	untouched, unfinished := untried(v)
	left := func(n int, what string) string { return given(n, together(fmt.Sprintf("%d %s", n, what))) }
	all := append(t.done(v.Destroy), present(left(failed, "failed"), left(unfinished, "unfinished"), left(untouched, "not tried"))...)
	said := cmp.Or(strings.Join(all, ", "), "nothing was done") + ", in " + together(seconds(v.Took)) + "."
	again := v.command()
	switch {
	case v.Err != nil:
		p.lead(0, removed, "Stopped:", said)
	case failed > 0:
		p.lead(0, removed, "Not all done:", said)
		p.next(suggest(either(v.Destroy, "destroy", "plan"), slices.Concat(v.Flags, v.Narrowed)))
	case v.Result.Interrupted:
		p.lead(0, strong, "Interrupted:", said+" "+together("What was done is in the state."))
		p.next(suggest(again, slices.Concat(v.Flags, v.Narrowed)))
	case !v.Live.AllReached():
		p.leftAsItIs(v)
		p.lead(0, removed, "Not all done:", said+" "+unreachedWords(v.Live))
		p.next(suggest(again, slices.Concat(v.Flags, v.Narrowed)))
	case v.Destroy && len(v.Plan.Diff.Unrestored()) > 0:
		p.leftAsItIs(v)
		release := together(suggest("destroy", v.Flags) + " --abandon-baseline")
		p.lead(0, removed, "Not all restored:", said+" The host's ledger keeps the baseline. To release the GPU as it is: "+release)
	case v.Destroy:
		p.leftAsItIs(v)
		p.lead(0, added, "Destroyed:", said+p.asFound(v))
	case len(v.Plan.Diff.Stuck) > 0:
		p.lead(0, removed, "Not all done:", said+" "+stuckWords(v.Plan.Diff))
		p.next(suggest("plan", slices.Concat(v.Flags, v.Narrowed)))
	default:
		p.lead(0, added, "Applied:", said)
		p.nextAfterApply(v)
	}
}

// done states in the past tense what a tally counts.
func (t tally) done(destroy bool) []string {
	var words []string
	for _, c := range t.counts() {
		what := fmt.Sprintf("%d %s", c.n, c.done)
		switch {
		case destroy && c.toDo == "destroy":
			what = prose.Count(c.n, "session")
		case c.thing != "":
			what = prose.Count(c.n, c.thing) + " " + c.done
		}
		if c.n > 0 {
			words = append(words, together(what))
		}
	}
	return words
}

// unreachedWords names the hosts that do not answer.
func unreachedWords(live resource.Live) string {
	silent := prose.Only(live.Hosts, func(h resource.Host) bool { return h.Unreachable != "" })
	return "Host " + prose.And(each(silent, func(h resource.Host) string { return h.Name })) + " cannot be read: " + prose.Choose(len(silent), "its", "their") + " part of the project is unknown."
}

// leftAsItIs reports settings that were not restored.
func (p *page) leftAsItIs(v AppliedView) {
	for _, c := range v.Plan.Diff.GPUs {
		if !c.GiveBack {
			continue
		}
		for _, f := range c.Kept {
			what := words.GPU(v.Live, c.Host, c.UUID) + ": " + words.Field(f) + either(f.Kind == diff.FieldSettings, " stay ", " stays ")
			p.say(what + words.Value(f.From, v.Live) + ": " + prose.Stop(words.Setting(f)))
		}
	}
}

// asFound reports that nothing of the project is left; "" if something is.
func (p *page) asFound(v AppliedView) string {
	kept := slices.ContainsFunc(v.Plan.Diff.GPUs, func(c diff.GPUChange) bool { return len(c.Kept) > 0 })
	if kept || len(v.Result.Prior.Sessions) > 0 || len(v.Result.Prior.GPUs) > 0 {
		return ""
	}
	return " Everything is as it was found."
}

// nextAfterApply suggests how to enter the first new session: with ssh if it has ssh, otherwise with a command on its GPU.
func (p *page) nextAfterApply(v AppliedView) {
	var made []resource.PriorSession // or changed, and up
	for _, c := range v.Plan.Diff.Sessions {
		if s, ok := v.Result.Prior.Session(c.Address); ok && c.After != nil && c.Action != diff.NoOp && s.Body != nil {
			made = append(made, s)
		}
	}
	if len(made) == 0 {
		p.next(suggest("status", v.Flags))
		return
	}
	first := made[0]
	with := func(command string, s resource.PriorSession) string {
		return suggest(command, append(slices.Clone(v.Flags), s.Address.Short()))
	}
	if i := slices.IndexFunc(made, func(s resource.PriorSession) bool { return loginOf(s.Session, s.Body) != nil }); i >= 0 {
		p.flow(0, 6, join(inked(strong, "Next:"), text(" "+with("ssh", made[i])),
			inked(dim, hard+hard+" (or: "+suggest("ssh-config", v.Flags)+" > ~/.ssh/cosplay)")))
		return
	}
	switch {
	case !first.Spec.IsZero() && first.HasProgram():
		p.next(with("logs", first))
	case !first.Spec.IsZero():
		p.next(with("exec", first))
	case v.NvidiaSMI:
		p.next(with("exec", first) + " -- nvidia-smi")
	default:
		p.next(suggest("status", v.Flags))
	}
}

// unoffered are NVML's codes for a call that the driver does not offer.
var unoffered = []int{3, 4, 13, 999}

// byHand is the advice on a failed step that restores a GPU, if the driver does not offer the call.
func (v AppliedView) byHand(f apply.Failure) (none prose.Advice) {
	if v.NVMLCode == nil || !slices.Contains(unoffered, v.NVMLCode(f.Err)) {
		return none
	}
	again, abandon := suggest("destroy", v.Flags), suggest("destroy", v.Flags)+" --abandon-baseline"
	const reboot = ", or reboot the machine"
	var command string
	switch op := f.Step.Do.Op.(type) {
	case plan.DestroySlice:
		s, _ := v.Result.Prior.Session(op.Address)
		if s.Handle == nil || s.Handle.GPUInstance < 0 {
			return none
		}
		smi := fmt.Sprintf("sudo nvidia-smi mig -i %s -gi %d ", op.Slice.GPU, s.Handle.GPUInstance)
		commands := together(smi+"-dci") + " and " + together(smi+"-dgi")
		if op.Slice.Divides() { // its GPU instance may have others
			commands = together(fmt.Sprintf("%s-ci %d -dci", smi, s.Handle.ComputeInstance))
		}
		return prose.Advice{What: "Without this call cosplay cannot destroy the slice",
			Fix: "run " + commands + reboot + ". Then run " + together(again) + " again"}
	case plan.SetGPU:
		command = "sudo nvidia-smi " + words.SMI(op.GPU, op.Setting, op.Value)
		if op.Setting == resource.SMClock && v.givesBack(op.GPU) {
			// NVML cannot read a lock: only a reboot proves that there is none.
			return prose.Advice{What: "Without this call cosplay cannot restore the SM clock",
				Fix: "reboot the machine, which lifts the lock, then run " + together(again) + " again. Without a reboot: run " +
					together(command) + ", then " + together(abandon)}
		}
	default: // a user cannot repeat it
	}
	if command == "" || !v.givesBack(f.Step.Group) {
		return none
	}
	return prose.Advice{What: "Without this call cosplay cannot restore the setting",
		Fix: "run " + together(command) + reboot + ". Then run " + together(again) + " again. To release the GPU as it is: " + together(abandon)}
}

// givesBack reports whether the plan restores a GPU.
func (v AppliedView) givesBack(gpu string) bool {
	return slices.ContainsFunc(v.Plan.Diff.GPUs, func(c diff.GPUChange) bool { return c.UUID == gpu && c.GiveBack })
}

// released reports whether the run released a GPU though a step of it failed.
func (v AppliedView) released(gpu string) bool {
	return v.givesBack(gpu) && slices.Contains(v.Result.Done, gpu+"/release")
}
