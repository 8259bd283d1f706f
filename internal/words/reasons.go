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
	resource.UsedByOthers:     "another user uses this GPU; slow_neighbours = true in the host block allows to change it",
	resource.ForMPS:           "MPS: the GPU's sessions use it through one process",
	resource.NoMoreMPS:        "no session uses MPS any more",
	resource.SharesByTime:     "timeslice in the host block",
	resource.NoMoreTime:       "the configuration does not set it any more",
	resource.UnsafeTimeSlice:  "cosplay cannot see whether another user uses this GPU; slow_neighbours = true in the host block allows to change it",
	resource.OneProgram:       "its limits for one program",
	resource.KeepsSettings:    "without it the driver forgets limits and locks",
	resource.SentAgain:        "sent again, since NVML cannot read a lock",
	resource.EndedByReboot:    "the host was rebooted since, and the driver has its own value",
	resource.LockBefore:       "a lock that seems to have been there before cannot be read, and so cannot be restored",
	resource.ForeignSlices:    "foreign slices are on it; run cosplay destroy again when they are removed",
	resource.SliceOfNoSession: "this project made it, and no session has it: nvidia-smi mig -dci and -dgi remove it",
}

// power adds up: "2 x 160 W + 350 W".
func power(all []resource.TargetPower) string {
	var parts []string
	for _, b := range all {
		part := fmt.Sprintf("%d W", b.W)
		if b.Count > 1 {
			part = fmt.Sprintf("%d x %d W", b.Count, b.W)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " + ")
}

// watts rounds mW to W.
func watts(mw int) int { return (mw + 500) / 1000 }

// Session returns the reason why a session changes, or cannot change; "" if its fields show it.
func Session(c diff.SessionChange) string {
	runtime := c.Runtime()
	body := runtime.Body
	switch c.Reason.Kind {
	case resource.GPUMissing, resource.GPUUnusable, resource.SliceUnread:
		return unplanned(c)
	case resource.StaysBehind:
		if c.Before.Slice.Whole() {
			return "its " + body + " stays behind: cosplay no longer knows it"
		}
		return "its slice and " + body + " stay behind: cosplay no longer knows them"
	case resource.BodyUnmade:
		return "its " + body + " was not created yet"
	case resource.BodyMissing:
		return "its " + body + " is missing; the slice stays"
	case resource.BodyReplaced, resource.BodyUnproven:
		return replaced(c)
	case resource.BodyStopped:
		return "its " + body + " does not run; it is started again"
	case resource.BodyPaused:
		return "its " + body + " is paused; it is resumed"
	case resource.BodyRestarting:
		return "its " + body + " restarts again and again; cosplay logs " + c.Address.Short() + " shows why"
	case resource.Interrupted:
		return "a run was interrupted while it worked on the " + body
	case resource.BodyChanged:
		return "its " + body + " was changed outside of cosplay"
	case resource.TriggerSession:
		return "replace_triggered_by: " + c.Reason.Session.String() + " changes"
	}
	return sessionReasons[c.Reason.Kind]
}

var sessionReasons = map[resource.ReasonKind]string{
	resource.NotConfigured:   "not in the configuration",
	resource.LeftOut:         "left out of this plan",
	resource.WasImported:     "its container was imported and not made by cosplay: it is recreated, and its processes stop",
	resource.SliceMissing:    "its slice is missing",
	resource.SliceUnfinished: "its slice was not finished",
	resource.ComputeMissing:  "its slice has lost its compute instance",
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

// possibly begins a cause that is not known: cosplay reads the change, and not the command.
const possibly = "possible cause: "

// CauseAndAge is the cause of a drift, and since when it is known if that is recorded.
func CauseAndAge(d diff.Drift) string {
	since, known := resource.ParseMoment(d.Since)
	if !known {
		return Cause(d)
	}
	found := "found at " + since.String()
	if cause := Cause(d); cause != "" {
		found = cause + "; " + found
	}
	return found
}

// Cause returns the cause of a drift, or its meaning.
func Cause(d diff.Drift) string {
	at, _ := resource.ParseMoment(d.By.At)
	switch {
	case d.By.User != "" && d.Class == diff.BodyMissing:
		return fmt.Sprintf("%s%s, who destroyed its slice at %s", possibly, d.By.User, at)
	case d.By.User != "":
		return fmt.Sprintf("by %s at %s", d.By.User, at)
	case d.Class == diff.GPUUnseen:
		return d.Name + "; " + possibly + "systemctl daemon-reload, a restart of the engine, or a lost GPU. cosplay apply --replace recreates the " + resource.RuntimeNamed(d.Runtime).Body
	case d.Class == diff.MPSChanged && (d.To == diff.IsMissing || d.To == diff.IsSilent):
		return possibly + "killed; programs that used it have failed"
	case d.Class == diff.EngineSilent:
		return "sessions were not read: " + d.Name
	case d.Class == diff.GPUUnusable:
		u, _ := d.To.(diff.Unanswered)
		return resource.Unusable(u).String()
	case d.Class == diff.ClockLock && d.To.(diff.Clock).Read != 0:
		return fmt.Sprintf("cosplay verify read %d MHz under load", d.To.(diff.Clock).Read)
	case d.Class == diff.SliceMissing && d.To == diff.IsWithoutCompute:
		return possibly + "nvidia-smi mig -dci"
	case d.Class == diff.BodyChanged && d.Kind != "":
		return possibly + "docker update"
	case d.Kept():
		return "expired (" + string(d.Kind) + "); prevent_destroy keeps it up"
	case d.Class == diff.LifetimeEnded:
		return "expired (" + string(d.Kind) + "); cosplay expire ends it, cosplay extend gives it more time"
	case d.Class == diff.BodyAltered && altered[d.Kind] != "":
		return altered[d.Kind]
	case d.Class == diff.DisguiseBroken && d.Name != "":
		return "cosplay verify says what to do"
	case d.Class == diff.DisguiseOutdated:
		runtime := resource.RuntimeNamed(d.Runtime)
		return "a " + runtime.Body + " keeps what it was started with: " + runtime.StopCommand + ", then cosplay apply"
	}
	if s, is := d.Class.Setting(); is && causes[d.Class] == "" {
		return possibly + "nvidia-smi " + s.SMI() + ", or a " + prose.Choose(resource.Bit(s.Mode()), "reboot", "restart of the driver")
	}
	return causes[d.Class]
}

var altered = map[diff.Kind]string{
	diff.FieldName:    possibly + "docker rename",
	diff.FieldNetwork: possibly + "docker network disconnect",
	diff.FieldPorts:   "the engine does not publish the port of the running container",
	diff.FieldSSHPort: "the engine does not publish the port of the running container",
}

var causes = map[diff.Class]string{
	diff.GPUMissing:     possibly + "removed, fallen off the bus, or hidden by the driver; dmesg shows it",
	diff.HostRebooted:   "the driver forgets slices, clock locks and power limits over a reboot",
	diff.ClockLock:      possibly + "nvidia-smi -rgc or -lgc, or a restart of the driver",
	diff.MPSChanged:     possibly + "nvidia-cuda-mps-control; programs that run keep the limits that they started with",
	diff.ProjectRemoved: "removed by another user",
	diff.SliceMissing:   possibly + "nvidia-smi mig -dgi, or a reboot",
	diff.SliceReplaced:  "recreated outside cosplay; the new slice is foreign",
	diff.BodyMissing:    possibly + "removed by hand",
	diff.BodyStopped:    possibly + "stopped by hand, or its program ended",
	diff.BodyUnstarted:  possibly + "the engine or a run ended before it was started",
	diff.BodyRestarting: "its program ends; cosplay logs shows why",
	diff.BodyAltered:    "changed outside cosplay",
	diff.MountReplaced:  possibly + "an editor that saves by renaming. The session has the old one until cosplay stop and cosplay start; edit in place, or mount the folder",
	diff.BodyStarted:    possibly + "docker start; cosplay stop had stopped it",
	diff.BodyPaused:     possibly + "docker pause",
	diff.BodyChanged:    "edited or recreated outside cosplay",
	diff.BodyReplaced:   "removed and recreated outside cosplay",
	diff.BodyLimited:    possibly + "docker update; only a recreated container is without it: cosplay apply --replace",
	diff.ImageMoved:     "built or pulled again; each container keeps its own until it is replaced",
	diff.ImageOffered:   "the registry has another image by this name; cosplay apply pulls it",
	diff.ForeignSlice:   "cosplay leaves it alone",
	diff.DisguiseBroken: "files in the session's folder were changed outside cosplay",
	diff.SecretsInEnv:   "an older cosplay made the container: docker inspect and docker commit show the values until cosplay apply --replace",
}

// Repair says what an apply would do about a drift.
func Repair(d diff.Drift) string {
	if _, setting := d.Class.Setting(); setting {
		return "sets the " + Drifted(d) + " again"
	}
	runtime := resource.RuntimeNamed(d.Runtime)
	recreates := "recreates the " + runtime.Body
	if runtime.Rewrites {
		recreates = "writes the " + runtime.Body + " again"
	}
	switch d.Class {
	case diff.HostRebooted:
		return "sets the GPUs, creates the slices and starts the sessions again"
	case diff.GPUMissing, diff.GPUUnusable:
		return "leaves what is on it until the GPU answers"
	case diff.ProjectRemoved:
		return "creates the sessions again"
	case diff.EngineSilent:
		return "is refused until the engine answers"
	case diff.GPUUnseen:
		return "leaves it; with --replace it recreates the " + runtime.Body
	case diff.SliceMissing:
		return "creates the slice again, and " + recreates
	case diff.SliceReplaced:
		return "leaves the foreign slice, and places the session where there is room"
	case diff.BodyMissing, diff.BodyReplaced, diff.DisguiseBroken:
		return recreates
	case diff.BodyChanged:
		if d.Kind != "" {
			return "sets it back while the " + runtime.Body + " runs"
		}
		return recreates
	case diff.BodyStopped, diff.BodyUnstarted, diff.BodyRestarting:
		return "starts the " + runtime.Body + " again"
	case diff.MPSChanged:
		return "runs it again with its limits"
	case diff.BodyPaused:
		return "resumes the " + runtime.Body
	case diff.BodyStarted:
		return "stops the " + runtime.Body
	case diff.BodyAltered:
		return "restores it while the " + runtime.Body + " runs"
	case diff.MountReplaced:
		return "leaves the old one in the session until the " + runtime.Body + " starts again"
	case diff.LifetimeEnded:
		return "leaves the session up, since only cosplay expire ends it"
	case diff.ImageOffered:
		return "pulls the image, and " + recreates
	case diff.ForeignSlice, diff.BodyLimited, diff.ImageMoved, diff.DisguiseOutdated, diff.SecretsInEnv, diff.ClockLock:
	}
	return "leaves it as it is"
}
