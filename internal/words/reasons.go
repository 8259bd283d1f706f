package words

import (
	"fmt"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Setting returns the reason why a setting of a GPU changes or stays; "" for none.
func Setting(f diff.Field) string {
	r := f.Reason
	switch r.Kind {
	case resource.BestClock:
		return "the best for " + prose.Choose(len(r.Targets), "", "all of ") + strings.Join(r.Targets, ", ")
	case resource.FixedClock:
		return fmt.Sprintf("stays at %d MHz: it may not be changed here", r.MHz)
	case resource.OneTarget:
		return "what " + resource.WithArticle(strings.Join(r.Targets, "")) + " draws"
	case resource.SumOfTargets:
		return power(r.Power)
	case resource.AboveDefault:
		return fmt.Sprintf("%s is above the card's %d W", power(r.Power), watts(r.MW))
	case resource.BelowLeast:
		return fmt.Sprintf("%s is below the card's least, %d W", power(r.Power), watts(r.MW))
	case resource.ClockNeeds:
		return fmt.Sprintf("%s, and the clock needs about %d W", power(r.Power), watts(r.MW))
	case resource.GPUMissing, resource.GPUUnusable:
		wrong := resource.MissingGPU
		if r.Unusable != nil {
			wrong = r.Unusable.Advice()
		}
		return prose.Advice{What: "it is " + wrong.What + "; its baseline is kept until it can be restored",
			Fix: wrong.Fix + ", then run cosplay destroy again"}.Error()
	case resource.ChangedByOthers:
		return "another process changed it since, so that its baseline, " + Value(f.To, resource.Live{}) + ", is not restored"
	case resource.KeepsForeign:
		return "without it the driver would forget the " + r.Setting.Words() + " that another process set"
	case resource.SharedByProjects:
		if f.Kind == diff.FieldSettings {
			return "another project holds the GPU too; the last project to leave restores the baseline"
		}
	}
	return settingReasons[r.Kind]
}

var settingReasons = map[resource.ReasonKind]string{
	resource.ForSlices:        "its sessions are in slices",
	resource.ForWholeGPU:      "its session needs the whole GPU",
	resource.SharedByProjects: "another project holds the GPU too",
	resource.UsedByPods:       "pods run on the GPU, and keep it",
	resource.UsedByOthers:     "another user uses this GPU; slow_neighbours = true in the host block allows to change it",
	resource.ForMPS:           "MPS: the GPU's sessions use it through one process",
	resource.NoMoreMPS:        "no session uses MPS any more",
	resource.SharesByTime:     "timeslice in the host block",
	resource.NoMoreTime:       "the configuration does not set it any more",
	resource.UnsafeTimeSlice:  "cosplay cannot see whether another user uses this GPU; slow_neighbours = true in the host block allows to change it",
	resource.OneProgram:       "its limits for one program",
	resource.MadeTogether:     "as the projects on the GPU had set it",
	resource.KeepsSettings:    "without it the driver forgets limits and locks",
	resource.SentAgain:        "sent again, since NVML cannot read a lock",
	resource.EndedByReboot:    "the host was rebooted since, and the driver has its own value",
	resource.LockBefore:       "a lock that seems to have been there before cannot be read, and so cannot be restored",
	resource.ForeignSlices:    "foreign slices are on it; run cosplay destroy again when they are removed",
	resource.SliceOfNoSession: "this project made it, and no session has it: nvidia-smi mig -dci and -dgi remove it",
}

// power adds up: "2 x 160 W + 350 W".
func power(all []resource.TargetPower) string {
	parts := prose.Each(all, func(b resource.TargetPower) string {
		if b.Count > 1 {
			return fmt.Sprintf("%d x %d W", b.Count, b.W)
		}
		return fmt.Sprintf("%d W", b.W)
	})
	return strings.Join(parts, " + ")
}

// watts rounds mW to W.
func watts(mw int) int { return (mw + 500) / 1000 }

// Session returns the reason why a session changes, or cannot change; "" if its fields show it.
func Session(c diff.SessionChange) string {
	body := c.Runtime().Body
	switch c.Reason.Kind {
	case resource.GPUMissing, resource.GPUUnusable, resource.SliceUnread:
		return unplanned(c)
	case resource.StaysBehind:
		if c.Before.Slice.Whole() {
			return "its " + body + " stays behind: cosplay no longer knows it"
		}
		return "its slice and " + body + " stay behind: cosplay no longer knows them"
	case resource.BodyReplaced, resource.BodyUnproven:
		return replaced(c)
	case resource.TriggerSession:
		return "replace_triggered_by: " + c.Reason.Session.String() + " changes"
	}
	return strings.NewReplacer("{body}", body, "{session}", c.Address.Short()).Replace(sessionReasons[c.Reason.Kind])
}

var sessionReasons = map[resource.ReasonKind]string{
	resource.NotConfigured:   "not in the configuration",
	resource.LeftOut:         "left out of this plan",
	resource.WasImported:     "its container was imported and not made by cosplay: it is recreated, and its processes stop",
	resource.SliceMissing:    "its slice is missing",
	resource.SliceUnfinished: "its slice was not finished",
	resource.ComputeMissing:  "its slice has lost its compute instance",
	resource.BodyUnmade:      "its {body} was not created yet",
	resource.BodyMissing:     "its {body} is missing; the slice stays",
	resource.BodyStopped:     "its {body} does not run; it is started again",
	resource.BodyPaused:      "its {body} is paused; it is resumed",
	resource.BodyRestarting:  "its {body} restarts again and again; cosplay logs {session} shows why",
	resource.Interrupted:     "a run was interrupted while it worked on the {body}",
	resource.BodyChanged:     "its {body} was changed outside of cosplay",
	resource.BoundsChanged:   "docker update changed its container; it is set back while it runs",
	resource.BodyAltered:     "its container was changed outside of cosplay; it is restored while it runs",
	resource.ImageMoved:      "its image's name refers to another image now, and pull = \"always\"",
	resource.AskedFor:        "asked for with --replace",
	resource.TriggerValue:    "a value of replace_triggered_by has changed",
}

// unplanned returns why cosplay cannot plan with the slice of a session.
func unplanned(c diff.SessionChange) string {
	wrong := "its slice cannot be read"
	switch c.Reason.Kind {
	case resource.GPUMissing:
		wrong = "its GPU is missing"
	case resource.GPUUnusable:
		wrong = "its GPU is unusable: " + c.Reason.Unusable.String()
	}
	if c.After == nil {
		return wrong + "; the state keeps what is left of the session until cosplay can remove it"
	}
	return wrong + "; it is left as it is"
}

// replaced states what the replacement of a session's body does to the programs in it.
func replaced(c diff.SessionChange) string {
	body := c.Runtime().Body
	if !resource.RuntimeNamed(c.Before.Runtime).RunsPrograms {
		return "its " + body + " is recreated; the slice stays"
	}
	subject := "its " + body + " is"
	if c.Reason.Kind == resource.BodyUnproven {
		subject = "nothing proves what its " + body + " was made from; it is"
	}
	return subject + " recreated: its processes stop; files outside the workspace and volumes are lost; the slice stays"
}
