// Package words writes differences, their values and their reasons in English. Pure.
package words

import (
	"cmp"

	"cosplay/internal/diff"
	"cosplay/internal/resource"
)

// Field names what differs.
func Field(f diff.Field) string {
	switch {
	case f.Kind == diff.FieldMPS && f.Name != "":
		return Kind(f.Kind) + " of " + f.Name
	case f.Kind == diff.FieldEnv:
		return "env." + f.Name
	}
	return Kind(f.Kind)
}

// Kind names a kind of difference: an attribute by its name in the language.
func Kind(k diff.Kind) string {
	if name, has := kindNames[k]; has {
		return name
	}
	if s, is := resource.SettingNamed(string(k)); is {
		return s.Words()
	}
	return string(k)
}

var kindNames = map[diff.Kind]string{
	diff.FieldTargetFigures: "target's figures",
	diff.FieldGPU:           "GPU",
	diff.FieldWholeGPU:      "GPU",
	diff.FieldMPS:           "MPS daemon",
	diff.FieldFitClock:      "clock of the fit",
	diff.FieldSliceUUID:     "MIG UUID",
}

// Drifted names what has drifted.
func Drifted(d diff.Drift) string {
	switch d.Class {
	case diff.GPUMissing, diff.GPUUnusable:
		return "GPU"
	case diff.HostRebooted:
		return "host"
	case diff.GPUUnseen:
		return "GPU in the session"
	case diff.EngineSilent:
		return "container engine"
	case diff.SliceMissing, diff.SliceReplaced:
		return "slice"
	case diff.ForeignSlice:
		return "foreign slice"
	case diff.BodyMissing, diff.BodyStopped, diff.BodyReplaced, diff.BodyChanged, diff.BodyLimited,
		diff.BodyUnstarted, diff.BodyStarted, diff.BodyPaused, diff.BodyRestarting, diff.BodyAltered:
		if d.Kind != "" {
			return Kind(d.Kind)
		}
		return resource.RuntimeNamed(d.Runtime).Body
	case diff.MountReplaced:
		return d.Name
	case diff.DisguiseBroken:
		return cmp.Or(d.Name, "disguise")
	case diff.DisguiseOutdated:
		return Kind(d.Kind)
	case diff.SecretsInEnv:
		return "sensitive values"
	case diff.ImageMoved, diff.ImageOffered:
		return "image " + d.Name
	case diff.LifetimeEnded:
		return "lifetime"
	case diff.ProjectRemoved:
		return "all sessions of the project"
	case diff.MPSChanged:
		return Field(diff.Field{Kind: diff.FieldMPS, Name: d.Name})
	case diff.ClockLock: // a setting
	}
	if s, is := d.Class.Setting(); is {
		return s.Words()
	}
	return string(d.Class)
}
