package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"cosplay/internal/project"
)

// aimFlags are the flags by which a plan is about less than all, or does more
// than it has to.
func aimFlags(f *pflag.FlagSet, aim *project.Aim) {
	f.StringArrayVar(&aim.Target, "target", nil, "plan for this `session` alone, or all of this block; may be repeated")
	f.StringArrayVar(&aim.Exclude, "exclude", nil, "leave this `session` out, or all of this block; may be repeated")
	f.StringArrayVar(&aim.Replace, "replace", nil, "replace this `session`, with its slice; may be repeated")
}

// abandonFlag gives up what a GPU was like before cosplay.
func abandonFlag(f *pflag.FlagSet, abandon *bool) {
	f.BoolVar(abandon, "abandon-baseline", false, "release a GPU also where a setting cannot be restored; where cosplay set it, only root may")
}

// narrowed repeats the flags that leave sessions out, for the commands that are
// suggested.
func narrowed(aim project.Aim) []string {
	var flags []string
	for _, one := range aim.Target {
		flags = append(flags, "--target", one)
	}
	for _, one := range aim.Exclude {
		flags = append(flags, "--exclude", one)
	}
	return flags
}

// aimed repeats all of them.
func aimed(aim project.Aim) []string {
	flags := narrowed(aim)
	for _, one := range aim.Replace {
		flags = append(flags, "--replace", one)
	}
	return flags
}

// checkAim refuses flags that contradict each other.
func checkAim(aim project.Aim) error {
	switch {
	case len(aim.Target) > 0 && len(aim.Exclude) > 0:
		return errors.New("--target names all that is planned for, so there is nothing for --exclude to leave out; leave one of them out")
	case aim.Goal == project.NothingLeft && len(aim.Replace) > 0:
		return errors.New("--replace recreates sessions, and destroy removes them; leave one of them out")
	case aim.Goal == project.ReadOnly && len(aim.Target)+len(aim.Exclude)+len(aim.Replace) > 0:
		return errors.New("--refresh-only looks at all that there is; leave --target, --exclude and --replace out")
	}
	return nil
}
