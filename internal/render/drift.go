package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// NoDrift reports that nothing was changed outside of cosplay, and what cosplay leaves alone.
func NoDrift(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.caughtUp(v)
	p.say("No drift: everything is as the last apply left it. " + leftAlone(v, false))
	p.flush(w)
}

// Drift shows what was changed outside of cosplay, and writes nothing where nothing was that counts. What an apply
// has left unfinished counts too.
func Drift(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	p.caughtUp(v)
	if v.Plan.Diff.Drifted() {
		p.drift(v)
		if !v.Quiet {
			p.information(v, false)
		}
		p.gap()
	}
	if v.Plan.Diff.NotAsApplied() {
		p.unfinished(v)
		p.next(suggest(repairedBy(v.Plan.Diff), v.Flags))
	} else if len(v.Notes) == 0 {
		return // an empty write fails on a full disk
	}
	p.flush(w)
}

// repairedBy is the command for what has drifted: expire where nothing but an expired session has.
func repairedBy(d diff.Diff) string {
	other := slices.ContainsFunc(d.Drift, func(one diff.Drift) bool {
		return !one.Informational && (one.Class != diff.LifetimeEnded || one.Kept())
	})
	if other || len(d.Unfinished) > 0 {
		return "plan"
	}
	return "expire"
}

// drift lists the drift, then what is informational.
func (p *page) drift(v PlanView) {
	var counts, expired, information []diff.Drift
	explained := 0 // by a reboot
	for _, d := range v.Plan.Diff.Drift {
		switch {
		case d.ByReboot && !p.Verbose:
			explained++
		case d.Informational && v.Quiet:
		case d.Informational:
			information = append(information, d)
		case d.Class == diff.LifetimeEnded:
			expired = append(expired, d)
		default:
			counts = append(counts, d)
		}
	}
	if len(counts) > 0 {
		things := prose.Plural(len(counts), "thing was", "things were")
		p.lead(0, drifted, "Drift:", things+" changed outside of cosplay since the last apply.")
		p.driftTable(v.Live, counts, drifted)
	}
	if explained > 0 {
		follow, them := prose.Plural(explained, "more difference follows", "more differences follow"), prose.Choose(explained, "it", "them")
		p.flow(2, 4, inked(dim, follow+" from the reboot; cosplay apply repairs "+them+", and --verbose lists "+them+"."))
	}
	if len(expired) > 0 {
		p.gap()
		p.lead(0, drifted, "Expired:", prose.Plural(len(expired), "session is", "sessions are")+" up although the lifetime has ended.")
		p.driftTable(v.Live, expired, drifted)
	}
	if len(information) > 0 {
		p.gap()
		p.print(0, text("Left alone:"))
		p.driftTable(v.Live, information, plain)
	}
}

func (p *page) driftTable(live resource.Live, all []diff.Drift, to ink) {
	t := &table{indent: 2, columns: []column{{brief: inBlock, name: "Where"}, {name: "What"}, {name: "As applied"}, {tight: true, screen: true},
		{tight: true, name: "Now"}, {prose: true, name: "Cause"}}}
	for _, g := range alike(all, driftReads, p.Verbose) {
		for i, d := range g.shown {
			above := i > 0 && likewise(g.shown[i-1], d)
			below := i+1 < len(g.shown) && likewise(d, g.shown[i+1])
			cause := given(!above && !below, words.CauseAndAge(d))
			t.add(text(driftName(live, d)), text(words.Drifted(d)), text(driftFrom(d, live)),
				inked(dim, p.arrow()), inked(to, words.Value(d.To, live)), inked(dim, cause))
			if above && !below {
				t.across(4, inked(dim, "each: "+words.CauseAndAge(d)))
			}
		}
		if len(g.hidden) > 0 {
			t.across(0, p.more(len(g.hidden)))
		}
	}
	p.table(t)
}

// likewise reports whether two informational things came about alike: that takes a sentence, which is said once.
func likewise(a, b diff.Drift) bool {
	return a.Informational && b.Informational && words.CauseAndAge(a) == words.CauseAndAge(b)
}

// driftFrom is the value after the last apply; "-" for a slice that did not exist.
func driftFrom(d diff.Drift, live resource.Live) string {
	if d.Class == diff.ForeignSlice || d.Class == diff.LifetimeEnded {
		return "-"
	}
	return words.Value(d.From, live)
}

// driftReads is what drifts that read alike have in common: all that is shown but the instance of the session and the
// placement of its slice.
func driftReads(d diff.Drift) string {
	if d.Session == nil {
		return fmt.Sprint(d.Class, d.Host, valueWords(d.From), valueWords(d.To), d.Since)
	}
	return fmt.Sprint(d.Class, d.Host, d.Session.Name, words.Drifted(d), words.CauseAndAge(d))
}

func driftName(live resource.Live, d diff.Drift) string {
	switch {
	case d.Session != nil:
		return d.Session.String()
	case d.GPU != "":
		return words.GPU(live, d.Host, d.GPU)
	}
	return "host " + d.Host
}

// unfinished lists the sessions that an interrupted or failed run left missing or incomplete.
func (p *page) unfinished(v PlanView) {
	var missing, incomplete []resource.Address
	for _, a := range v.Plan.Diff.Unfinished {
		_, there := v.Prior.Session(a)
		switch {
		case slices.Contains(v.Plan.Diff.Stuck, a):
		case there:
			incomplete = append(incomplete, a)
		default:
			missing = append(missing, a)
		}
	}
	report := func(all []resource.Address, what, fix string) {
		if len(all) == 0 {
			return
		}
		are := resource.AddressNames(all, 1) + prose.Choose(len(all), " is ", " are ")
		p.lead(0, drifted, "Unfinished:", are+what+": an apply or a destroy failed or was interrupted. "+fix)
		p.gap()
	}
	report(missing, "missing", "Fix: cosplay apply")
	report(incomplete, "incomplete", "Fix: cosplay apply")
	report(v.Plan.Diff.Stuck, "incomplete", "cosplay apply cannot complete what is on a GPU that cannot be read.")
}

// lockWords reports the clock locks that are not provable while their GPUs are idle; "" for none. A plan leaves out
// those that it sends again or gives up.
func lockWords(v PlanView, planned bool) string {
	var on []string
	for _, l := range sortedByGPU(v.Live, v.Plan.Diff.Unproven) {
		if !slices.ContainsFunc(v.Plan.Diff.GPUs, func(c diff.GPUChange) bool {
			return planned && c.Host == l.Host && c.UUID == l.GPU && (c.GiveBack || c.Settings.Has(resource.SMClock))
		}) {
			on = append(on, words.GPU(v.Live, l.Host, l.GPU))
		}
	}
	if len(on) == 0 {
		return ""
	}
	n, gpus := len(on), strings.Join(on, ", ")
	if n > 3 {
		gpus = prose.Count(n, "GPU")
	}
	return fmt.Sprintf("The clock %s of %s %s not provable while idle; cosplay verify proves %s under a short load.",
		prose.Choose(n, "lock", "locks"), gpus, prose.Choose(n, "is", "are"), prose.Choose(n, "it", "them"))
}

// sortedByGPU orders clock locks as the driver numbers their GPUs.
func sortedByGPU(live resource.Live, all []diff.UnprovenLock) []diff.UnprovenLock {
	index := func(l diff.UnprovenLock) int {
		g, _ := live.GPU(l.Host, l.GPU)
		return g.Index
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b diff.UnprovenLock) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(index(a), index(b)))
	})
}

// sliceWords reports the slices that count as cosplay's without a proof; "" for none.
func sliceWords(v PlanView) string {
	all := each(v.Plan.Diff.Unowned, func(s diff.UnprovenSlice) resource.Address { return s.Session })
	reboot := slices.ContainsFunc(v.Plan.Diff.Unowned, func(s diff.UnprovenSlice) bool { return !s.SameBoot })
	if len(all) == 0 {
		return ""
	}
	n, names := len(all), resource.AddressNames(all, 3)
	return "It is not provable that the " + prose.Choose(n, "slice", "slices") + " of " + names + prose.Choose(n, " is", " are") +
		" still cosplay's: the driver names slices by instance ids, so a recreated slice has the same name. " +
		either(reboot, "Placement", "Boot, placement") + " and ids agree with the records, so cosplay counts " + prose.Choose(n, "it", "them") + " as its own."
}

// information is what plan and drift report besides drift.
func information(v PlanView, planned bool) string {
	return strings.TrimSpace(sliceWords(v) + " " + lockWords(v, planned))
}

// information prints the same on its own.
func (p *page) information(v PlanView, planned bool) {
	if words := information(v, planned); words != "" {
		p.gap()
		p.say(words)
	}
}

// Information reports what containers keep of before, and the clock locks and slices that are not provable; nothing where
// there are none.
func Information(w io.Writer, s Style, v PlanView) {
	p := newPage(s)
	if kept := keptWords(v.Plan.Diff.Drift); kept != "" {
		p.say(kept)
	}
	p.information(v, false)
	p.flush(w)
}

// disguise is a kind of session on a kind of GPU, with what it cannot hide.
type disguise struct {
	of     string // "RTX 2060 on H200"
	limits []string
}

// limits lists what new and changed sessions cannot hide: first what all of them share, then the rest.
func (p *page) limits(v PlanView) {
	changed := prose.Only(v.Plan.Diff.Sessions, func(c diff.SessionChange) bool { return c.After != nil && c.Action != diff.NoOp })
	p.disguises(disguises(v.Live, each(changed, func(c diff.SessionChange) resource.Session { return *c.After })))
}

func (p *page) disguises(all []disguise) {
	if len(all) == 0 {
		return
	}
	p.gap()
	lead := inked(strong, "Cannot be hidden")
	if len(all) == 1 {
		p.flow(0, 2, join(lead, text(" ("+together(all[0].of)+"): "+prose.Stop(strings.Join(all[0].limits, "; ")))))
		return
	}
	shared, others := apart(all)
	p.flow(0, 2, join(lead, text(":"+given(len(shared), " "+prose.Stop(strings.Join(shared, "; "))))))
	for _, d := range others {
		p.detail(together(d.of) + ": " + prose.Stop(strings.Join(d.limits, "; ")))
	}
}

// apart are the limits that all disguises share, and those that some have besides.
func apart(all []disguise) (shared []string, others []disguise) {
	if len(all) == 0 {
		return nil, nil
	}
	shared = slices.DeleteFunc(slices.Clone(all[0].limits), func(l string) bool {
		return slices.ContainsFunc(all, func(d disguise) bool { return !slices.Contains(d.limits, l) })
	})
	for _, d := range all {
		own := slices.DeleteFunc(slices.Clone(d.limits), func(l string) bool { return slices.Contains(shared, l) })
		if len(own) > 0 {
			others = append(others, disguise{d.of, own})
		}
	}
	return shared, others
}

// disguises lists the kinds of sessions, each with what it cannot hide.
func disguises(live resource.Live, sessions []resource.Session) []disguise {
	var all []disguise
	for _, one := range sessions {
		g, ok := live.GPU(one.Slice.Host, one.Slice.GPU)
		if !ok {
			continue
		}
		of := one.Target.ShortName() + " on " + g.Model.ShortModel()
		limits := fit.Limits(g.Model, one.Slice.Profile, one.Target, one.ReportedCapability() == resource.CapabilityTarget)
		if devices := len(one.Slices()); devices > 1 {
			of = fmt.Sprintf("%d x %s", devices, of)
			limits = append(limits, "no NVLink is shown, so NCCL uses PCIe or shared memory")
		}
		if same := slices.IndexFunc(all, func(d disguise) bool { return d.of == of }); same >= 0 && !slices.Equal(all[same].limits, limits) {
			of += " as " + fit.SliceName(one.Slice.Profile)
		}
		if len(limits) > 0 && !slices.ContainsFunc(all, func(d disguise) bool { return d.of == of }) {
			all = append(all, disguise{of, limits})
		}
	}
	return all
}
