package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/render"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

func outputCommand(inv *invocation) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Show the outputs of the last apply",
		Long: `Show the values of output blocks that the last apply wrote into the state; or one of them. The state does not have sensitive values: without a name they are not shown, with their name cosplay evaluates them again.

With a name, --json writes the value alone, and --raw a text as it is, for scripts.`,
		Args: wants(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if raw && len(args) == 0 {
				return errors.New("--raw is for one value; name the output")
			}
			if raw && inv.json {
				return errors.New("--json and --raw are two forms of the same; leave one of them out")
			}
			return inv.runOutput(strings.Join(args, ""), raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the text as it is, without quotes or a line end")
	return cmd
}

func (inv *invocation) runOutput(name string, raw bool) error {
	p, err := inv.open(forState)
	if err != nil {
		return err
	}
	prior, _, err := p.Remembered()
	if err != nil {
		return err
	}
	all, err := remembered(prior.Outputs)
	if err != nil {
		return err
	}
	if name == "" {
		return inv.printOutputs(all)
	}
	one, err := outputNamed(all, name)
	if err == nil && one.Sensitive {
		one, err = inv.revealed(prior, one.Name)
	}
	switch {
	case err != nil:
		return err
	case raw:
		text, err := render.RawText(one.Value)
		if err != nil {
			return fmt.Errorf("output %s is %w; --json writes any value", one.Name, err)
		}
		_, _ = io.WriteString(terminal.Raw(inv.Out), text)
		return nil
	}
	return inv.printOutput(inv.Out, one)
}

func (inv *invocation) printOutputs(all []config.Output) error {
	if len(all) == 0 && !inv.json {
		fmt.Fprintln(inv.Err, "The state has no outputs. An output block and cosplay apply make one.")
		return nil
	}
	return inv.print(render.OutputsView(all))
}

// remembered reads outputs as the state has them: sensitive ones without a value.
func remembered(noted []resource.Output) ([]config.Output, error) {
	all := make([]config.Output, 0, len(noted))
	for _, o := range noted {
		one := config.Output{Name: o.Name, Sensitive: o.Sensitive, Value: cty.DynamicVal}
		if !o.Sensitive {
			var err error
			if one.Value, err = ctyjson.Unmarshal(o.Value, cty.DynamicPseudoType); err != nil {
				return nil, fmt.Errorf("output %s in the state cannot be read: %w; cosplay apply writes it again", o.Name, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func outputNamed(all []config.Output, name string) (config.Output, error) {
	if len(all) == 0 {
		return config.Output{}, fmt.Errorf("the state has no output %q, nor any other; an output block and cosplay apply make one", name)
	}
	if i := slices.IndexFunc(all, func(o config.Output) bool { return o.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := prose.Each(all, func(o config.Output) string { return o.Name })
	return config.Output{}, fmt.Errorf("the state has no output %q; it has %s", name, strings.Join(names, ", "))
}

// revealed evaluates a sensitive output that the user has named. Its variables need values.
func (inv *invocation) revealed(prior resource.Prior, name string) (config.Output, error) {
	p, err := inv.open(project.Options{MayBeEmpty: true})
	if err != nil {
		return config.Output{}, err
	}
	now, diags := p.Outputs(prior, resource.Live{})
	j := slices.IndexFunc(now, func(o config.Output) bool { return o.Name == name })
	if diags.HasErrors() || j < 0 || !now[j].Value.IsWhollyKnown() {
		return config.Output{}, fmt.Errorf("output %s is sensitive, so the state does not have its value, and the configuration does not have it any more; run cosplay apply", name)
	}
	now[j].Sensitive = false
	return now[j], nil
}

func consoleCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "console",
		Short: "Evaluate expressions, with the values of the project",
		Long: `Read expressions and print their values. An expression ends with its line, or where its brackets are closed. They can use the project's variables and locals, all functions, cosplay.catalog, and session.NAME as in output blocks. On a terminal, exit or Ctrl-D ends the console. From a pipe, it stops at the first mistake. A variable may have no value: expressions that depend on it report that.

  echo 'cosplay.catalog["3090"].vram_mib' | cosplay console

Exit codes: 0 fine; 1 error.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inv.file == "-" {
				return errors.New("standard input is for the expressions, so it cannot be the configuration as well; name a file")
			}
			p, err := inv.open(forState)
			if err != nil {
				return err
			}
			eval, err := p.Console(cmd.Context())
			if err != nil {
				return err
			}
			p.Machine.Rest()
			in, isFile := inv.In.(*os.File)
			if isFile && term.IsTerminal(int(in.Fd())) && !inv.json {
				return inv.converse(in, eval)
			}
			lines := bufio.NewScanner(inv.In)
			lines.Buffer(nil, 1<<20)
			typed := ""
			for lines.Scan() {
				if typed += lines.Text(); config.Unfinished(typed) {
					typed += "\n"
					continue
				}
				if !inv.answer(inv.Out, inv.Err, eval, typed) {
					return exit(exitError)
				}
				typed = ""
			}
			return cmp.Or(lines.Err(), exitIf(!inv.answer(inv.Out, inv.Err, eval, typed), exitError))
		},
	}
}

// converse reads expressions from a terminal, with a history; mistakes do not end it.
func (inv *invocation) converse(in *os.File, eval project.Eval) error {
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(in.Fd()), was) }()
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, inv.Out}, "> ")
	typed := ""
	for {
		line, err := screen.ReadLine()
		if errors.Is(err, io.EOF) || typed == "" && strings.TrimSpace(line) == "exit" {
			return nil
		}
		if err != nil {
			return err
		}
		if typed += line; config.Unfinished(typed) {
			typed += "\n"
			screen.SetPrompt(": ")
			continue
		}
		inv.answer(screen, screen, eval, typed)
		typed = ""
		screen.SetPrompt("> ")
	}
}

// answer evaluates an expression. If it returns false, it has printed the mistakes.
func (inv *invocation) answer(out, errs io.Writer, eval project.Eval, typed string) bool {
	if strings.TrimSpace(typed) == "" {
		return true
	}
	v, file, diags := eval(typed)
	if diags.HasErrors() {
		render.Diagnostics(errs, inv.style(inv.Err), diags, map[string]*hcl.File{config.ConsoleName: file})
		return false
	}
	if inv.json {
		v = config.Output{Value: v.Redacted}
	}
	return inv.printOutput(out, v) == nil
}

// printOutput prints one value alone.
func (inv *invocation) printOutput(out io.Writer, one config.Output) error {
	if inv.json {
		return render.OutputJSON(out, one)
	}
	_, err := fmt.Fprintln(out, render.OutputText(one))
	return err
}
