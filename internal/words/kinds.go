// Package words writes differences, their values and their reasons in English. Pure.
package words

import (
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
	diff.FieldProfile:       "slice",
	diff.FieldWholeGPU:      "GPU",
	diff.FieldMPS:           "MPS daemon",
	diff.FieldFitClock:      "clock of the fit",
	diff.FieldSliceUUID:     "MIG UUID",
}
