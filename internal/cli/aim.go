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
	f.StringArrayVar(&aim.Replace, "replace", nil, "make this `session` anew, slice and all; may be repeated")
}

// checkAim refuses flags that contradict each other.
func checkAim(aim project.Aim) error {
	switch {
	case len(aim.Target) > 0 && len(aim.Exclude) > 0:
		return errors.New("--target names all that is planned for, so there is nothing for --exclude to leave out; leave one of them out")
	case aim.Goal == project.NothingLeft && len(aim.Replace) > 0:
		return errors.New("--replace makes sessions anew, and destroy removes them; leave one of them out")
	case aim.Goal == project.OnlyLook && len(aim.Target)+len(aim.Exclude)+len(aim.Replace) > 0:
		return errors.New("--refresh-only looks at all that there is; leave --target, --exclude and --replace out")
	}
	return nil
}
