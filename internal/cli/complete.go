package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/sim"
	"cosplay/internal/watch"
)

// source lists what a shell can complete a word to. It reads the configuration and the state, and no host: a user waits
// for it after each tab.
type source func(inv *invocation, cmd *cobra.Command, typed string) []cobra.Completion

// argumentSources has the sources of arguments, by their words in the usage of a command.
var argumentSources = map[string]source{
	"SESSION": sessionNames, "ADDRESS": addresses, "FROM": addresses, "GPU": targetNames, "HOST": hostNames, "NAME": outputNames, "DETACHED": detachedNames, "KEY": simKeys,
}

// flagSources has the sources of flags, by their names or by the word for their value.
var flagSources = map[string]source{
	"session": plannedNames, "host": hostNames, "on": catalogHosts, "var": variableNames,
	"repair": func(*invocation, *cobra.Command, string) []cobra.Completion { return watch.RepairWords() },
	"prefer": oneOf("fp32", "bandwidth", "balanced"), "sharing": oneOf("auto", "mig", "compute-instance", "exclusive", "time-slice", "mps"),
	"compute": oneOf(config.Computes()...), "sort": oneOf(topOrders()...), "open": oneOf(openers...),
	"runtime": func(*invocation, *cobra.Command, string) []cobra.Completion {
		return append(resource.RunRuntimes(), config.RuntimeAuto)
	},
}

// files are the words for arguments and values that are files, with the endings of their names.
var files = map[string][]string{"PLANFILE": nil, "file": nil, "path": nil, "PATH": {"hcl", "hclvars"}, "FILE": {"hclvars", "json"}, "COMMAND": nil}

// completes gives all commands their completions, which follow from the words in their usage.
func (inv *invocation) completes(cmd *cobra.Command) {
	if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = inv.completeArgument
	}
	each := func(f *pflag.Flag) {
		word, _ := pflag.UnquoteUsage(f)
		if done, _ := cmd.GetFlagCompletionFunc(f.Name); done == nil && f.Value.Type() != "bool" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, inv.completeFlag(f.Name, word))
		}
	}
	cmd.Flags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	for _, sub := range cmd.Commands() {
		inv.completes(sub)
	}
}

func (inv *invocation) completeFlag(name, word string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if word == "folder" {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		for _, key := range []string{name, word} {
			if list := flagSources[key]; list != nil {
				done := cobra.ShellCompDirectiveNoFileComp
				if word == "NAME=VALUE" { // the cursor stays behind NAME=
					done |= cobra.ShellCompDirectiveNoSpace
				}
				return starting(typed, list(inv, cmd, typed)), done
			}
		}
		return fileNames(word)
	}
}

func (inv *invocation) completeArgument(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	word := wordAt(cmd, len(args))
	if cmd.ArgsLenAtDash() < len(args) { // cobra adds another -- at the end
		word = "COMMAND"
	}
	list := argumentSources[word]
	if list == nil {
		return fileNames(word)
	}
	all := list(inv, cmd, typed)
	all = slices.DeleteFunc(all, func(c cobra.Completion) bool {
		name, _, _ := strings.Cut(c, "\t")
		return slices.Contains(args, name)
	})
	return starting(typed, all), cobra.ShellCompDirectiveNoFileComp
}

// wordAt returns the word in a command's usage for an argument; "" if it takes none there.
func wordAt(cmd *cobra.Command, at int) string {
	var all []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.Trim(word, "[]") == "--" {
			continue
		}
		bare := strings.Trim(word, "[].")
		all = append(all, bare)
		if strings.HasSuffix(word, "...") || strings.HasSuffix(word, "...]") {
			all = append(all, slices.Repeat([]string{bare}, max(0, at+1-len(all)))...)
		}
	}
	if at >= len(all) {
		return ""
	}
	return all[at]
}

// fileNames leaves the names of files to the shell, where the word stands for a file.
func fileNames(word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch endings, is := files[word]; {
	case !is:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case endings == nil:
		return nil, cobra.ShellCompDirectiveDefault
	default:
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

func starting(typed string, all []cobra.Completion) []cobra.Completion {
	return slices.DeleteFunc(all, func(c cobra.Completion) bool { return !strings.HasPrefix(c, typed) })
}

func oneOf(all ...cobra.Completion) source {
	return func(*invocation, *cobra.Command, string) []cobra.Completion { return slices.Clone(all) }
}

// glance reads the configuration and the state as far as they can be read. Mistakes are for the command to report.
func (inv *invocation) glance() (intent *config.Intent, prior resource.Prior) {
	intent = &config.Intent{}
	if inv.chdir != "" && os.Chdir(inv.chdir) != nil || inv.file == "-" {
		return intent, prior
	}
	o := inv.options(project.Options{MayBeEmpty: true, ReadOnly: true})
	p, _, _, _ := project.Open(o)
	if p == nil {
		o.Given = nil
		p, _, _ = project.OpenForRecovery(o)
	}
	if p == nil {
		return intent, prior
	}
	inv.projects = append(inv.projects, p)
	prior, _, _ = p.Remembered()
	return p.Intent, prior
}

// sessionNames are the sessions that exist.
func sessionNames(inv *invocation, _ *cobra.Command, typed string) []cobra.Completion {
	made, _ := sessionsOf(inv.glance())
	return append(spelled(made, typed), detachedNames(inv, nil, typed)...)
}

// detachedNames are the sessions of cosplay run --detach, where their names are enough.
func detachedNames(inv *invocation, _ *cobra.Command, _ string) []cobra.Completion {
	if !inv.bare() {
		return nil
	}
	return project.DetachedNames()
}

// addresses are what a command on the state can name; for import, the sessions that do not exist yet.
func addresses(inv *invocation, cmd *cobra.Command, typed string) []cobra.Completion {
	intent, prior := inv.glance()
	made, unmade := sessionsOf(intent, prior)
	if cmd.Name() == "import" {
		return spelled(unmade, typed)
	}
	all := append(spelled(made, typed), blocks(made, typed)...)
	for _, g := range prior.GPUs {
		all = append(all, cobra.CompletionWithDesc(g.UUID, "GPU of "+g.Host))
	}
	return all
}

// plannedNames are the sessions and blocks of the configuration and of the state.
func plannedNames(inv *invocation, _ *cobra.Command, typed string) []cobra.Completion {
	intent, prior := inv.glance()
	all := slices.Concat(sessionsOf(intent, prior))
	return append(spelled(all, typed), blocks(all, typed)...)
}

// sessionsOf are the sessions of the state, and those of the configuration that are not in it.
func sessionsOf(intent *config.Intent, prior resource.Prior) (made, unmade []resource.Session) {
	made = prose.Each(prior.Sessions, func(s resource.PriorSession) resource.Session { return s.Session })
	for _, s := range intent.Sessions {
		if _, exists := prior.Session(s.Address); !exists {
			unmade = append(unmade, resource.Session{Address: s.Address, Target: s.Target})
		}
	}
	return made, unmade
}

// spelled are addresses in the form that the user has begun to type.
func spelled(sessions []resource.Session, typed string) (all []cobra.Completion) {
	for _, s := range sessions {
		name := s.Address.Short()
		if strings.HasPrefix(typed, "session.") {
			name = s.Address.String()
		}
		all = append(all, cobra.CompletionWithDesc(name, s.Target.Name))
	}
	return all
}

// blocks are the names of the blocks with several sessions.
func blocks(sessions []resource.Session, typed string) (all []cobra.Completion) {
	for _, s := range sessions {
		name := s.Address.Name
		if strings.HasPrefix(typed, "session.") {
			name = "session." + name
		}
		if s.Address.Key.Kind != resource.Single {
			all = append(all, cobra.CompletionWithDesc(name, "all sessions of the block"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// targetNames are the keys of the catalog, and what a user has begun to type of one without its series: 2060. Of the
// arguments that are called GPU, only those of sim are not targets.
func targetNames(_ *invocation, cmd *cobra.Command, typed string) (all []cobra.Completion) {
	if cmd.Parent().Name() == "sim" {
		return nil
	}
	for _, t := range catalog.Targets() {
		name := t.Key
		if _, short, _ := strings.Cut(t.Key, "-"); typed != "" && strings.HasPrefix(short, typed) {
			if same, err := catalog.Target(short); err == nil && same.Key == t.Key {
				name = short
			}
		}
		all = append(all, cobra.CompletionWithDesc(name, t.Name))
	}
	return all
}

func catalogHosts(*invocation, *cobra.Command, string) []cobra.Completion {
	return prose.Each(catalog.Hosts(), func(h catalog.Host) string { return cobra.CompletionWithDesc(h.Key, h.Model.Name) })
}

func hostNames(inv *invocation, _ *cobra.Command, _ string) []cobra.Completion {
	intent, _ := inv.glance()
	return prose.Each(intent.Hosts, func(h config.Host) string { return cobra.CompletionWithDesc(h.Name, h.Simulate) })
}

func outputNames(inv *invocation, _ *cobra.Command, _ string) []cobra.Completion {
	_, prior := inv.glance()
	return prose.Each(prior.Outputs, func(o resource.Output) string { return o.Name })
}

func variableNames(inv *invocation, _ *cobra.Command, _ string) []cobra.Completion {
	intent, _ := inv.glance()
	return prose.Each(intent.Variables, func(v config.Variable) string { return v.Name + "=" })
}

func simKeys(*invocation, *cobra.Command, string) []cobra.Completion {
	return prose.Each(sim.Keys(), func(key string) string { return strings.Fields(key)[0] })
}
