package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosplay/internal/prose"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// laterCommands and laterFlags have their place in cosplay and are not there
// yet: they are refused by name instead of as unknown.
var (
	laterCommands = []string{"watch", "top", "cp", "host"}
	laterFlags    = []string{"log-level"}
)

// later is a command that is not there yet.
func later(name string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s is not yet part of cosplay; cosplay --help lists what is", cmd.CommandPath())
		},
	}
}

// group makes a command of a command that only has others below it: it shows
// its help, and refuses what is none of them.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// terraformCommands are those of Terraform's that go by another name, or that
// nothing needs.
var terraformCommands = map[string]string{
	"get":       "there are no modules to get",
	"login":     "there is nowhere to log in; cosplay ssh goes into a session",
	"logout":    "there is nowhere to log in",
	"modules":   "there are no modules",
	"providers": "there are no providers",
	"pull":      "cosplay show --json writes the state",
	"push":      "the state is a file; cosplay state rebuild rebuilds it if it is lost",
	"refresh":   "every command reads the machine again; cosplay plan --refresh-only reports what has changed",
	"taint":     "cosplay apply --replace SESSION recreates a session",
	"test":      "cosplay validate checks the configuration, cosplay verify the sessions",
	"untaint":   "no session is ever marked; cosplay apply --replace SESSION recreates one",
	"workspace": "give each its own state with --state FILE, and what differs with --var-file FILE",
}

// twoDashes gives long flags that were typed as in Terraform, -out=FILE, their
// second dash, up to the words of another program.
func twoDashes(root *cobra.Command, args []string) []string {
	known := map[string]bool{}
	var gather func(*cobra.Command)
	gather = func(cmd *cobra.Command) {
		note := func(f *pflag.Flag) { known[f.Name] = true }
		cmd.Flags().VisitAll(note)
		cmd.PersistentFlags().VisitAll(note)
		for _, sub := range cmd.Commands() {
			gather(sub)
		}
	}
	gather(root)
	args = slices.Clone(args)
	for i, typed := range args {
		if typed == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(typed, "-"), "=")
		if strings.HasPrefix(typed, "-") && len(name) > 1 && known[name] {
			args[i] = "-" + typed
		}
	}
	return args
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if instead, is := terraformCommands[name]; is {
		return fmt.Errorf("%q is not a command of %s: %s", name, cmd.CommandPath(), instead)
	}
	hint := cmd.CommandPath() + " --help lists what there is"
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", name, cmd.CommandPath(), hint)
}

// helpOn is the help command's work, with an error for a topic that is none.
func helpOn(help *cobra.Command, topic []string) error {
	cmd, rest, err := help.Root().Find(topic)
	if err != nil {
		return unknownCommand(help.Root(), topic[0])
	}
	if len(rest) > 0 {
		return unknownCommand(cmd, rest[0])
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Help()
}

// noArgs refuses arguments with a hint instead of cobra's "unknown command".
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// wants asks for as many arguments as the command's usage names.
func wants(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		usage := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
		return fmt.Errorf("it is %s, but got %s; see %s --help", usage, prose.Count(len(args), "argument"), cmd.CommandPath())
	}
}

// flagMistake says in our words what is wrong with a flag.
func flagMistake(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		return fmt.Errorf("--%s needs a value; see %s --help", empty.GetFlag().Name, cmd.CommandPath())
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		return fmt.Errorf("--%s wants %s, but got %q; see %s --help", flag.Name, valueWord(flag.Value.Type()), invalid.GetValue(), cmd.CommandPath())
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// valueWord is what a flag's value has to be.
func valueWord(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "NAME=VALUE":
		return "a name and a value, like --var image=cosplay:latest"
	case "duration":
		return "a time like 30s or 5m"
	}
	return "another value"
}

// unknownFlag looks for the flag that was meant: with two dashes, by fewest
// letters to change, or one that is yet to come.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	typed, name := "--"+e.GetSpecifiedName(), e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		typed, name = "-"+short, short
	}
	typed, _, _ = strings.Cut(typed, "=")
	name, _, _ = strings.Cut(name, "=")
	if slices.Contains(laterFlags, name) {
		return fmt.Errorf("--%s is not yet part of cosplay; %s --help lists what is", name, cmd.CommandPath())
	}
	hint := cmd.CommandPath() + " --help lists the flags"
	switch near := nearestFlag(cmd.Flags(), name); {
	case near != "":
		hint = "did you mean --" + near + "?"
	case strings.Contains(cmd.Use, "-- COMMAND"):
		hint = "a command with its own flags is written after --"
	}
	return fmt.Errorf("unknown flag %s for %s; %s", typed, cmd.CommandPath(), hint)
}

// nearestFlag finds the flag with the fewest letters to change, at most a third
// of them; "" if none is near.
func nearestFlag(flags *pflag.FlagSet, name string) string {
	best, least := "", len(name)/3+1
	flags.VisitAll(func(f *pflag.Flag) {
		if d := levenshtein.Distance(name, f.Name, nil); d < least && !f.Hidden {
			best, least = f.Name, d
		}
	})
	return best
}
