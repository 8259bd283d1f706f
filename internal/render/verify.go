package render

import (
	"fmt"
	"strings"

	"cosplay/internal/disguise/verify"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// VerifyView is the result of the self-test of sessions.
type VerifyView struct {
	Sessions []VerifiedSession
	Stopped  []string // short addresses of those that were left out

	Unreached bool     // some were left out whose host does not answer
	Flags     []string // global flags to repeat in suggestions
}

// VerifiedSession is a session with its results.
type VerifiedSession struct {
	Session resource.Session
	Results []verify.Result

	Outdated []resource.Outdated // parts that this cosplay would create differently
}

// Failed counts the checks of all sessions that failed.
func (v VerifyView) Failed() int { return v.count(verify.Failed) }

func (v VerifyView) count(outcome verify.Outcome) int {
	return len(v.results(func(r verify.Result) bool { return r.Outcome == outcome }))
}

// result is a result with the session that it is of.
type result struct {
	verify.Result
	session resource.Address
}

// results are those of all sessions that a function accepts.
func (v VerifyView) results(accepts func(verify.Result) bool) []result {
	var all []result
	for _, s := range v.Sessions {
		for _, r := range prose.Only(s.Results, accepts) {
			all = append(all, result{r, s.Session.Address})
		}
	}
	return all
}

// count counts results with an outcome; of one class, or of all with "".
func (s VerifiedSession) count(outcome verify.Outcome, class verify.Class) int {
	return count(s.Results, func(r verify.Result) bool { return r.Outcome == outcome && (class == "" || r.Class == class) })
}

// classes in the order of the columns, with titles that leave room for all.
var classes = []struct {
	class verify.Class
	title string
}{
	{verify.Entry, "entry"}, {verify.Environment, "env"}, {verify.SMI, "smi"}, {verify.NVML, "NVML"}, {verify.CUDA, "CUDA"},
	{verify.Python, "Python"}, {verify.Slice, "slice"}, {verify.Settings, "GPU"}, {verify.Files, "files"},
}

// Verify shows a line for each session, then what failed and what was skipped. Verbose shows every check.
func (v VerifyView) draw(p *page) {
	if len(v.Sessions) == 0 && len(v.Stopped) > 0 {
		p.print(0, text("Nothing was verified: no session that was asked for runs."))
		p.next(suggest("start "+strings.Join(v.Stopped, " "), v.Flags))
		return
	}
	if len(v.Sessions) == 0 {
		p.print(0, text("There is no session to verify."))
		p.next(suggest("apply", v.Flags))
		return
	}
	if p.Verbose {
		p.everyCheck(v)
	} else {
		p.verifyTable(v)
	}
	for _, f := range v.failures() {
		p.failed(f)
	}
	p.unrunChecks(v)
	p.emulatedChecks(v)
	p.oldFacades(v)
	p.gap()
	passed, failed, skipped := v.count(verify.Passed), v.Failed(), v.count(verify.Skipped)
	elsewhere := v.count(verify.NotApplicable)
	words := fmt.Sprintf("%s, %s passed", prose.Count(len(v.Sessions), "session"), prose.Count(passed, "check")) +
		given(skipped, fmt.Sprintf(", %d skipped", skipped)) + given(elsewhere, fmt.Sprintf(", %d %s", elsewhere, notApplicable))
	if failed == 0 {
		p.lead(0, added, "The disguise holds:", words+".")
		return
	}
	p.lead(0, removed, "The disguise is broken:", fmt.Sprintf("%s, %d failed.", words, failed))
}

const notApplicable = "not applicable on a simulated host"

// verifyTable has a row for each session and a column for each class.
func (p *page) verifyTable(v VerifyView) {
	t := &table{columns: textColumns("SESSION")}
	for _, c := range classes {
		t.columns = append(t.columns, column{title: c.title})
	}
	for _, s := range v.Sessions {
		cells := []line{text(s.Session.Address.Short())}
		for _, c := range classes {
			cells = append(cells, p.tally(s, c.class))
		}
		t.add(cells...)
	}
	p.table(t)
}

// tally counts the checks of a class that passed or failed; "-" if none could run.
func (p *page) tally(s VerifiedSession, class verify.Class) line {
	passed, failed := s.count(verify.Passed, class), s.count(verify.Failed, class)
	skipped := s.count(verify.Skipped, class) + s.count(verify.NotApplicable, class)
	switch {
	case failed > 0:
		return inked(removed, fmt.Sprintf("%s %d/%d", p.cross(), failed, passed+failed))
	case passed > 0:
		return join(p.graded("good"), text(fmt.Sprintf(" %d", passed)))
	case skipped > 0:
		return inked(dim, "-")
	}
	return nil
}

// everyCheck lists all checks by session.
func (p *page) everyCheck(v VerifyView) {
	for _, s := range v.Sessions {
		p.gap()
		p.print(0, inked(strong, s.Session.Address.String()))
		t := &table{indent: 2, gap: 2, columns: []column{{}, {tight: true}, {}, {prose: true}}}
		for _, r := range s.Results {
			t.add(p.outcomeSign(r.Outcome), text(r.Check), inked(dim, string(r.Way)), text(said(r)))
		}
		p.table(t)
	}
}

// unrun is what happened to a check that did not run; "" if it ran.
func unrun(o verify.Outcome) string {
	return map[verify.Outcome]string{verify.Skipped: "skipped", verify.NotApplicable: notApplicable}[o]
}

func said(r verify.Result) string {
	if how := unrun(r.Outcome); how != "" {
		return how + ": " + r.Why
	}
	if r.By != "" {
		return fmt.Sprintf("%s (computed by the %s)", r.Got.What, r.By)
	}
	return r.Got.What
}

func (p *page) outcomeSign(o verify.Outcome) line {
	if unrun(o) != "" {
		return inked(dim, "-")
	}
	return p.graded(map[verify.Outcome]string{verify.Failed: "missing", verify.Passed: "good"}[o])
}

// failures gathers equal failures, in the order of the first of each: one fault in several sessions and ways.
func (v VerifyView) failures() [][]result {
	all := v.results(func(r verify.Result) bool { return r.Outcome == verify.Failed })
	return grouped(all, func(r result) string { return strings.Join([]string{r.Check, r.Expected, r.Got.What}, "\x00") })
}

// once lists the different names of things.
func once[T any](all []T, name func(T) string) []string {
	return each(grouped(all, name), func(g []T) string { return name(g[0]) })
}

// failed shows what was expected and found, and the fix.
func (p *page) failed(all []result) {
	f, sessions := all[0], once(all, func(r result) string { return r.session.String() })
	ways := once(all, func(r result) string { return string(r.Way) })
	const hang = len("expected  ")
	field := func(name, value string) {
		p.flow(2, 2+hang, join(inked(dim, together(fmt.Sprintf("%-*s", hang, name))), text(value)))
	}
	p.gap()
	p.flow(0, 2, join(inked(removed, p.cross()+hard), inked(strong, f.Check), text(" "+prose.And(prose.Few(sessions, 1))),
		inked(dim, " ("+strings.Join(ways, " and ")+")")))
	field("expected", f.Expected)
	field("found", f.Got.What)
	field("fix", f.Got.Fix)
}

// unrunChecks shows each reason once.
func (p *page) unrunChecks(v VerifyView) {
	p.gap()
	all := v.results(func(r verify.Result) bool { return unrun(r.Outcome) != "" })
	for _, g := range grouped(all, func(r result) string { return string(r.Outcome) + r.Why }) {
		p.lead(0, dim, prose.Count(len(g), "check")+" "+unrun(g[0].Outcome)+":", g[0].Why+".")
	}
}

// emulatedChecks says how many checks no GPU computed.
func (p *page) emulatedChecks(v VerifyView) {
	for _, how := range []struct{ by, words string }{{"CPU", "computed by the CPU"}, {"shapes", "with shapes only, without values"}} {
		if n := len(v.results(func(r verify.Result) bool { return r.By == how.by })); n > 0 {
			p.lead(0, dim, prose.Count(n, "check")+" "+how.words+":",
				"PyTorch on a simulated host. Its CPU builds are tested, and a CUDA build of PyTorch 2.6.")
		}
	}
}

// oldFacades reports sessions with facades of another cosplay. These can still hold, so no check fails for them. The
// driver has its own check.
func (p *page) oldFacades(v VerifyView) {
	words := func(s VerifiedSession) string {
		for _, o := range s.Outdated {
			if o.Part != resource.Facades {
				continue
			}
			runtime := resource.RuntimeNamed(s.Session.Runtime)
			next := either(runtime.RenewsInPlace, "cosplay apply", runtime.StopCommand+", then cosplay apply,")
			return fmt.Sprintf(" the facades of %s, not of this %s: %s brings them up to date.", o.From, o.To, next)
		}
		return ""
	}
	for _, g := range grouped(v.Sessions, words) {
		if old := words(g[0]); old != "" {
			p.gap()
			on := each(g, func(s VerifiedSession) resource.Address { return s.Session.Address })
			p.say(resource.AddressNames(on, 3) + prose.Choose(len(on), " has", " have") + old)
		}
	}
}

// json is the self-test as data.
func (v VerifyView) json() public.Verify {
	return public.Verify{Holds: v.Failed() == 0, Sessions: each(v.Sessions, func(s VerifiedSession) public.VerifiedSession {
		all := func(outcome verify.Outcome) int { return s.count(outcome, "") }
		return public.VerifiedSession{Address: s.Session.Address.String(), Name: s.Session.Address.Short(),
			Passed: all(verify.Passed), Failed: all(verify.Failed), Skipped: all(verify.Skipped), NotApplicable: all(verify.NotApplicable),
			Checks: each(s.Results, checkOf), Outdated: each(s.Outdated, outdatedOf)}
	})}
}

func checkOf(r verify.Result) public.Check {
	return public.Check{Check: r.Check, Class: string(r.Class), Way: string(r.Way), Outcome: string(r.Outcome), Expected: r.Expected, Found: r.Got.What, Why: r.Why, Hint: r.Got.Fix, By: r.By}
}

func (v VerifyView) data() any {
	return public.Verified{Format: public.V1, Verify: v.json()}
}
