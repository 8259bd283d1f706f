package render

import (
	"cosplay/internal/diff"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

func fieldsJSON(live resource.Live, all []diff.Field) []public.Field {
	return each(all, func(f diff.Field) public.Field {
		return public.Field{Kind: string(f.Kind), Name: words.Field(f), From: words.Value(f.From, live), To: words.Value(f.To, live), Before: valueOf(f.From), After: valueOf(f.To),
			Reason: words.Setting(f), ReasonKind: string(f.Reason.Kind), Left: f.Left}
	})
}

// keptJSON are settings that stay as they are.
func keptJSON(live resource.Live, all []diff.Field) []public.Field {
	out := fieldsJSON(live, all)
	for i := range out {
		out[i].To, out[i].After = out[i].From, out[i].Before
	}
	return out
}

func gpuChangesJSON(live resource.Live, all []diff.GPUChange) []public.GPUChange {
	return list(each(all, func(c diff.GPUChange) public.GPUChange {
		return public.GPUChange{Host: c.Host, UUID: c.UUID, Action: string(c.Action), Baseline: some(c.Baseline, settingsOf), Holds: settingsOf(c.Holds),
			LockBefore: c.LockBefore, LockLost: c.LockLost, Take: c.Take, Whole: c.Whole, Others: each(c.Others, holderOf), GiveBack: c.GiveBack, Abandon: c.Abandon,
			Settings: settingsOf(c.Settings), Fields: fieldsJSON(live, c.Fields), Kept: keptJSON(live, c.Kept)}
	}))
}

func sessionChangesJSON(live resource.Live, all []diff.SessionChange) []public.SessionChange {
	return list(each(all, func(c diff.SessionChange) public.SessionChange {
		return public.SessionChange{Address: c.Address.String(), MovedFrom: address(c.MovedFrom), Imported: c.Imported, Action: string(c.Action),
			Slice: string(c.Slice), Container: string(c.Container), Record: c.Record, Renew: c.Renew, Before: some(c.Before, stateSessionOf), After: some(c.After, sessionOf),
			Reason: words.Session(c), ReasonKind: string(c.Reason.Kind), Fields: fieldsJSON(live, c.Fields)}
	}))
}

func outputChangesJSON(all []diff.OutputChange) []public.OutputChange {
	return list(each(all, func(c diff.OutputChange) public.OutputChange {
		return public.OutputChange{Name: c.Name, Action: string(c.Action), Sensitive: c.Sensitive, Before: c.Before, After: c.After}
	}))
}

func driftsJSON(live resource.Live, all []diff.Drift) []public.Drift {
	return list(each(all, func(d diff.Drift) public.Drift {
		return public.Drift{Class: string(d.Class), Host: d.Host, GPU: d.GPU, Session: address(d.Session), Kind: string(d.Kind), Name: d.Name, Runtime: d.Runtime, Told: d.Informational,
			Thing: words.Drifted(d), From: driftFrom(d, live), To: words.Value(d.To, live), Before: valueOf(d.From), After: valueOf(d.To), Cause: words.Cause(d)}
	}))
}

func unprovenLocksJSON(all []diff.UnprovenLock) []public.UnprovenLock {
	return list(each(all, func(l diff.UnprovenLock) public.UnprovenLock { return public.UnprovenLock(l) }))
}

func unprovenSlicesJSON(all []diff.UnprovenSlice) []public.UnprovenSlice {
	return list(each(all, func(s diff.UnprovenSlice) public.UnprovenSlice {
		return public.UnprovenSlice{Session: s.Session.String(), Slice: public.Slice(s.Slice), UUID: s.UUID, SameBoot: s.SameBoot}
	}))
}
