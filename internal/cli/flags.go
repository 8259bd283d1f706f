package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"cosplay/internal/apply"
	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/resource"
)

// lockFlag is the flag of every command that takes the lock of the state.
func lockFlag(f *pflag.FlagSet, wait *time.Duration) {
	f.DurationVar(wait, "lock-timeout", 10*time.Second, "how long to wait for another cosplay on the same state")
}

// askFlag is the flag of every command that asks first.
func askFlag(f *pflag.FlagSet, autoApprove *bool) {
	f.BoolVar(autoApprove, "auto-approve", false, "do not ask")
}

// stepFlags are those of every command that runs steps.
type stepFlags struct {
	lockTimeout time.Duration
	parallelism steps
}

func (o *stepFlags) flags(f *pflag.FlagSet) {
	o.parallelism = defaultParallelism()
	f.Var(&o.parallelism, "parallelism", "`number` of steps at a time")
	lockFlag(f, &o.lockTimeout)
}

// steps is a number of steps at a time.
type steps int

func (s *steps) String() string { return strconv.Itoa(int(*s)) }

func (s *steps) Type() string { return "steps" }

func (s *steps) Set(typed string) error {
	n, err := strconv.Atoi(typed)
	if *s = steps(n); err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return err
}

// planFlags are the flags of plan, apply and destroy that scripts for Terraform give. checkPlanFlags refuses what would
// mean something else here.
func (inv *invocation) planFlags(f *pflag.FlagSet) {
	f.BoolVar(&inv.input, "input", true, "ask for values of variables and before changes; --input=false asks nothing")
	f.BoolVar(&inv.compact, "compact-warnings", false, "show warnings without their texts")
	for name := range refusedFlags {
		if f.Lookup(name) == nil { // plan has --refresh-only
			f.Bool(name, name != "refresh-only", "")
			_ = f.MarkHidden(name)
		}
	}
}

// refusedFlags are flags of Terraform that cosplay refuses when they have another value than their default.
var refusedFlags = map[string]string{
	"refresh":      "--refresh=false would plan from what the last apply left, and cosplay plans from what the hosts show now; leave it out",
	"lock":         "--lock=false would let two runs change the same state, so cosplay always locks; leave it out, --lock-timeout limits the wait",
	"refresh-only": "apply --refresh-only would accept drift into the state, and cosplay keeps the state as the last apply left it; cosplay plan --refresh-only reports drift, cosplay apply repairs it",
}

func checkPlanFlags(f *pflag.FlagSet) error {
	var refused error
	f.VisitAll(func(flag *pflag.Flag) {
		if why, is := refusedFlags[flag.Name]; is && flag.Hidden && flag.Value.String() != flag.DefValue {
			refused = errors.New(why)
		}
	})
	return refused
}

// defaultParallelism is limited: more containers at once take longer, because an engine
// is busy with network and cgroups then.
func defaultParallelism() steps { return steps(max(4, 2*runtime.NumCPU())) }

// usualOptions are those of an apply without flags for steps.
func usualOptions(progress func(apply.Event)) project.ApplyOptions {
	return project.ApplyOptions{Progress: progress, Parallelism: int(defaultParallelism())}
}

// abandonFlag permits releasing a GPU without its baseline.
func abandonFlag(f *pflag.FlagSet, abandon *bool) {
	f.BoolVar(abandon, "abandon-baseline", false, "release a GPU also where a setting cannot be restored; where cosplay set it, only root may")
}

// aimFlags narrow a plan to some sessions, or add sessions to replace.
func aimFlags(f *pflag.FlagSet, aim *project.Aim) {
	f.StringArrayVar(&aim.Target, "target", nil, "plan for this `session` alone, or all of this block; may be repeated")
	f.StringArrayVar(&aim.Exclude, "exclude", nil, "leave this `session` out, or all of this block; may be repeated")
	f.StringArrayVar(&aim.Replace, "replace", nil, "replace this `session`, with its slice; may be repeated")
}

// narrowed repeats the flags that leave sessions out, for suggested commands.
func narrowed(aim project.Aim) []string {
	return slices.Concat(repeated("--target", aim.Target), repeated("--exclude", aim.Exclude))
}

// aimed repeats all of them.
func aimed(aim project.Aim) []string {
	return append(narrowed(aim), repeated("--replace", aim.Replace)...)
}

func repeated(flag string, values []string) (flags []string) {
	for _, value := range values {
		flags = append(flags, flag, value)
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
	case aim.Goal == project.ReadOnly && len(aimed(aim)) > 0:
		return errors.New("--refresh-only looks at all that there is; leave --target, --exclude and --replace out")
	}
	return nil
}

// valueFlag is --var, or --var-file if file is true. Both add to the same list, in the
// order in which they were typed.
type valueFlag struct {
	all  *[]project.Given
	file bool
}

func (f valueFlag) String() string { return "" }

func (f valueFlag) Type() string {
	if f.file {
		return "FILE"
	}
	return "NAME=VALUE"
}

func (f valueFlag) Set(typed string) error {
	if f.file {
		*f.all = append(*f.all, project.Given{File: typed})
		return nil
	}
	name, value, found := strings.Cut(typed, "=")
	if !found || name == "" {
		return fmt.Errorf("%q has no =", name)
	}
	*f.all = append(*f.all, project.Given{Name: strings.TrimSpace(name), Value: value})
	return nil
}

// variableFlags repeats the flags that give values to variables, for suggested commands. It leaves out sensitive values:
// see secretFlags.
func (inv *invocation) variableFlags() []string {
	var flags []string
	for _, g := range inv.given {
		switch {
		case g.File != "":
			flags = append(flags, "--var-file", g.File)
		case !inv.isSecret(g.Name):
			flags = append(flags, "--var", g.Name+"="+g.Value)
		}
	}
	return flags
}

// secretFlags are the sensitive variables to which a flag gives a value, which a suggested command does not repeat.
func (inv *invocation) secretFlags() []string {
	var names []string
	for _, g := range inv.given {
		if g.File == "" && inv.isSecret(g.Name) && !slices.Contains(names, g.Name) {
			names = append(names, g.Name)
		}
	}
	return names
}

func (inv *invocation) isSecret(name string) bool {
	return slices.ContainsFunc(inv.variables, func(v config.Variable) bool { return v.Name == name && v.Sensitive })
}

// volumesOf reads --volume.
func volumesOf(typed []string) ([]resource.Volume, error) {
	var all []resource.Volume
	for _, one := range typed {
		parts := strings.Split(one, ":")
		if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
			return nil, fmt.Errorf("--volume %s: it is SOURCE:TARGET or SOURCE:TARGET:ro, like /data:/data:ro", one)
		}
		all = append(all, resource.Volume{Source: parts[0], Target: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"})
	}
	return all, nil
}

// variablesOf reads --env. Like docker run, it ignores a name without a value that is not
// set here.
func variablesOf(typed []string) map[string]string {
	env := map[string]string{}
	for _, one := range typed {
		name, value, given := strings.Cut(one, "=")
		if !given {
			if value, given = os.LookupEnv(name); !given {
				continue
			}
		}
		env[name] = value
	}
	return env
}
