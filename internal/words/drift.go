package words

import (
	"cmp"
	"fmt"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// possibly begins a cause that is not known: cosplay reads the change, and not the command.
const possibly = "possible cause: "

// drifts has the words for each class of drift, where they do not depend on its values. fill replaces what is in
// braces.
var drifts = map[diff.Class]struct {
	thing  string // what has drifted; where it is a body and the drift has a kind, that is what has drifted
	cause  string // or what it means
	repair string // what an apply would do about it; without it, nothing
}{
	diff.GPUMissing: {"GPU", possibly + "removed, fallen off the bus, or hidden by the driver; dmesg shows it",
		"leaves what is on it until the GPU answers"},
	diff.GPUUnusable: {"GPU", "", "leaves what is on it until the GPU answers"},
	diff.HostRebooted: {"host", "the driver forgets slices, clock locks and power limits over a reboot",
		"sets the GPUs, creates the slices and starts the sessions again"},
	diff.HostUnreachable: {"host", "not read: {name}", "leaves what is on it until it can be read"},
	diff.EngineSilent:    {"container engine", "sessions were not read: {name}", "is refused until the engine answers"},
	diff.ClockLock:       {"", possibly + "nvidia-smi -rgc or -lgc, or a restart of the driver", ""},
	diff.SliceMissing:    {"slice", possibly + "nvidia-smi mig -dgi, or a reboot", "creates the slice again, and {recreates}"},
	diff.SliceReplaced: {"slice", "recreated outside cosplay; the new slice is foreign",
		"leaves the foreign slice, and places the session where there is room"},
	diff.BodyMissing:    {"{body}", possibly + "removed by hand", "{recreates}"},
	diff.BodyStopped:    {"{body}", possibly + "stopped by hand, or its program ended", "starts the {body} again"},
	diff.BodyChanged:    {"{body}", "edited or recreated outside cosplay", "{recreates}"},
	diff.BodyReplaced:   {"{body}", "removed and recreated outside cosplay", "{recreates}"},
	diff.BodyLimited:    {"{body}", possibly + "docker update; only a recreated container is without it: cosplay apply --replace", ""},
	diff.BodyUnstarted:  {"{body}", possibly + "the engine or a run ended before it was started", "starts the {body} again"},
	diff.BodyStarted:    {"{body}", possibly + "docker start; cosplay stop had stopped it", "stops the {body}"},
	diff.BodyPaused:     {"{body}", possibly + "docker pause", "resumes the {body}"},
	diff.BodyRestarting: {"{body}", "its program ends; cosplay logs shows why", "starts the {body} again"},
	diff.BodyAltered:    {"{body}", "changed outside cosplay", "restores it while the {body} runs"},
	diff.MountReplaced: {"{name}", possibly + "an editor that saves by renaming. The session has the old one until cosplay stop and cosplay start; " +
		"edit in place, or mount the folder", "leaves the old one in the session until the {body} starts again"},
	diff.ImageMoved: {"image {name}", "built or pulled again; each container keeps its own until it is replaced", ""},
	diff.ImageOffered: {"image {name}", "the registry has another image by this name; cosplay apply pulls it",
		"pulls the image, and {recreates}"},
	diff.ForeignSlice:     {"foreign slice", "cosplay leaves it alone", ""},
	diff.DisguiseBroken:   {"disguise", "files in the session's folder were changed outside cosplay", "{recreates}"},
	diff.DisguiseOutdated: {"{kind}", "a {body} keeps what it was started with: {stop}, then cosplay apply", ""},
	diff.GPUUnseen: {"GPU in the session", "{name}; " + possibly + "systemctl daemon-reload, a restart of the engine, or a lost GPU. " +
		"cosplay apply --replace recreates the {body}", "leaves it; with --replace it recreates the {body}"},
	diff.DeviceEarlier: {"device", "{name} got it before its last change; " + resource.RestartContainer, ""},
	diff.SecretsInEnv: {"sensitive values", "an older cosplay made the container: " +
		"docker inspect and docker commit show the values until cosplay apply --replace", ""},
	diff.LifetimeEnded: {"lifetime", "expired ({kind}); cosplay expire ends it, cosplay extend gives it more time",
		"leaves the session up, since only cosplay expire ends it"},
	diff.MPSChanged: {"", possibly + "nvidia-cuda-mps-control; programs that run keep the limits that they started with",
		"runs it again with its limits"},
	diff.ProjectRemoved: {"all sessions of the project", "removed by another user", "creates the sessions again"},
}

// fill replaces the words in braces by those of a drift.
func fill(text string, d diff.Drift) string {
	runtime := resource.RuntimeNamed(d.Runtime)
	recreates := "recreates the " + runtime.Body
	if runtime.Rewrites {
		recreates = "writes the " + runtime.Body + " again"
	}
	return strings.NewReplacer("{body}", runtime.Body, "{recreates}", recreates, "{stop}", runtime.StopCommand,
		"{name}", d.Name, "{kind}", Kind(d.Kind)).Replace(text)
}

// Drifted names what has drifted.
func Drifted(d diff.Drift) string {
	thing := drifts[d.Class].thing
	switch s, setting := d.Class.Setting(); {
	case setting:
		return s.Words()
	case thing == "{body}" && d.Kind != "":
		return Kind(d.Kind)
	case d.Class == diff.DisguiseBroken && d.Name != "":
		return d.Name
	case d.Class == diff.MPSChanged:
		return Field(diff.Field{Kind: diff.FieldMPS, Name: d.Name})
	}
	return cmp.Or(fill(thing, d), string(d.Class))
}

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
	if d.By.User != "" {
		at, _ := resource.ParseMoment(d.By.At)
		if d.Class == diff.BodyMissing {
			return fmt.Sprintf("%s%s, who destroyed its slice at %s", possibly, d.By.User, at)
		}
		return fmt.Sprintf("by %s at %s", d.By.User, at)
	}
	cause := drifts[d.Class].cause
	if s, setting := d.Class.Setting(); setting && cause == "" {
		forgetting := prose.Choose(resource.Bit(s.Mode()), "reboot", "restart of the driver")
		return possibly + "nvidia-smi " + s.SMI() + ", or a " + forgetting
	}
	return cmp.Or(causeOfValues(d), fill(cause, d))
}

// causeOfValues is the cause where it depends on the values of a drift, or on its kind; "" otherwise.
func causeOfValues(d diff.Drift) string {
	switch {
	case d.Class == diff.MPSChanged && (d.To == diff.IsMissing || d.To == diff.IsSilent):
		return possibly + "killed; programs that used it have failed"
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
	case d.Class == diff.BodyAltered:
		return altered[d.Kind]
	case d.Class == diff.DisguiseBroken && d.Name != "":
		return "cosplay verify says what to do"
	}
	return ""
}

var altered = map[diff.Kind]string{
	diff.FieldName:    possibly + "docker rename",
	diff.FieldNetwork: possibly + "docker network disconnect",
	diff.FieldPorts:   "the engine does not publish the port of the running container",
	diff.FieldSSHPort: "the engine does not publish the port of the running container",
}

// Repair says what an apply would do about a drift.
func Repair(d diff.Drift) string {
	if _, setting := d.Class.Setting(); setting {
		return "sets the " + Drifted(d) + " again"
	}
	if d.Class == diff.BodyChanged && d.Kind != "" {
		return fill("sets it back while the {body} runs", d)
	}
	return cmp.Or(fill(drifts[d.Class].repair, d), "leaves it as it is")
}
