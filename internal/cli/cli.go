// Package cli is the command line: each command takes flags and streams, and returns an
// exit code. It decides nothing else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/interrupt"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/recovery"
	"cosplay/internal/render"
	"cosplay/internal/terminal"
)

// Exit codes.
const (
	exitFine        = 0
	exitError       = 1
	exitChanges     = 2   // only with --detailed-exitcode, and from drift
	exitInterrupted = 130 // what shells say of a program that Ctrl-C ended
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// invocation is one run of the command line: its streams and global flags.
type invocation struct {
	Streams
	args               []string    // as they were typed
	stdout, stderr     io.Writer   // as they were given, for programs that write to them themselves
	unread             func() bool // reports whether the reader of standard output has closed it
	chdir, file, state string
	called             string            // the folder in which cosplay was called; "" with --chdir
	given              []project.Given   // values of variables
	variables          []config.Variable // of the project, once it is open
	asks               bool              // people at a terminal for values of variables
	noColor, json      bool
	input, compact     bool // of plan, apply and destroy: questions are allowed; warnings without their texts
	verbose            bool
	projects           []*project.Project // that are open
}

// opened is a project with the files of its configuration and the warnings about them.
type opened struct {
	*project.Project
	files    map[string]*hcl.File
	warnings hcl.Diagnostics
}

// output is standard output. It keeps the first error of a write, which the screens
// do not check. A pipe whose reader has closed it, and a terminal that has hung up, are no
// error for a command that outlives them.
type output struct {
	io.Writer
	terminal bool
	err      error
	unread   atomic.Bool
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) || o.terminal && errors.Is(err, syscall.EIO) {
		o.unread.Store(true)
		return len(p), nil
	}
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// lock locks the project of a command that changes something. A closed output does not end
// such a command, which would leave the change half done.
func (inv *invocation) lock(ctx context.Context, p *project.Project, command string, wait time.Duration) error {
	interrupt.OutliveReaders()
	return p.Lock(ctx, command, wait)
}

// Fd is the file descriptor, by which a terminal is recognized.
func (o *output) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// exit ends a command with a code; what it means was shown before.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitIf ends a command with a code on a condition that its output has shown.
func exitIf(condition bool, code int) error {
	if condition {
		return exit(code)
	}
	return nil
}

// Main runs one command line and returns the exit code.
func Main(args []string, streams Streams) int {
	out := &output{Writer: streams.Out}
	out.terminal = term.IsTerminal(int(out.Fd()))
	inv := &invocation{args: args, stdout: streams.Out, stderr: streams.Err, unread: out.unread.Load, input: true}
	inv.Streams = Streams{In: streams.In, Out: terminal.NewWriter(out), Err: terminal.NewWriter(streams.Err)}
	root := inv.root()
	root.SetArgs(twoDashes(root, args))
	root.SetIn(inv.In)
	root.SetOut(inv.Out)
	root.SetErr(inv.Err)
	err := root.ExecuteContext(context.Background())
	for _, p := range inv.projects {
		_ = p.Close()
	}
	switch code, shown := errors.AsType[exit](err); {
	case out.err != nil && (err == nil || shown):
		err = fmt.Errorf("the answer could not be written: %w", out.err)
	case shown:
		return int(code)
	case err == nil:
		return exitFine
	}
	render.Error(inv.Err, inv.style(inv.Err), err)
	return exitError
}

// Command returns the command line, for its man pages and completions.
func Command() *cobra.Command { return (&invocation{}).root() }

// commandGroups are the commands as the help lists them.
var commandGroups = []struct {
	title    string
	commands []func(*invocation) *cobra.Command
}{
	{"Core commands:", []func(*invocation) *cobra.Command{
		initCommand, fmtCommand, validateCommand, planCommand, applyCommand, destroyCommand, driftCommand, watchCommand, manifestsCommand}},
	{"Inspect:", []func(*invocation) *cobra.Command{
		statusCommand, psCommand, topCommand, reportCommand, mapCommand, historyCommand, showCommand, outputCommand, consoleCommand, graphCommand,
		stateCommand, importCommand}},
	{"Sessions:", []func(*invocation) *cobra.Command{
		runCommand, fitsCommand, sshCommand, execCommand, cpCommand, logsCommand, devicesCommand, stopCommand, startCommand, extendCommand, expireCommand,
		sshConfigCommand, devCommand, verifyCommand}},
	{"Catalog:", []func(*invocation) *cobra.Command{lsCommand, infoCommand, fitCommand}},
	{"Other commands:", []func(*invocation) *cobra.Command{
		doctorCommand, buildCommand, schemaCommand, forceUnlockCommand, resetCommand, hostCommand, simCommand, versionCommand}},
}

func (inv *invocation) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cosplay",
		Short: "Make one large NVIDIA GPU act as several smaller ones",
		Long: `cosplay makes one large NVIDIA GPU act as several smaller ones, described in a file that you keep in git.

  cosplay init 2060       write a starter cosplay.hcl
  cosplay plan            show what apply would change
  cosplay apply           change it
  cosplay drift           report what was changed outside cosplay (exit code 2)
  cosplay destroy         remove everything and restore the GPUs`,
		Version:           Version,
		PersistentPreRunE: inv.changeFolder,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetVersionTemplate("cosplay {{.Version}}\n")
	root.SetFlagErrorFunc(flagMistake)
	inv.globalFlags(root.PersistentFlags())
	for _, group := range commandGroups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			c := command(inv)
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	group(root)
	root.AddCommand(agentCommand(), enterCommand(), guardCommand())
	inv.helpful(root)
	inv.completes(root)
	root.SetHelpCommandGroupID("Other commands:")
	root.SetCompletionCommandGroupID("Other commands:")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpOn
		case "completion":
			group(c).Short = "Write the completion for bash, zsh, fish or powershell"
		}
	}
	return root
}

// changeFolder obeys --chdir, and goes to the folder of a detached session that is named.
func (inv *invocation) changeFolder(cmd *cobra.Command, args []string) error {
	if inv.chdir == "" {
		inv.called, _ = os.Getwd()
		folder, err := inv.detachedFolder(cmd, args)
		if folder == "" {
			return err
		}
		inv.chdir = folder
	}
	err := os.Chdir(inv.chdir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--chdir: there is no folder %s", inv.chdir)
	case err != nil:
		return fmt.Errorf("--chdir: %w", err)
	}
	return nil
}

func (inv *invocation) globalFlags(flags *pflag.FlagSet) {
	flags.StringVar(&inv.chdir, "chdir", "", "run in this `folder` instead of the current one")
	flags.StringVar(&inv.file, "file", "", "read this configuration `file` alone; - is standard input")
	flags.StringVar(&inv.state, "state", "", "`path` of the state file (default cosplay.state.json in the folder)")
	flags.Var(valueFlag{all: &inv.given}, "var", "give a variable a value; any number of times")
	flags.Var(valueFlag{&inv.given, true}, "var-file", "read values of variables from a file; any number of times")
	flags.BoolVar(&inv.noColor, "no-color", false, "no colour (also: NO_COLOR; off a terminal it is off)")
	flags.BoolVarP(&inv.verbose, "verbose", "v", false, "show every session and GPU, also those like the one before")
	flags.BoolVar(&inv.json, "json", false, "write JSON, with a format_version")
}

func (inv *invocation) style(w io.Writer) render.Style {
	s := render.Detect(w, inv.noColor)
	s.Verbose, s.Compact, s.Secrets = inv.verbose, inv.compact, inv.secretFlags()
	dir, _ := os.Getwd() // a folder that was removed has no name
	return s.Naming(append(slices.Clone(inv.args), dir))
}

// flags repeats the global flags that select the project, for suggested commands.
func (inv *invocation) flags() []string {
	if inv.chdir == "" {
		return inv.flagsInside()
	}
	return append([]string{"--chdir", inv.chdir}, inv.flagsInside()...)
}

// flagsInside are those for a command in the folder of --chdir.
func (inv *invocation) flagsInside() []string {
	var flags []string
	for _, f := range []struct{ name, value string }{{"--file", inv.file}, {"--state", inv.state}} {
		if f.value != "" {
			flags = append(flags, f.name, f.value)
		}
	}
	return append(flags, inv.variableFlags()...)
}

var (
	// forHosts opens a project for a command that does not need the sessions of the
	// configuration: its variables may have no values.
	forHosts = project.Options{HostsOnly: true}
	// forState opens it for its state alone: a folder without configuration may still have one.
	forState = project.Options{HostsOnly: true, MayBeEmpty: true}
)

// options are those of a project, with the global flags.
func (inv *invocation) options(o project.Options) project.Options {
	o.File, o.StatePath, o.Version, o.Given, o.Find = inv.file, inv.state, Version, inv.given, recovery.FindImport
	var once sync.Once // steps run at the same time
	o.Unaudited = func(err error) {
		once.Do(func() { fmt.Fprintln(inv.Err, prose.Stop("Warning: "+err.Error())) })
	}
	return o
}

// open reads the project. It prints all mistakes of the configuration, which end the
// command. Main closes the project.
func (inv *invocation) open(o project.Options) (*opened, error) {
	p, files, diags, err := project.Open(inv.options(o))
	if err != nil {
		return nil, err
	}
	if missing := missingAlone(diags); len(missing) > 0 && inv.asks && inv.input && inv.mayAsk(true, "") == nil {
		if err := inv.askFor(missing); err != nil {
			return nil, err
		}
		return inv.open(o)
	}
	if diags.HasErrors() {
		return nil, inv.refuse(diags, files)
	}
	p.Waiting, inv.variables, inv.projects = inv.waits, p.Intent.Variables, append(inv.projects, p)
	return &opened{p, files, diags}, nil
}

// print prints a view as JSON with --json, otherwise as text.
func (inv *invocation) print(view render.View) error {
	if inv.json {
		return render.JSON(inv.Out, view)
	}
	render.Show(inv.Out, inv.style(inv.Out), view)
	return nil
}

// refuse prints diagnostics of which one is an error, and ends the command.
func (inv *invocation) refuse(diags hcl.Diagnostics, files map[string]*hcl.File) error {
	if inv.json {
		if err := render.DiagnosticsJSON(inv.Out, diags, files); err != nil {
			return err
		}
	} else {
		render.Diagnostics(inv.Err, inv.style(inv.Err), diags, files)
	}
	return exit(exitError)
}

// refused shows the diagnostics of an error that has them.
func (inv *invocation) refused(err error, files map[string]*hcl.File) error {
	if refused, is := errors.AsType[*project.Refused](err); is {
		return inv.refuse(refused.Diagnostics, files)
	}
	return err
}

// configName is what the configuration is called in a sentence.
func (inv *invocation) configName(files map[string]*hcl.File) string {
	if inv.file == "-" {
		return "standard input"
	}
	if len(files) == 1 {
		for name := range files {
			return name
		}
	}
	return "the configuration"
}

// Stdio is the process's own streams.
func Stdio() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }
