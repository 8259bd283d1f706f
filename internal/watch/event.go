package watch

import (
	"maps"
	"slices"
	"strings"

	"cosplay/internal/apply"
	"cosplay/internal/findings"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// The kinds of events.
const (
	Begun         = "finding"        // drift was found
	Ended         = "finding-ended"  // drift that was found exists no more
	Ending        = "expire"         // the end of a session whose lifetime has ended
	Repairing     = "repair"         // a repair of a session begins
	Step          = "step"           // a step of a repair is done
	Failed        = "failed"         // a step or a whole repair
	Stays         = "not-repaired"   // drift that the policy does not repair
	Would         = "would-repair"   // with DryRun
	ConfigDiffers = "config-differs" // the file differs from what is applied
	ConfigInvalid = "config-invalid" // the configuration before it is kept
	Waiting       = "waiting"        // another command has the lock
	CycleFailed   = "cycle"          // hosts or state could not be read
	Resolved      = "resolved"       // an earlier event is over
)

// over says in words that an event of a kind is over.
var over = map[string]string{
	ConfigDiffers: "the file is as applied",
	ConfigInvalid: "the configuration is valid",
	Waiting:       "the lock is free",
	CycleFailed:   "hosts and state can be read",
}

// reasons says in words why drift stays.
var reasons = map[Why]string{
	NotAllowed:   "--repair does not name this drift; cosplay apply repairs it",
	Unread:       "the container engine does not answer",
	EndsPrograms: "programs that work would end, and --repair does not name this drift; cosplay apply repairs it",
	OnItsGPU:     "the settings of its GPU would change, and --repair does not name them; cosplay apply repairs it",
	Exhausted:    "it was repaired as often as --repairs-per-hour allows; look for the cause: cosplay logs, cosplay drift",
	OthersUse:    "others use the GPU, so that its settings stay as they are",
	AllDiffer:    "the file differs for each of its sessions; cosplay apply applies the file and repairs this",
	BackingOff:   "the last repair failed, and the next one waits",
}

// report completes an event.
func (l *Loop) report(e public.WatchEvent) {
	e.Format, e.Time = public.V1, project.Now().String()
	l.Report(e)
}

func ofSession(kind string, a resource.Address, text string) public.WatchEvent {
	return public.WatchEvent{Kind: kind, Subject: a.String(), Session: a.String(), Text: text}
}

func ofGPU(kind string, g resource.GPUKey, live resource.Live, text string) public.WatchEvent {
	return public.WatchEvent{Kind: kind, Subject: words.GPU(live, g.Host, g.UUID), Host: g.Host, GPU: g.UUID, Text: text}
}

// findings reports what has begun and what has ended since the last cycle. A reboot is one finding.
func (l *Loop) findings(p *project.Project, o project.Outlook) {
	all := l.Found(o)
	c := findings.Compare(l.record, all, project.Now().String())
	l.record = c.Record
	if l.Announce != nil {
		l.Announce(p, o, all)
	}
	for _, d := range c.Begun {
		l.report(found(Begun, d.Drift, d.Thing+": "+d.From+" -> "+d.To, o.Live))
	}
	for _, d := range c.Ended {
		l.report(found(Ended, d.Drift, d.Thing+": as applied again", o.Live))
	}
}

func found(kind string, d public.Drift, text string, live resource.Live) public.WatchEvent {
	e := public.WatchEvent{Kind: kind, Host: d.Host, GPU: d.GPU, Class: d.Class, Text: text}
	if e.Subject = words.Found(d, live); d.Session != nil {
		e.Session = *d.Session
	}
	return e
}

// say reports what is wrong about a subject once, until it is something else, and when it is over.
func (l *Loop) say(kind, text string) {
	before := l.said[kind]
	if before == text {
		return
	}
	if l.said[kind] = text; text == "" {
		l.report(public.WatchEvent{Kind: Resolved, Text: over[kind]})
		return
	}
	l.report(public.WatchEvent{Kind: kind, Text: text})
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return prose.Stop(err.Error())
}

// changed reports that the configuration differs from what is applied.
func (l *Loop) changed(j Judgement) {
	text := ""
	if len(j.Changed) > 0 && !l.Policy.Apply {
		text = "the file differs from what is applied, for " + prose.And(prose.Each(j.Changed, resource.Address.String)) + "; cosplay apply applies it, or --apply"
	}
	l.say(ConfigDiffers, text)
}

// left reports once what is not repaired, and why.
func (l *Loop) left(j Judgement, live resource.Live) {
	before := l.stays
	l.stays = map[Left]bool{}
	for _, left := range j.Left {
		if l.stays[left] = true; left.Why == Differs || before[left] {
			continue
		}
		e := ofSession(Stays, left.Address, reasons[left.Why])
		if left.GPU.UUID != "" {
			e = ofGPU(Stays, left.GPU, live, reasons[left.Why])
		}
		e.Why = string(left.Why)
		l.report(e)
	}
}

// wouldRepair reports once what is repaired without DryRun, and which sessions are ended.
func (l *Loop) wouldRepair(j Judgement, expired []string, live resource.Live) {
	now := map[string]bool{}
	for _, key := range j.Keys {
		if host, uuid, isGPU := strings.Cut(key, " "); isGPU {
			key = words.GPU(live, host, uuid)
		}
		now[key] = true
	}
	for _, session := range expired {
		now[session] = true
	}
	if !maps.Equal(l.would, now) {
		l.would = now
		for _, subject := range slices.Sorted(maps.Keys(now)) {
			l.report(public.WatchEvent{Kind: Would, Subject: subject, Text: "not changed, because of --dry-run"})
		}
	}
}

func (l *Loop) step(e apply.Event) {
	switch e.Kind {
	case apply.StepDone:
		l.report(public.WatchEvent{Kind: Step, Text: words.Step(e.Step, e.Live)})
	case apply.StepFailed:
		l.report(public.WatchEvent{Kind: Failed, Text: words.Step(e.Step, e.Live) + ": " + sentence(e.Err)})
	case apply.StepStarted, apply.StepSays, apply.UndoDone, apply.UndoFailed:
	}
}
