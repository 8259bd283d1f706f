package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/render"
)

func (inv *invocation) console() *cobra.Command {
	return &cobra.Command{
		Use:   "console",
		Short: "Evaluate expressions, with the values of the project",
		Long: `Read expressions, one a line, and print their values. They can use the project's variables and locals, all functions, cosplay.catalog, and session.NAME as in output blocks. On a terminal, exit or Ctrl-D ends the console. From a pipe, it stops at the first mistake. A variable may have no value: expressions that depend on it report that.

  echo 'cosplay.catalog["3090"].vram_mib' | cosplay console

Exit codes: 0 fine; 1 error.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return inv.runConsole(cmd.Context()) },
	}
}

func (inv *invocation) runConsole(ctx context.Context) error {
	if inv.file == "-" {
		return errors.New("standard input is for the expressions, so it cannot be the configuration as well; name a file")
	}
	p, err := inv.openState()
	if err != nil {
		return err
	}
	eval, err := p.Console(ctx)
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
	for lines.Scan() {
		if !inv.answer(inv.Out, inv.Err, eval, lines.Text()) {
			return exit(exitError)
		}
	}
	return lines.Err()
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
	for {
		line, err := screen.ReadLine()
		if errors.Is(err, io.EOF) || strings.TrimSpace(line) == "exit" {
			return nil
		}
		if err != nil {
			return err
		}
		inv.answer(screen, screen, eval, line)
	}
}

// answer evaluates one line. If it returns false, it has printed the mistakes.
func (inv *invocation) answer(out, errs io.Writer, eval project.Eval, line string) bool {
	if strings.TrimSpace(line) == "" {
		return true
	}
	v, file, diags := eval(line)
	if diags.HasErrors() {
		render.Diagnostics(errs, inv.style(inv.Err), diags, map[string]*hcl.File{config.ConsoleName: file})
		return false
	}
	if inv.json {
		return render.OutputJSON(out, v) == nil
	}
	fmt.Fprintln(out, render.OutputText(v))
	return true
}
