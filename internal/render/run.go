package render

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
	"cosplay/internal/verdict"
	"cosplay/internal/words"
)

// Running shows the session that cosplay run is about to create.
func Running(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	for _, one := range v.Plan.Desired.Sessions {
		of := either(len(one.More) > 0, ", ", " of ")
		p.lead(0, strong, one.Target.ShortName(), fmt.Sprintf("as %s%s%s: %s, FP32 %s, bandwidth %s",
			one.PlaceWords(), of, together(words.GPUs(v.Live, one)), together(mib(one.Target.MemoryMiB)),
			together(fit.Percent(one.Fit.FP32Ratio())), together(fit.Percent(one.Fit.BandwidthRatio()))))
	}
	p.flush(w)
}

// NotRunning shows why the session was not created, and what is left of it.
func NotRunning(w io.Writer, s Style, v AppliedView) {
	p := newPage(s)
	for _, f := range v.Result.Failures {
		p.failure(v, f)
	}
	p.flush(w)
}

// DetachedView is a session that cosplay run --detach has created.
type DetachedView struct {
	Session resource.Session
	Folder  string // of its project
}

// Detached shows the commands that use and remove the session.
func Detached(w io.Writer, s Style, v DetachedView) {
	p := newPage(s)
	name, runtime := v.Session.Address.Short(), resource.RuntimeNamed(v.Session.Runtime)
	t := &table{indent: 2, columns: slices.Concat(textColumns(""), proseColumn(""))}
	add := func(command, what string) { t.add(text("cosplay "+command), inked(dim, what)) }
	if len(v.Session.Command) > 0 && !runtime.RunsPrograms {
		add("exec "+name, "runs its command")
	}
	add("exec "+name+" -- COMMAND", "runs a program in it")
	if v.Session.Spec.SSH.Enabled && runtime.Uses("ssh") {
		add("ssh "+name, "logs in")
	}
	if len(v.Session.Command) > 0 && runtime.RunsPrograms {
		add("logs "+name, "prints what its command has printed")
	}
	if ttl := v.Session.Lifetime.TTL; ttl != 0 {
		add("expire "+name, fmt.Sprintf("ends it when its %s are over", ttl))
	}
	add("destroy "+name, "removes it, and restores the GPU")
	p.lead(0, strong, name, "is up, and stays until you destroy it.")
	p.table(t)
	p.flow(0, 2, inked(dim, "In the folder of a project, add --chdir "+together(terminal.ShellWord(v.Folder))))
	p.flush(w)
}

// RanView is a session that cosplay run has removed.
type RanView struct {
	AppliedView // of the run that removed it
	Target      resource.Target
	Used        map[resource.Address]resource.Use // by the session
	Report      resource.Report                   // of its programs
}

// Ran shows the memory that the command used, what its programs did, and that the session is removed.
func Ran(w io.Writer, s Style, v RanView) {
	p := newPage(s)
	own := targets{}
	for a := range v.Used {
		own[a] = v.Target
	}
	for _, j := range judge(v.Used, own, v.Targets) {
		p.flow(0, 2, inked(strong, prose.Sentence(j.verdict.String())))
	}
	if !v.Report.Empty() {
		p.say(prose.Stop(reportWords(v.Report)))
		p.reasons(v.Report)
	}
	for _, f := range v.Result.Failures {
		p.failure(v.AppliedView, f)
	}
	if len(v.Result.Failures) == 0 {
		p.flow(0, 2, inked(dim, "Removed in "+together(seconds(v.Took))+"."+p.asFound(v.AppliedView)))
	}
	p.flush(w)
}

// judged is the verdict on one session.
type judged struct {
	address resource.Address
	verdict verdict.Verdict
}

// targets are those of sessions.
type targets map[resource.Address]resource.Target

// judge gives the verdicts on the sessions with these targets that used something, by address. The catalog is asked for
// only if there are any.
func judge(used map[resource.Address]resource.Use, own targets, all func() []resource.Target) []judged {
	users := prose.Only(slices.SortedFunc(maps.Keys(used), resource.Address.Compare), func(a resource.Address) bool {
		_, known := own[a]
		return known && !used[a].IsZero()
	})
	var catalog []resource.Target
	if len(users) > 0 && all != nil {
		catalog = all()
	}
	return each(users, func(a resource.Address) judged {
		v, _ := verdict.Of(used[a], own[a], catalog)
		return judged{a, v}
	})
}

// verdicts are those on the sessions of the state.
func (v StatusView) verdicts() []judged {
	own, used := targets{}, maps.Clone(v.Used)
	for _, s := range v.Prior.Sessions {
		own[s.Address] = s.Target
	}
	for a, use := range used {
		used[a] = v.Reports[a].Discount(use)
	}
	return judge(used, own, v.Targets)
}

// ended are the verdicts on the sessions whose containers a run removed.
func (v AppliedView) ended() []judged {
	own := targets{}
	for _, c := range v.Plan.Diff.Sessions {
		if c.Before != nil {
			own[c.Address] = c.Before.Target
		}
	}
	return judge(v.Result.Used, own, v.Targets)
}

// mostVerdicts is the number of verdicts on a screen.
const mostVerdicts = 10

// verdicts says of each session what would have been enough for it, and what its programs did. Where they are too many, those that had too
// little come first.
func (p *page) verdicts(all []judged, reports map[resource.Address]resource.Report) {
	if len(all) == 0 {
		return
	}
	p.gap()
	if len(all) > mostVerdicts {
		slices.SortStableFunc(all, func(a, b judged) int { return min(1, b.verdict.RanOut()) - min(1, a.verdict.RanOut()) })
	}
	for _, j := range all[:min(mostVerdicts, len(all))] {
		p.lead(0, strong, j.address.Short(), j.verdict.String()+".")
		if r := reports[j.address]; !r.Empty() {
			p.detail(prose.Stop(reportWords(r)))
		}
	}
	if more := len(all) - mostVerdicts; more > 0 {
		p.say(fmt.Sprintf("... and of %d more, which --json lists.", more))
	}
	p.gap()
}

func (j judged) json() public.Usage {
	key := func(t *resource.Target) string {
		if t == nil {
			return ""
		}
		return t.Key
	}
	v := j.verdict
	return public.Usage{PeakMiB: v.PeakMiB, OutOfMemory: v.OutOfMemory, Overcome: v.Overcome, WentOn: v.WentOn, NeedMiB: v.NeedMiB,
		Fits: key(v.Fits), FitsAlike: key(v.FitsAlike), DoesNotFit: key(v.DoesNotFit), NextLarger: key(v.NextLarger), Words: v.String()}
}
