package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/catalog"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/terminal"
)

// laterFlags are planned: cosplay refuses them by name, not as unknown.
var laterFlags = []string{"log-level"}

// group makes a command that only has subcommands show its help, and refuse unknown ones.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0], args[1:]...)
	}
	return cmd
}

// terraformCommands are commands of Terraform's that cosplay lacks, with what to use
// instead.
var terraformCommands = map[string]string{
	"get":       "there are no modules to get",
	"login":     "there is nowhere to log in; cosplay ssh logs into a session",
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

// gpuCosplayCommands are those of gpu-cosplay, cosplay's predecessor, with today's for an RTX 3090.
var gpuCosplayCommands = map[string]string{
	"up":   "cosplay run 3090 --detach; or cosplay apply, after cosplay init 3090 has written cosplay.hcl",
	"down": "cosplay destroy, for all sessions, or cosplay destroy --target SESSION, for one; of cosplay run --detach: cosplay destroy SESSION",
}

// twoDashes adds the second dash to long flags that are typed as in Terraform, -out=FILE.
// It leaves the arguments after -- alone.
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

// unknownCommand is the error of a command that does not exist, with what follows its name.
func unknownCommand(cmd *cobra.Command, name string, rest ...string) error {
	if instead, is := terraformCommands[name]; is {
		return fmt.Errorf("%q is not a command of %s: %s", name, cmd.CommandPath(), instead)
	}
	hint := cmd.CommandPath() + " --help lists the commands"
	if instead, is := gpuCosplayCommands[name]; is {
		for _, word := range rest {
			if target, err := catalog.Target(word); err == nil {
				instead = strings.ReplaceAll(instead, "3090", target.Key)
			}
			if !strings.HasPrefix(word, "-") {
				instead = strings.ReplaceAll(instead, "SESSION", terminal.ShellWord(word))
			}
		}
		return fmt.Errorf("%q is not a command of %s; did you mean %s?", name, cmd.CommandPath(), instead)
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", name, cmd.CommandPath(), hint)
}

// helpOn is the help command, with an error for an unknown topic.
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
	if len(args) == 0 {
		return nil
	}
	if _, err := catalog.Target(strings.Join(args, " ")); err == nil && (cmd.Name() == "plan" || cmd.Name() == "apply") {
		return fmt.Errorf("%s reads the GPUs of the sessions from cosplay.hcl. Fix: cosplay init %[2]s writes one; cosplay fit %[2]s shows what the GPU can present", cmd.CommandPath(), terminal.ShellWords(args))
	}
	hint := "see " + cmd.CommandPath() + " --help"
	if cmd.Flags().Lookup("target") != nil {
		hint = "did you mean " + cmd.CommandPath() + " --target " + terminal.ShellWord(args[0]) + "?"
	}
	return fmt.Errorf("%s takes no arguments, but got %q; %s", cmd.CommandPath(), args[0], hint)
}

// wants refuses a number of arguments that the command's usage does not name.
func wants(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		usage := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
		return fmt.Errorf("usage: %s (got %s); see %s --help", usage, prose.Count(len(args), "argument"), cmd.CommandPath())
	}
}

// flagMistake replaces cobra's error for a flag.
func flagMistake(cmd *cobra.Command, err error) error {
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		return unknownFlag(cmd, unknown)
	}
	if empty, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		return fmt.Errorf("--%s needs a value; see %s --help", empty.GetFlag().Name, cmd.CommandPath())
	}
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		flag := invalid.GetFlag()
		return fmt.Errorf("--%s wants %s, but got %q; see %s --help", flag.Name, cmp.Or(valueWords[flag.Value.Type()], "another value"), invalid.GetValue(), cmd.CommandPath())
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// valueWords say what a flag's value has to be, by the type of the flag.
var valueWords = map[string]string{
	"int":        "a whole number",
	"steps":      "a whole number of at least 1 step",
	"bool":       "true or false",
	"NAME=VALUE": "a name and a value, like --var image=cosplay:latest",
	"duration":   "a time like 30s or 5m",
}

// unknownFlag suggests the most similar flag.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	if words := cmd.Flags().Args(); cmd == cmd.Root() && len(words) > 0 {
		return unknownCommand(cmd, words[0], words[1:]...)
	}
	dashes, name := "--", e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		dashes, name = "-", short
	}
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
	return fmt.Errorf("unknown flag %s%s for %s; %s", dashes, name, cmd.CommandPath(), hint)
}

// nearestFlag is the flag with the least edit distance, at most a third of the name; ""
// if there is none.
func nearestFlag(flags *pflag.FlagSet, name string) string {
	best, least := "", len(name)/3+1
	flags.VisitAll(func(f *pflag.Flag) {
		if d := levenshtein.Distance(name, f.Name, nil); d < least && !f.Hidden {
			best, least = f.Name, d
		}
	})
	return best
}

// exitCodes begins the line of a help text that lists them. Commands whose exit codes are
// only 0 and 1 get a common line.
const exitCodes = "Exit codes:"

// helpful gives all commands a help text in the width of the screen, with the exit codes.
func (inv *invocation) helpful(root *cobra.Command) {
	style := inv.style(inv.Out)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", style.Width)))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		render.Prose(inv.Out, style, about(cmd))
		fmt.Fprintln(inv.Out)
		_ = cmd.Usage()
	})
}

// about is the description of a command with its exit codes.
func about(cmd *cobra.Command) string {
	text := cmp.Or(cmd.Long, cmd.Short+".")
	if !cmd.HasSubCommands() && !strings.Contains(text, exitCodes) {
		text += "\n\n" + exitCodes + " 0 fine; 1 error."
	}
	return text
}
